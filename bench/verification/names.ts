import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { storedNames } from "../growth/numbered-names.ts";

/** The names in the order in which `bench/growth` numbers the rows of its claims. */
export function* claimedNames(count: number): Generator<string> {
  const names = storedNames();
  for (const index of names.inNameOrder(count)) yield names.at(index).value;
}

const PROJECT_FILE = new URL("../../demo/data/routes-10k.txt", import.meta.url);
const GZIP = [0x1f, 0x8b] as const;

/**
 * Reads the names of a file unchanged, including invalid ones. Without a file, generates real names with
 * numbers.
 */
export function namesToFill(file: string | undefined, count: number): string[] {
  if (file !== undefined) return linesOf(file);
  const stems = linesOf(PROJECT_FILE);
  return Array.from({ length: count }, (_, index) => {
    const round = Math.floor(index / stems.length);
    return `${stems[index % stems.length] ?? ""}${round === 0 ? "" : `-${round}`}`;
  });
}

function linesOf(file: string | URL): string[] {
  const bytes = readFileSync(file);
  const text = (GZIP.every((byte, at) => bytes[at] === byte) ? gunzipSync(bytes) : bytes).toString("utf8");
  return text.split(/\r?\n/).filter((line) => line !== "");
}
