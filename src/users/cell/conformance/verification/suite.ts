/** Verification of a cell with any database, against the in-memory coordinator, whose clock can be set. */
import { compareBytes, sourceOrder } from "../../../../common/source-order.ts";
import { claimable, type Claimable } from "../../claimable.ts";
import type { VerificationItem, VerificationReport } from "../../verification/report.ts";
import type { ConformanceTarget, Suites } from "../target.ts";
import { verifiedCellSuite, verifiedTablesOf, type VerifiedCell } from "./verified-cell.ts";

const USERS = "RAILS_TABLE_USERS";
const subject = (id: number | string) => ({ type: "USER" as const, id: String(id) });
const source = (id: number | string) => ({ type: USERS, id: String(id) }) as const;
export const username = (value: string) => ({ type: "USERNAMES" as const, value });

export const kinds = ({ counts: { missing, different, extra } }: VerificationReport): number[] => [
  missing,
  different,
  extra,
];
export const changes = ({ counts: { created, replaced, destroyed } }: VerificationReport): number[] => [
  created,
  replaced,
  destroyed,
];
export const brief = ({ action, bucket, reason, outcome, skipReason }: VerificationItem): string =>
  `${action} ${bucket.value} (${reason}) ${skipReason === undefined ? outcome : `skipped: ${skipReason}`}`;

export const takes = (value: string, id: number | string) => ({
  bucket: username(value),
  subject: subject(id),
  source: source(id),
});

const HOUR_MS = 3_600_000;

/**
 * What a database adapter can change about verification: reads of ranges, the order and the spelling of ids,
 * times of changes, locks, the saved cursor and the queue. What runs find and decide is the same with every
 * adapter, so users need not test it.
 */
export function verificationSuite(suites: Suites, target: ConformanceTarget<unknown>): void {
  verifiedCellSuite(suites, target, "verification", (current) => databaseSuite(suites, current, target));
}

