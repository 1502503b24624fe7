import { renderTable } from "../../../demo/table.ts";
import type { Owners } from "./churn-judge.ts";
import type { Readers, RouterSetup } from "./churn.ts";
import { kinds, phases, results } from "./outage-judge.ts";
import type { OutageRun } from "./outage.ts";
import type { Requests } from "./requests.ts";

const endOf = ({ skipped, isTooSlow }: Requests, complaints: readonly string[]): string[] => [
  `${skipped} requests not sent because too many had no answer yet${isTooSlow ? ": FAILED, too many" : ""}`,
  ...complaints.slice(0, 20),
  `${complaints.length} complaints`,
  "",
];

/** The answers by the state of the coordinator and by what was asked. */
export function outageReport({ judge, outages, requests }: OutageRun): string[] {
  const rows = phases.flatMap((phase) =>
    kinds.map((kind) => [`${phase}: ${kind}`, ...results.map((result) => judge.count(phase, kind, result))]),
  );
  return [
    ...renderTable({ title: "coordinator: request", head: [...results], rows }),
    `${outages.length} outages`,
    ...endOf(requests, judge.complaints),
  ];
}

/** What a router has answered, and how old the oldest answers were. */
export function churnReport(
  { name, bounds }: RouterSetup,
  { counts, told, requests }: Readers,
  owners: Owners,
  complaints: readonly string[],
): string[] {
  const oldestMs = (isFound: boolean): string => {
    const ages = told
      .filter(({ cell, isStale }) => (cell !== undefined) === isFound && !isStale)
      .map((each) => owners.ageMs(each));
    return `${Math.round(ages.reduce((most, age) => Math.max(most, age), 0))} ms`;
  };
  return [
    `router ${name}: ${Object.entries(counts)
      .map(([what, count]) => `${count} ${what}`)
      .join(", ")}`,
    `the oldest answer was certainly wrong for: found ${oldestMs(true)} (may be ${bounds.foundMs}), ` +
      `free ${oldestMs(false)} (may be ${bounds.noneMs})`,
    ...endOf(requests, complaints),
  ];
}
