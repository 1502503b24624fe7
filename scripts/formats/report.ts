/** What `npm run check:formats` says of differences. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ADVICE, type Differences } from "./description.ts";
import type { Difference } from "./difference.ts";

/** The differences from a release that were accepted: lines of the report, each with the reason. */
export type Accepted = Readonly<Record<string, string>>;

/** The file is written by hand, and is not there as long as it would be empty. */
export function readAccepted(folder: string): Accepted {
  const file = join(folder, "accepted.json");
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Accepted) : {};
}

/** Returns what is wrong, in lines. Empty: nothing. */
export function reportOf(version: string, differences: Differences, accepted: Accepted): string {
  const unused = new Set(Object.keys(accepted));
  const parts = Object.entries(differences).flatMap(([kind, some]) => {
    const lines = [...Map.groupBy(some, ({ fault }) => fault)]
      .map(([fault, same]) => `${namesOf(same)}: ${fault}`)
      .filter((line) => !unused.delete(line));
    return lines.length === 0 ? [] : [...lines, ADVICE[kind as keyof Differences], ""];
  });
  const stale = [...unused].map((line) => `accepted.json has a difference that is not there: ${line}`);
  if (parts.length === 0 && stale.length === 0) return "";
  return [
    `This code and ${version} could not work side by side, because of changes since formats/${version}:`,
    "",
    ...parts,
    ...stale,
  ].join("\n");
}

function namesOf(some: readonly Difference[]): string {
  const names = some.map(({ what }) => what);
  return names.length <= 3
    ? names.join(", ")
    : `${names.slice(0, 2).join(", ")} and ${names.length - 2} more`;
}
