import { renderTable } from "../../../demo/table.ts";
import { kinds, phases, results } from "./outage-judge.ts";
import type { OutageRun } from "./outage.ts";

/** The answers by the state of the coordinator and by what was asked. */
export function outageReport({ judge, outages, skipped }: OutageRun): string[] {
  const rows = phases.flatMap((phase) =>
    kinds.map((kind) => [`${phase}: ${kind}`, ...results.map((result) => judge.count(phase, kind, result))]),
  );
  return [
    ...renderTable({ title: "coordinator: request", head: [...results], rows }),
    `${outages.length} outages, ${skipped} requests not sent because too many had no answer yet`,
    ...judge.complaints.slice(0, 20),
    `${judge.complaints.length} complaints`,
  ];
}
