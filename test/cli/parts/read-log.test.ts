/** What a plan reads from a file that `leasehold watch --changes --jsonl` has written. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { readLog } from "../../../src/cli/parts/plan/read-log.ts";

const at = (position: number) => ({ incarnation: 17, position });
const start = (position: number) => ({ checkpoint: `0:${position}`, is_start: true });
const change = (position: number) => ({ id: `granted:0:${position}`, shard: 0, position });
const end = (after: number, through: number, count: number) => ({
  checkpoint: `0:${through}`,
  ranges: [{ shard: 0, after: at(after), through: at(through) }],
  count,
});

async function pagesOf(...lines: object[]): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-log-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "changes.jsonl");
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const pages = await readLog(path, 0);
  return pages.map(
    ({ after, through, changes }) =>
      `${after.position} to ${through.position}: ${changes.map(({ position }) => position).join()}`,
  );
}

test("[J1] each page has the changes between two checkpoints", async () => {
  const lines = [start(1), change(2), change(3), end(1, 3, 2), change(4), end(3, 4, 1)];
  expect(await pagesOf(...lines)).toEqual(["1 to 3: 2,3", "3 to 4: 4"]);
});

test("[J1] a page without its first lines counts for nothing", async () => {
  expect(await pagesOf(change(3), end(1, 3, 2), change(4), end(3, 4, 1))).toEqual(["3 to 4: 4"]);
});

test("[J1] two programs that write to one file hide no gap", async () => {
  // Each begins where the file ends. The second one has nothing between 3 and 5.
  expect(
    await pagesOf(start(1), change(2), end(1, 3, 1), start(5), change(6), end(5, 6, 1), end(3, 4, 0)),
  ).toEqual(["1 to 3: 2", "5 to 6: 6", "3 to 4: "]);
  // The lines of two pages are mixed, so that one page has the changes of the other.
  expect(await pagesOf(start(1), start(1), change(2), end(1, 2, 0), end(1, 2, 1))).toEqual([]);
  expect(await pagesOf(start(1), start(5), change(2), end(5, 6, 1))).toEqual([]);
});

test("[J1] a file that lacks the changes of other cells is refused", async () => {
  await expect(pagesOf({ ...start(1), is_filtered: true })).rejects.toThrow(
    "record without --cell and --type, and with the key of an operator or a viewer",
  );
});