function databaseSuite(
  { test, expect }: Suites,
  current: () => VerifiedCell,
  { isConcurrent }: ConformanceTarget<unknown>,
): void {
  test("[V4] a digest is no proof in a range with a hold, a recent claim or a recent row", async () => {
    const one = current();
    await one.addAccounts(10, "held");
    const lease = await one.client.leases.begin({ destroys: [{ bucket: username("held-3") }] });
    const held = await one.cell.verify({ apply: true });
    expect([held.counts.equalRanges, held.counts.records, held.counts.leased, changes(held)]).toEqual([
      3,
      20,
      0,
      [0, 0, 0],
    ]);
    await one.client.leases.rollback(lease.uuid);
    // A lookup ends the hold, which the shard may still have: no caller waits for its end.
    expect(await one.owners("USERNAMES", "held-3")).toEqual(["held-3: ACTIVE of 1 for 3"]);
    expect((await one.cell.verify()).counts.equalRanges).toBe(4);
    await one.update("accounts", { updated_at: one.ago(10) }, { id: 5 });
    expect((await one.cell.verify()).counts.equalRanges).toBe(3);
  });

  test("[V2] rows are checked again under the lock, and drifts that have changed are skipped", async () => {
    const one = current();
    await one.addAccounts(4, "late");
    await one.lease({ destroys: [{ bucket: username("late-1") }] });
    await one.update("accounts", { username: "elsewhere" }, { id: 3 });
    await one.age();
    const rename = (id: number, to: string) => one.update("accounts", { username: to }, { id: id });
    let calls = 0;
    let isLast = false;
    one.network.before = async ({ operation }) => {
      if (operation !== "other") return;
      calls += 1;
      // The first two calls are for the limits and the slot. At the third, only the rows have been read.
      if (calls === 3) await rename(1, "other name");
      if (isLast) await rename(3, "late-3");
    };
    const report = await one.cell.verify({
      apply: true,
      digests: false,
      onProgress: ({ source: its }) => void (isLast ||= its === "RAILS_TABLE_ORGANIZATIONS"),
    });
    expect(report.items.map(brief).toSorted()).toEqual([
      "create elsewhere (value) done",
      "create late-1 (no_claim) skipped: changed",
      "destroy late-3 (value) skipped: changed",
    ]);
    expect(await one.owners("USERNAMES", "late-1", "late-3")).toEqual([
      "late-1: free",
      "late-3: ACTIVE of 1 for 3",
    ]);
  });

  if (isConcurrent)
    test("[V2] a repaired row stays locked until the local commit", async () => {
      const one = current();
      await one.addAccounts(2, "locked");
      await one.lease({ destroys: [{ bucket: username("locked-1") }] });
      const lock = (): Promise<void> => one.sql("SELECT id FROM accounts WHERE id = 1 FOR UPDATE NOWAIT");
      const refused: boolean[] = [];
      one.network.before = async ({ operation }) => {
        if (operation !== "begin") return;
        refused.push(
          await lock().then(
            () => false,
            () => true,
          ),
        );
      };
      const report = await one.cell.verify({ apply: true, recentMs: 0 });
      await lock();
      expect([refused, changes(report)]).toEqual([[true], [1, 0, 0]]);
    });

  test("[L6] queued rows are repaired at once, however recent they are, and leave the queue", async () => {
    const one = current();
    await one.addAccounts(3, "queued");
    await one.lease({ destroys: [1, 2].map((id) => ({ bucket: username(`queued-${id}`) })) });
    await one.lease({ creates: [takes("queued-2", 5)] }, one.other());
    await one.update("accounts", { updated_at: one.ago(1) });
    for (const id of [1, 2, 99]) await one.queue(id);
    // Each page has one row. The row that needs a person does not block the next one.
    const report = await one.cell.verify({ apply: true, pageRows: 1 });
    expect([changes(report), report.counts.otherCell]).toEqual([[1, 0, 0], 1]);
    expect(await one.owners("USERNAMES", "queued-1")).toEqual(["queued-1: ACTIVE of 1 for 1"]);
    expect(await one.queuedIds()).toEqual(["2"]);
  });

  test("[L6] a row stays queued if it was queued again, or has a disabled column", async () => {
    const one = current();
    await one.addAccounts(2, "again");
    const old = { type: USERS, id: "1", leaseUuid: "00000000-0000-4000-8000-000000000001" };
    await one.queue(1, "00000000-0000-4000-8000-000000000009");
    await one.verification.removeFromQueue([old]);
    expect(await one.queuedIds()).toEqual(["1"]);
    const switchedOff = claimable(one.tables.accounts, {
      source: USERS,
      subject: { type: "USER", id: "id" },
      attributes: { id: "USER_IDS", username: { bucket: "USERNAMES", enabled: false } },
    });
    const cell = one.open([switchedOff]);
    await cell.verify({ apply: true });
    expect(await one.queuedIds()).toEqual(["1"]);
    await one.cell.verify({ apply: true });
    expect(await one.queuedIds()).toEqual([]);
  });

  test("a run does nothing if another one finished within `unlessDoneWithinMs`", async () => {
    const one = current();
    await one.addAccounts(1, "due");
    const options = { apply: true, unlessDoneWithinMs: HOUR_MS };
    expect((await one.cell.verify(options)).status).toBe("done");
    expect((await one.cell.verify(options)).status).toBe("not_due");
    expect((await one.cell.verify({ apply: true })).status).toBe("done");
  });

  test("ids of every kind are read in the coordinator's order", async () => {
    const one = current();
    const ids = [
      "7",
      "10",
      "007",
      "0",
      "00",
      "x",
      "X",
      "a-1",
      "é",
      "😀",
      "﹏",
      "99999999999999999999",
      "1e3",
      "zz",
      "-5",
      "01x",
    ];
    await one.insert(
      "projects",
      ids.map((id, index) => ({ id, path: `p-${index}` })),
    );
    const uuids = [
      "10000000-0000-4000-8000-00000000000f",
      "a0000000-0000-4000-8000-000000000000",
      "f0000000-0000-4000-8000-000000000000",
    ];
    await one.insert(
      "teams",
      uuids.toReversed().map((id, index) => ({ id, path: `o-${index}` })),
    );
    const report = await one.cell.verify({
      apply: true,
      maxShare: 1,
      pageRows: 3,
      rangeRows: 2,
      digestRanges: 2,
    });
    expect([report.status, report.counts.created]).toEqual(["done", ids.length + uuids.length]);
    await one.coordinator.advance(2 * HOUR_MS);
    const again = await one.cell.verify({ apply: true, pageRows: 4, digests: false });
    expect([again.status, again.counts.rows, again.counts.records, kinds(again)]).toEqual([
      "done",
      19,
      19,
      [0, 0, 0],
    ]);
    const [, , claimableProjects] = verifiedTablesOf(one.tables) as [Claimable, Claimable, Claimable];
    const all = { after: "", upTo: undefined };
    const ordered = await one.verification.page(claimableProjects, { ...all, limit: 100 });
    const read = ordered.map(({ row }) => String(row["id"]));
    expect(read).toEqual(ids.toSorted((a, b) => compareBytes(sourceOrder(a), sourceOrder(b))));
    expect(await one.verification.count(claimableProjects, all)).toBe(ids.length);
    const range = { after: read[1] ?? "", upTo: read.at(-2) };
    expect(await one.verification.count(claimableProjects, range)).toBe(ids.length - 3);
  });

  if (isConcurrent)
    test("a snapshot has the rows of one moment", async () => {
      const one = current();
      await one.addEmails(1, 3, "first");
      const [, emails] = verifiedTablesOf(one.tables) as [Claimable, Claimable];
      const ids = await one.verification.inSnapshot(async (page) => {
        const range = { after: "", upTo: undefined, limit: 2 };
        const first = await page(emails, range);
        await one.addEmails(4, 6, "later");
        const after = emails.idOf(first.at(-1)?.row ?? {});
        const second = await page(emails, { ...range, after, limit: 10 });
        return [...first, ...second].map(({ row }) => row["owner"]);
      });
      expect(ids.map(Number)).toEqual([1, 2, 3]);
    });
}
