/** How runs end, when they need approval, and where the next run continues. */
import type { Suites } from "../../../src/cell/conformance/runner.ts";
import { createCell } from "../../../src/cell/cell.ts";
import { claimable } from "../../../src/cell/claimable.ts";
import { formatReport } from "../../../src/cell/verification/format.ts";
import type { VerificationProgress } from "../../../src/cell/verification/options.ts";
import type { Cursor } from "../../../src/cell/verification/cursor.ts";
import { createClient } from "../../../src/client/client.ts";
import { FaultyFetch } from "../../../src/cell/conformance/faulty-fetch.ts";
import { startCoordinator, verifiedTablesOf, type VerifiedCell } from "./world.ts";

const HOUR_MS = 3_600_000;
const USERS = "RAILS_TABLE_USERS";
const EMAILS = "RAILS_TABLE_EMAILS";
const username = (value: string) => ({ type: "USERNAMES" as const, value });
const numbers = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);

export function stopAndResumeSuite({ describe, test, expect }: Suites, current: () => VerifiedCell): void {
  const stored = async (): Promise<Cursor | undefined> => {
    const progress = await current().verification.loadProgress();
    return progress && (JSON.parse(progress.text) as Cursor);
  };
  const rewrite = async (place: Partial<Cursor>): Promise<void> =>
    current().verification.saveProgress(JSON.stringify({ ...(await stored()), ...place }));
  const addEmails = (from: number, to: number, prefix: string) =>
    current().insert(
      "emails",
      numbers(from, to).map((id) => ({ owner: id, email: `${prefix}${id}@x.org` })),
    );

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
      expect(first.next).toEqual({ pass: "release", source: USERS, after: (await stored())?.after });
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
      await rewrite({ startedAtMs: Date.now() - 25 * HOUR_MS });
      const later = await one.cell.verify({ apply: true });
      expect([later.status, later.resumed, later.counts.destroyed]).toEqual(["needs_approval", false, 0]);
      expect(await one.records(USERS)).toHaveLength(2_400 - 200);
      const allowed = await one.cell.verify({ apply: true, maxShare: 1 });
      expect([allowed.status, allowed.resumed]).toEqual(["done", true]);
      expect(await one.records(USERS)).toHaveLength(1_200);
      expect((await stored())?.isDone).toBe(true);
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
      expect(await stored()).toMatchObject({
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
      await addEmails(1, 120, "killed");
      const changes: unknown[] = [];
      one.network.before = async ({ operation }) =>
        void (operation === "commit" && changes.push((await stored())?.changes));
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
        await addEmails(1, 180, "unsure");
        const aborted = unsureCell(2).verify({ ...options, maxShare: 1 });
        await expect(aborted).rejects.toMatchObject({
          cause: { code: "UNKNOWN_COMMIT" },
          report: { counts: { created: 50 } },
        });
        expect((await stored())?.changes).toBe(100);
      });

      test("[V5] of a queued row does not count, and earlier changes still do", async () => {
        const one = current();
        await one.addAccounts(1, "queued");
        await addEmails(1, 400, "unsure");
        expect((await one.cell.verify(options)).status).toBe("needs_approval");
        const before = await stored();
        expect(Number(before?.changes) > 0).toBe(true);
        await one.lease({ destroys: [{ bucket: username("queued-1") }] });
        await one.queue(1);
        const ended = await unsureCell(1)
          .verify(options)
          .catch((error: unknown) => error);
        expect(ended).toMatchObject({ cause: { code: "UNKNOWN_COMMIT" } });
        expect(await stored()).toMatchObject({ needsApproval: true, changes: before?.changes });
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
      await addEmails(1, 400, "two");
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
      await addEmails(1, 500, "a");
      await addEmails(1, 120, "A");
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

  describe("continuing", () => {
    test("[V5] a run can be stopped before it begins, and between tables", async () => {
      const one = current();
      await one.addAccounts(3, "stop");
      await addEmails(1, 3, "stop");
      await one.update("accounts", { bot: true });
      await one.age();
      const none = await one.cell.verify({ apply: true, signal: AbortSignal.abort() });
      expect([none.status, none.counts.rows, await stored()]).toEqual(["stopped", 0, undefined]);
      const first = await one.cell.verify({ apply: true, maxMs: 0 });
      expect([first.status, first.next]).toEqual([
        "out_of_time",
        { pass: "claim", source: EMAILS, after: "" },
      ]);
      expect(await stored()).toMatchObject(first.next ?? {});
      const statuses: string[] = [];
      for (let report = first; report.status !== "done";) {
        report = await one.cell.verify({ apply: true, maxMs: 0 });
        statuses.push(`${report.next?.pass} ${report.next?.source}`);
      }
      expect(statuses).toEqual([
        "claim RAILS_TABLE_PROJECTS",
        "claim RAILS_TABLE_ORGANIZATIONS",
        `release ${USERS}`,
        "undefined undefined",
      ]);
      expect(await one.owners("USERNAMES", "stop-1")).toEqual(["stop-1: free"]);
      expect(await one.owners("EMAILS", "stop1@x.org")).toEqual(["stop1@x.org: ACTIVE of 1 for 1"]);
    });

    test("[V5] rows that are read again after a pause within a segment are counted once", async () => {
      const one = current();
      await one.addAccounts(100, "once");
      await one.delete("accounts", { id: numbers(11, 60) });
      const options = { apply: true, maxMs: 0, maxShare: 1, pageRows: 2, rangeRows: 2 };
      let report = await one.cell.verify(options);
      let runs = 1;
      for (; report.status === "out_of_time"; runs += 1) report = await one.cell.verify(options);
      expect(runs > 3).toBe(true);
      expect(report.counts).toMatchObject({ rows: 50, claims: 100, extra: 100, destroyed: 100 });
    });

    test("[V4] a full run does not continue a run with digests, and is continued as a full run", async () => {
      const one = current();
      await one.addAccounts(100, "whole");
      const part = { apply: true, maxMs: 0, pageRows: 10, rangeRows: 10, digestRanges: 5 };
      expect((await one.cell.verify(part)).next?.after).toBe("50");
      const whole = await one.cell.verify({ ...part, digests: false });
      expect([whole.resumed, whole.next?.after]).toEqual([false, "10"]);
      const rest = await one.cell.verify({ apply: true });
      expect([rest.status, rest.resumed, rest.counts.records, rest.counts.ranges]).toEqual([
        "done",
        true,
        200,
        0,
      ]);
      const due = { apply: true, unlessDoneWithinMs: HOUR_MS };
      expect((await one.cell.verify({ ...due, digests: false })).status).toBe("not_due");
      expect((await one.cell.verify({ apply: true })).status).toBe("done");
      expect((await one.cell.verify(due)).status).toBe("not_due");
      expect((await one.cell.verify({ ...due, digests: false })).status).toBe("done");
    });

    test("[A3] a run that has lost its slot does not overwrite the cursor of another run", async () => {
      const one = current();
      const coordinator = await startCoordinator({
        variables: { LEASEHOLD_VERIFICATION_SLOT_MS: "1000" },
      });
      const options = { url: coordinator.url, key: coordinator.keys.cell("1"), cell: "1" };
      const theirs = { pass: "release", source: EMAILS, after: "777" } as const;
      let commits = 0;
      const network = new FaultyFetch(coordinator.fetch);
      network.before = async ({ operation }) => {
        if (operation !== "commit" || (commits += 1) !== 2) return;
        await coordinator.advance(1_001);
        const other = createClient({ ...options, fetch: coordinator.fetch });
        await other.verificationSlots.take("11111111-1111-4111-8111-111111111111");
        await rewrite(theirs);
        await new Promise((resume) => setTimeout(resume, 300));
      };
      const client = createClient({ ...options, fetch: network.fetch });
      const cell = createCell({
        client,
        database: one.database(),
        tables: verifiedTablesOf(one.tables),
      });
      await addEmails(1, 30, "lost");
      const report = await cell.verify({
        apply: true,
        maxShare: 1,
        pageRows: 10,
        rangeRows: 10,
        digestRanges: 1,
      });
      expect(report.status).toBe("slot_lost");
      expect(await stored()).toMatchObject(theirs);
      await coordinator.close();
    });

    test("[V5] a segment longer than the slot is saved, unless another run held the slot", async () => {
      const one = current();
      const coordinator = await startCoordinator({
        variables: { LEASEHOLD_VERIFICATION_SLOT_MS: "1000" },
      });
      const network = new FaultyFetch(coordinator.fetch);
      network.before = ({ operation }) =>
        new Promise((resume) => setTimeout(resume, operation === "commit" ? 1_010 : 0));
      const client = createClient({
        url: coordinator.url,
        key: coordinator.keys.cell("1"),
        cell: "1",
        fetch: network.fetch,
      });
      const cell = createCell({
        client,
        database: one.database(),
        tables: verifiedTablesOf(one.tables),
      });
      await addEmails(1, 20, "slow");
      const report = await cell.verify({
        apply: true,
        maxShare: 1,
        pageRows: 10,
        rangeRows: 10,
        digestRanges: 1,
      });
      expect([report.status, report.counts.created]).toEqual(["done", 20]);
      await coordinator.close();
    });

    test("a dry run that reaches `maxMs` saves no cursor", async () => {
      const one = current();
      await one.addAccounts(50, "dry");
      const report = await one.cell.verify({ maxMs: 0, pageRows: 10, rangeRows: 10, digestRanges: 2 });
      expect([report.status, report.next, await stored()]).toEqual(["out_of_time", undefined, undefined]);
      expect(formatReport(report)).not.toContain("next");
    });
  });

  test("[V3] a name of a row without a subject is not destroyed with another row's claim", async () => {
    const one = current();
    const table = claimable(one.tables.emails, {
      source: EMAILS,
      subject: { type: "USER", id: ({ owner }) => (owner === 0 ? "" : owner) },
      attributes: { email: "EMAILS" },
    });
    const cell = one.open([table]);
    for (const email of ["alpha@x", "beta@x"])
      await cell.transaction((tx) => tx.insert(one.tables.emails, { owner: 7, email }));
    await one.age();
    await one.update("emails", { email: "gamma@x" }, { id: 1 });
    await one.update("emails", { email: "alpha@x", owner: 0 }, { id: 2 });
    const report = await cell.verify({ apply: true });
    expect([report.counts.unnameable, report.counts.needed]).toEqual([1, 1]);
    expect(await one.owners("EMAILS", "alpha@x", "beta@x", "gamma@x")).toEqual([
      "alpha@x: ACTIVE of 1 for 1",
      "beta@x: free",
      "gamma@x: ACTIVE of 1 for 1",
    ]);
  });

  test("ranges continue across pages, and no call exceeds the limit of ranges", async () => {
    const one = current();
    await one.addAccounts(300, "full");
    one.network.forget();
    const report = await one.cell.verify({ pageRows: 5, rangeRows: 2, digestRanges: 100 });
    const asked = one.network.calls.flatMap(
      ({ body }) => (body as { ranges?: unknown[] } | undefined)?.ranges?.length ?? [],
    );
    expect([report.status, report.counts.rows, report.counts.ranges]).toEqual(["done", 300, 100 + 50 + 3]);
    expect(asked).toEqual([100, 50, 1, 1, 1]);
  });

  test("a name above the coordinator's lower limits is reported, and the others are claimed", async () => {
    const one = current();
    const variables = {
      LEASEHOLD_VALUE_BYTES: "64",
      LEASEHOLD_BATCH_OPS: "50",
      LEASEHOLD_DIGEST_RANGES: "2",
      LEASEHOLD_LOOKUP_BUCKETS: "3",
      LEASEHOLD_MAX_PAGE_ITEMS: "20",
    };
    const coordinator = await startCoordinator({ variables });
    const client = createClient({
      url: coordinator.url,
      key: coordinator.keys.cell("1"),
      cell: "1",
      fetch: coordinator.fetch,
    });
    const cell = createCell({
      client,
      database: one.database(),
      tables: verifiedTablesOf(one.tables),
    });
    await addEmails(1, 200, "low");
    await addEmails(201, 201, "x".repeat(64));
    const plan = await cell.verify();
    expect([plan.counts.missing, plan.counts.unnameable]).toEqual([200, 1]);
    for (const created of [200, 0]) {
      const report = await cell.verify({ apply: true, maxShare: 1, recentMs: 0, rangeRows: 10 });
      expect([report.status, report.counts.created, report.counts.unnameable]).toEqual(["done", created, 1]);
    }
    await coordinator.close();
  });

  test("progress covers the part of the table that a pass reads", async () => {
    const one = current();
    await one.addAccounts(100, "pace");
    await one.delete("accounts", { id: 95 });
    const reported: VerificationProgress[] = [];
    await one.cell.verify({
      apply: true,
      pageRows: 10,
      rangeRows: 10,
      digestRanges: 1,
      onProgress: (progress) => void reported.push(progress),
    });
    const last = (pass: string) => reported.findLast((each) => each.pass === pass && each.source === USERS);
    expect(last("claim")).toMatchObject({ rows: 99, totalRows: 99, remainingMs: 0 });
    expect(last("release")).toMatchObject({ rows: 4, totalRows: 4, remainingMs: 0 });
  });
}
