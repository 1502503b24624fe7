import { expect, test } from "vitest";
import { Counts } from "../../../../src/users/cell/verification/counts.ts";
import {
  initialCursor,
  readCursor,
  RunCursor,
  type Cursor,
} from "../../../../src/users/cell/verification/cursor.ts";
import { settingsOf } from "../../../../src/users/cell/verification/options.ts";
import type { VerificationPorts, VerifiedTable } from "../../../../src/users/cell/verification/ports.ts";

const USERS = "RAILS_TABLE_USERS";
const users = { source: USERS, bucketTypes: ["USERNAMES"] } as unknown as VerifiedTable;
const found = (rows: number) => [{ rows, claims: rows, ranges: 1, equalRanges: 1 }];

function started({ isDryRun = false } = {}) {
  let text: string | undefined;
  const progress: VerificationPorts["progress"] = {
    load: async () => (text === undefined ? undefined : { text, ageMs: 0 }),
    save: async (saved) => void (text = saved),
  };
  const first = initialCursor({ tables: [users] } as unknown as VerificationPorts, false);
  const counts = new Counts(first, settingsOf({}));
  const cursor = new RunCursor(progress, counts, { cursor: first, text: undefined, isDryRun });
  return {
    counts,
    cursor,
    progress,
    saved: () => (text === undefined ? undefined : (JSON.parse(text) as Cursor)),
  };
}

test("[V5] announced changes are saved, and the position stays where it was", async () => {
  const { cursor, counts, saved } = started();
  counts.addRanges(USERS, found(10));
  await cursor.advance("10");
  counts.addRanges(USERS, found(5));
  await cursor.announce(7);
  expect(saved()).toMatchObject({ after: "10", changes: 7, tables: { [USERS]: { rows: 10 } } });
  await cursor.advance("15");
  expect(saved()).toMatchObject({ after: "15", changes: 0, tables: { [USERS]: { rows: 15 } } });
  expect(cursor.savedPosition).toEqual({ pass: "claim", source: USERS, after: "15" });
});

test("[V5] a failed run counts its announced changes only if their outcome is unknown", async () => {
  const { cursor, saved } = started();
  await cursor.announce(7);
  await cursor.abandon(true);
  expect(saved()?.changes).toBe(7);
  await cursor.abandon(false);
  expect(saved()?.changes).toBe(0);
});

test("a cursor that another run has replaced is not overwritten", async () => {
  const { cursor, progress, saved } = started();
  await cursor.advance("10");
  expect(await cursor.isStillSaved()).toBe(true);
  await progress.save(JSON.stringify({ after: "777" }));
  expect(await cursor.isStillSaved()).toBe(false);
  await cursor.abandon(true);
  expect(saved()?.after).toBe("777");
});

test("[V5] a cursor of another version is not resumed, and its changes that wait count", async () => {
  const ports = { tables: [users], progress: started().progress } as unknown as VerificationPorts;
  const saved = { ...initialCursor(ports, false, 7), after: "10" };
  await ports.progress.save(JSON.stringify(saved));
  expect(await readCursor(ports, false)).toMatchObject({ cursor: saved, changes: 7 });
  await ports.progress.save(JSON.stringify({ ...saved, version: 2, isDone: false }));
  expect(await readCursor(ports, false)).toMatchObject({ cursor: undefined, changes: 7 });
  await ports.progress.save(JSON.stringify({ ...saved, version: 2, isDone: true }));
  expect(await readCursor(ports, false)).toMatchObject({ cursor: undefined, doneMs: undefined });
});

test("a dry run saves nothing", async () => {
  const { cursor, saved } = started({ isDryRun: true });
  await cursor.advance("10");
  await cursor.finish();
  expect(saved()).toBeUndefined();
  expect(cursor.savedPosition.after).toBe("");
});

test("the second pass reads only the ranges in which the first one found extra claims", () => {
  const { cursor } = started();
  expect(cursor.boundsOf({ pass: "claim", table: users })).toEqual({ after: "", upTo: undefined });
  expect(cursor.boundsOf({ pass: "release", table: users })).toBeUndefined();
  cursor.extendReleaseRange(USERS, "20", "25");
  cursor.extendReleaseRange(USERS, "30", "100");
  cursor.extendReleaseRange(USERS, "30", "40");
  expect(cursor.boundsOf({ pass: "release", table: users })).toEqual({ after: "20", upTo: "100" });
});
