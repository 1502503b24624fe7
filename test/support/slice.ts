import { execFileSync } from "node:child_process";

/**
 * Suites with too many cases for every change run a slice of them. The hash of the commit's tree selects the
 * slice, so a commit always runs the same cases and `git bisect` works. Uncommitted changes
 * do not change the slice. The variable TEST_SLICE repeats another slice, and `all` runs every case.
 */
const given = process.env["TEST_SLICE"] ?? "";

/** Whether every case runs, as in `npm run test:deep`. */
const isEveryCase = given === "all";

/** A number below 2^24. Rigs also use it as their seed. */
export const slice = given === "" || isEveryCase ? sliceOfTree() : parseSlice(given);

function parseSlice(text: string): number {
  if (!/^\d{1,8}$/.test(text))
    throw new Error(`TEST_SLICE must be all, or a number of at most 8 digits, not ${JSON.stringify(text)}`);
  return Number(text);
}

/** Outside of a Git checkout there is no commit, so it is always slice 0. */
function sliceOfTree(): number {
  const args = ["rev-parse", "--verify", "HEAD^{tree}"];
  try {
    const tree = execFileSync("git", args, { cwd: import.meta.dirname, stdio: ["ignore", "pipe", "ignore"] });
    return Number.parseInt(tree.toString().slice(0, 6), 16);
  } catch {
    return 0;
  }
}

/**
 * Every `parts`th case, and at least one. `parts` consecutive slices, or as many as there are cases, have all
 * of them.
 */
export function partOf<Case>(number: number, cases: readonly Case[], parts: number): readonly Case[] {
  const turns = Math.min(parts, cases.length);
  return cases.filter((_, index) => index % turns === number % turns);
}

export const inSlice = <Case>(cases: readonly Case[], parts: number): readonly Case[] =>
  isEveryCase ? cases : partOf(slice, cases, parts);
