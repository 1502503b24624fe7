/** When runs need approval, and what counts as a change. */
import { describe, expect, test } from "vitest";
import { claimable } from "../../../../../src/users/cell/claimable.ts";
import {
  numbers,
  verifiedTablesOf,
  type VerifiedCell,
} from "../../../../../src/users/cell/conformance/verification/verified-cell.ts";

const HOUR_MS = 3_600_000;
const USERS = "RAILS_TABLE_USERS";
const EMAILS = "RAILS_TABLE_EMAILS";
const username = (value: string) => ({ type: "USERNAMES" as const, value });

export function approvalSuite(current: () => VerifiedCell): void {
  describe("approval", () => {
    test("[V5] a repeated run without approval changes nothing more", async () => {
      const one = current();
      await one.addAccounts(1_200, "asked");
      await one.update("accounts", { bot: true });
      await one.age();
      const first = await one.cell.verify({
        apply: true,
        pageRows: 100,
        rangeRows: 20,
        digestRanges: 15,
        leaseOps: 100,
      });
      expect([first.status, first.counts.destroyed]).toEqual(["needs_approval", 200]);
      expect(first.items.filter(({ outcome }) => outcome === "planned")).toHaveLength(50);
      expect(first.next).toEqual({ pass: "release", source: USERS, after: (await one.savedCursor())?.after });
      for (const options of [
        { pageRows: 100, rangeRows: 20, digestRanges: 15, leaseOps: 100 },
        {},
        { digests: false },
        { pageRows: 50 },
      ]) {
        const again = await one.cell.verify({ apply: true, ...options });
        expect(["needs_approval", 0]).toEqual([
          again.status,
          again.items.filter(({ outcome }) => outcome === "done").length,
        ]);
      }
      // The passing of time is no approval either, although the next run starts from the beginning.
      await one.changeCursor({ startedAtMs: Date.now() - 25 * HOUR_MS });
      const later = await one.cell.verify({ apply: true });
      expect([later.status, later.resumed, later.counts.destroyed]).toEqual(["needs_approval", false, 0]);
      expect(await one.records(USERS)).toHaveLength(2_400 - 200);
      const allowed = await one.cell.verify({ apply: true, maxShare: 1 });
      expect([allowed.status, allowed.resumed]).toEqual(["done", true]);
      expect(await one.records(USERS)).toHaveLength(1_200);
      expect((await one.savedCursor())?.isDone).toBe(true);
    });

    test("[V5] changes of an aborted run count in the next one, as found and as done", async () => {
      const one = current();
      await one.addAccounts(600, "broken");
      await one.lease({ destroys: numbers(1, 180).map((id) => ({ bucket: username(`broken-${id}`) })) });
      await one.coordinator.advance(2 * HOUR_MS);
      let begins = 0;
      one.network.fate = ({ operation }) =>
        operation === "begin" && (begins += 1) > 2 ? "refuse" : "deliver";
      await expect(
        one.cell.verify({
          apply: true,
          maxChanges: 150,
          maxShare: 1,
          leaseOps: 50,
          pageRows: 50,
          rangeRows: 50,
        }),
      ).rejects.toThrow();
      one.network.forget();
      expect(await one.savedCursor()).toMatchObject({
        after: "",
        changes: 100,
        tables: { [USERS]: { rows: 0, missing: 100, created: 100 } },
      });
      const asked = await one.cell.verify({
        apply: true,
        maxChanges: 150,
        maxShare: 1,
        leaseOps: 50,
        pageRows: 50,
        rangeRows: 50,
      });
      expect([asked.status, asked.approvalReason]).toEqual([
        "needs_approval",
        "180 claims would change, and `maxChanges` allows 150",
      ]);
      const rest = await one.cell.verify({ apply: true, maxChanges: 180, maxShare: 1 });
      expect([rest.status, rest.counts.missing, rest.counts.created, rest.counts.rows]).toEqual([
        "done",
        180,
        180,
        600,
      ]);
    });

    test("[V5] changes are counted before they are made, so a killed run has made no more", async () => {
      const one = current();
      await one.addEmails(1, 120, "killed");
      const changes: unknown[] = [];
      one.network.before = async ({ operation }) =>
        void (operation === "commit" && changes.push((await one.savedCursor())?.changes));
      await one.cell.verify({ apply: true, maxShare: 1, leaseOps: 50, pageRows: 50, rangeRows: 50 });
      expect(changes).toEqual([50, 100, 120]);
    });

    describe("a change with an unknown outcome", () => {
      /** A cell that loses the answers to its COMMITs, starting with number `from`. */
      const unsureCell = (from: number) => {
        const database = current().database();
        const { readCommitted } = database;
        Object.defineProperty(database, "readCommitted", { value: readCommitted });
        const run = readCommitted.run.bind(readCommitted);
        let committed = 0;
        readCommitted.run = async (body) => {
          const ran = await run(body);
          return ran.kind === "committed" && (committed += 1) >= from
            ? { kind: "unknown", error: new Error("connection lost") }
            : ran;
        };
        return current().open(verifiedTablesOf(current().tables), database);
      };
      const options = { apply: true, leaseOps: 50, pageRows: 50, rangeRows: 50 };

      test("[V5] counts as a change", async () => {
        await current().addEmails(1, 180, "unsure");
        const aborted = unsureCell(2).verify({ ...options, maxShare: 1 });
        await expect(aborted).rejects.toMatchObject({
          cause: { code: "UNKNOWN_COMMIT" },
          report: { counts: { created: 50 } },
        });
        expect((await current().savedCursor())?.changes).toBe(100);
      });

      test("[V5] of a queued row does not count, and earlier changes still do", async () => {
        const one = current();
        await one.addAccounts(1, "queued");
        await one.addEmails(1, 400, "unsure");
        expect((await one.cell.verify(options)).status).toBe("needs_approval");
        const before = await one.savedCursor();
        expect(Number(before?.changes) > 0).toBe(true);
        await one.lease({ destroys: [{ bucket: username("queued-1") }] });
        await one.queue(1);
        const ended = await unsureCell(1)
          .verify(options)
          .catch((error: unknown) => error);
        expect(ended).toMatchObject({ cause: { code: "UNKNOWN_COMMIT" } });
        expect(await one.savedCursor()).toMatchObject({ needsApproval: true, changes: before?.changes });
      });
    });

    test("[V5] a process that verifies other columns is no approval", async () => {
      const one = current();
      const newer = one.open([
        claimable(one.tables.emails, {
          source: EMAILS,
          subject: { type: "USER", id: "owner" },
          attributes: { email: "EMAILS", id: "PROJECT_IDS" },
        }),
      ]);
      await one.addEmails(1, 400, "two");
      for (const cell of [one.cell, newer, one.cell, newer]) {
        const report = await cell.verify({ apply: true, leaseOps: 50, pageRows: 50, rangeRows: 50 });
        expect(report.status).toBe("needs_approval");
      }
      expect((await one.client.records.list({ sourceType: EMAILS }).all()).length).toBe(100);
    });

    test("[V5] a share of 1 allows everything, because a renamed row takes two changes", async () => {
      const one = current();
      await one.addAccounts(150, "old");
      for (const id of numbers(1, 150)) await one.update("accounts", { username: `new-${id}` }, { id });
      await one.age();
      expect((await one.cell.verify({ apply: true })).status).toBe("needs_approval");
      const report = await one.cell.verify({ apply: true, maxShare: 1 });
      expect([report.status, report.counts.created, report.counts.destroyed]).toEqual(["done", 150, 150]);
    });

    test("[V5] names that need a person are no changes, and don't stop a run", async () => {
      const one = current();
      await one.addEmails(1, 500, "a");
      await one.addEmails(1, 120, "A");
      const filled = await one.cell.verify({ apply: true, maxShare: 1 });
      expect([filled.status, filled.counts.created, filled.counts.duplicates]).toEqual(["done", 500, 120]);
      await one.coordinator.advance(2 * HOUR_MS);
      await one.delete("emails", { id: [300, 301] });
      const report = await one.cell.verify({ apply: true });
      expect([report.status, report.counts.duplicates, report.counts.destroyed]).toEqual(["done", 120, 2]);
    });

    test("[V5] claims that deferred leases will destroy are no changes, also in a dry run", async () => {
      const one = current();
      await one.addAccounts(200, "later");
      const ids = numbers(1, 60);
      await one.delete("accounts", { id: ids });
      const destroys = ids.flatMap((id) => [
        { bucket: username(`later-${id}`), source: { type: USERS, id: String(id) } as const },
        {
          bucket: { type: "USER_IDS" as const, value: String(id) },
          source: { type: USERS, id: String(id) } as const,
        },
      ]);
      const database = one.database();
      const deferred = { destroys, allow_missing: true };
      await database.run(async (tx) =>
        database.insertLease(tx, { uuid: "01900000-0000-7000-8000-000000000009", sources: [], deferred }),
      );
      const plan = await one.cell.verify();
      expect([
        plan.counts.extra,
        plan.counts.leased,
        plan.items.filter(({ outcome }) => outcome === "planned"),
      ]).toEqual([120, 120, []]);
      const report = await one.cell.verify({ apply: true });
      expect([report.status, report.counts.destroyed, report.counts.leased]).toEqual(["done", 0, 120]);
    });

    test("[L6] queued rows need no approval, however many there are", async () => {
      const one = current();
      await one.addAccounts(150, "queue");
      await one.lease({ destroys: numbers(1, 150).map((id) => ({ bucket: username(`queue-${id}`) })) });
      await one.update("accounts", { updated_at: one.ago(60) });
      for (const id of numbers(1, 150)) await one.queue(id);
      const report = await one.cell.verify({ apply: true, pageRows: 40 });
      expect([report.status, report.counts.created, (await one.queuedIds()).length]).toEqual([
        "done",
        150,
        0,
      ]);
    });

    test("[L6] a queued name that another cell holds is reported only once", async () => {
      const one = current();
      await one.addAccounts(40, "listed");
      await one.lease({ destroys: [{ bucket: username("listed-30") }] });
      await one.lease(
        {
          creates: [
            {
              bucket: username("listed-30"),
              subject: { type: "USER", id: 7 },
              source: { type: USERS, id: 7 },
            },
          ],
        },
        one.other(),
      );
      await one.queue(30);
      const slow = { apply: true, maxMs: 0, pageRows: 5, rangeRows: 5, digestRanges: 1 };
      let report = await one.cell.verify(slow);
      for (; report.status === "out_of_time"; report = await one.cell.verify(slow))
        expect(report.counts.otherCell).toBe(1);
      expect([report.status, report.counts.otherCell, (await one.queuedIds()).length]).toEqual([
        "done",
        1,
        1,
      ]);
    });
  });
}
