/** Repairs of every kind of drift. */
import { describe, expect, test } from "vitest";
import {
  brief,
  changes,
  kinds,
  takes,
  username,
} from "../../../../../src/users/cell/conformance/verification/suite.ts";
import type { VerifiedCell } from "../../../../../src/users/cell/conformance/verification/verified-cell.ts";
import { formatReport } from "../../../../../src/users/cell/verification/format.ts";
import { VerificationAborted } from "../../../../../src/users/cell/verification/loop.ts";

const HOUR_MS = 3_600_000;
const USERS = "RAILS_TABLE_USERS";

/** The accounts of `plant` take three pages. */
const inPages = { pageRows: 100, rangeRows: 10, digestRanges: 26 };

/** Creates the drift of S4. */
async function plant(one: VerifiedCell): Promise<void> {
  await one.addAccounts(253, "user");
  const names = (...ids: number[]) =>
    ids.flatMap((id) => [
      { bucket: { type: "USER_IDS" as const, value: String(id) } },
      { bucket: username(`user-${id}`) },
    ]);
  // 3 accounts have no claims.
  await one.lease({ destroys: names(10, 150, 240) });
  // 2 accounts have the claim of another name.
  await one.lease({
    destroys: [{ bucket: username("user-20") }, { bucket: username("user-170") }],
    creates: [takes("wrong-1", 20), takes("wrong-2", 170)],
  });
  // 4 claims belong to deleted accounts, one of them after the last row.
  await one.delete("accounts", { id: [120, 253] });
  // 1 claim belongs to an account that must no longer have one.
  await one.update("accounts", { bot: true }, { id: 30 });
  await one.coordinator.advance(24 * HOUR_MS);
  // 1 claim, 30 minutes old, belongs to a row that does not exist.
  await one.lease({ creates: [takes("just-now", 900_000)] });
  await one.coordinator.advance(HOUR_MS / 2);
  // 1 account was changed 5 minutes ago, but has claims that are days old.
  await one.update("accounts", { username: "renamed", updated_at: one.ago(300) }, { id: 40 });
}

export function driftSuite(current: () => VerifiedCell): void {
  describe("S4", () => {
    for (const digests of [true, false])
      test(`[V1] repairs every kind of drift, and skips what is recent (digests: ${digests})`, async () => {
        const options = { ...inPages, digests };
        const one = current();
        await plant(one);
        const plan = await one.cell.verify(options);
        expect([plan.status, plan.applied, kinds(plan), changes(plan)]).toEqual([
          "done",
          false,
          [6, 2, 5],
          [0, 0, 0],
        ]);
        expect(await one.owners("USERNAMES", "user-10", "wrong-1")).toEqual([
          "user-10: free",
          "wrong-1: ACTIVE of 1 for 20",
        ]);

        const report = await one.cell.verify({ ...options, apply: true });
        expect([report.status, kinds(report), changes(report)]).toEqual([
          "done",
          [6, 2, 5],
          [6 + 2, 0, 2 + 4 + 1],
        ]);
        expect(new Set(report.items.map(({ kind, reason }) => `${kind} ${reason}`))).toEqual(
          new Set(["missing no_claim", "different value", "extra row_gone", "extra not_claimed"]),
        );
        expect(
          await one.owners(
            "USERNAMES",
            "user-10",
            "user-20",
            "wrong-1",
            "user-30",
            "user-120",
            "user-253",
            "just-now",
            "user-40",
            "renamed",
          ),
        ).toEqual([
          "user-10: ACTIVE of 1 for 10",
          "user-20: ACTIVE of 1 for 20",
          "wrong-1: free",
          "user-30: free",
          "user-120: free",
          "user-253: free",
          "just-now: ACTIVE of 1 for 900000",
          "user-40: ACTIVE of 1 for 40",
          "renamed: free",
        ]);

        await one.coordinator.advance(60_000);
        const again = await one.cell.verify({ ...options, apply: true });
        expect([again.status, kinds(again), changes(again)]).toEqual(["done", [0, 0, 0], [0, 0, 0]]);
        expect(formatReport(report)).toContain("found: 6 missing, 2 different, 5 extra");

        // After two hours, the recent drift is no longer recent.
        await one.coordinator.advance(2 * HOUR_MS);
        await one.update("accounts", { updated_at: one.ago(7_200) });
        const later = await one.cell.verify({ ...options, apply: true });
        expect(changes(later)).toEqual([1, 0, 2]);
        expect(await one.owners("USERNAMES", "just-now", "user-40", "renamed")).toEqual([
          "just-now: free",
          "user-40: free",
          "renamed: ACTIVE of 1 for 40",
        ]);
      });

    test("[V5] after `maxMs` a run saves its cursor, and the next run continues there", async () => {
      const one = current();
      await plant(one);
      const options = { ...inPages, apply: true, digests: false };
      const first = await one.cell.verify({ ...options, maxMs: 0 });
      expect([first.status, first.next]).toEqual([
        "out_of_time",
        { pass: "claim", source: USERS, after: "100" },
      ]);
      const second = await one.cell.verify({ ...options, maxMs: 0 });
      expect([second.status, second.resumed, second.next?.after]).toEqual(["out_of_time", true, "201"]);
      const rest = await one.cell.verify(options);
      expect([rest.status, rest.resumed, kinds(rest), changes(rest)]).toEqual([
        "done",
        true,
        [6, 2, 5],
        [8, 0, 7],
      ]);
      expect((await one.cell.verify(options)).resumed).toBe(false);
    });
  });

  test("[V4] records of equal ranges are not sent", async () => {
    const one = current();
    await one.addAccounts(1_000, "equal");
    const equal = await one.cell.verify({ apply: true });
    expect(equal.counts).toMatchObject({
      rows: 1_000,
      claims: 2_000,
      records: 0,
      ranges: 19,
      equalRanges: 19,
    });
    await one.lease({ destroys: [{ bucket: username("equal-500") }] });
    const one64th = await one.cell.verify({ apply: true, recentMs: 0 });
    expect(one64th.counts).toMatchObject({
      rows: 1_000,
      claims: 2_000,
      records: 127,
      created: 1,
      equalRanges: 18,
    });
  });

  test("claims of an empty table are extra too", async () => {
    const one = current();
    await one.lease({
      creates: [
        takes("nobody", 7),
        takes("no one", 70_000_000_000_000_000_000n.toString()),
        takes("no-one", "x7"),
      ],
    });
    await one.coordinator.advance(2 * HOUR_MS);
    const report = await one.cell.verify({ apply: true });
    expect([kinds(report), changes(report)]).toEqual([
      [0, 0, 3],
      [0, 0, 3],
    ]);
    expect(await one.records(USERS)).toEqual([]);
  });

  test("[V3] a name that moves to another row is never free in between", async () => {
    const one = current();
    await one.addAccounts(3, "swap");
    // The names move in a circle, without the SDK. The last one gets another spelling.
    await one.update("accounts", { username: "swap-1 moves" }, { id: 1 });
    await one.update("accounts", { username: "SWAP-1" }, { id: 3 });
    await one.update("accounts", { updated_at: one.ago(7_200) });
    const before = await one.records(USERS);
    const uuidOf = (records: typeof before, value: string): string | undefined =>
      records.find(({ bucket }) => bucket.type === "USERNAMES" && bucket.value.toLowerCase() === value)?.uuid;
    const report = await one.cell.verify({ apply: true });
    expect(changes(report)).toEqual([1, 1, 1]);
    expect(await one.owners("USERNAMES", "SWAP-1", "swap-1 moves", "swap-3")).toEqual([
      "SWAP-1: ACTIVE of 1 for 3",
      "swap-1 moves: ACTIVE of 1 for 1",
      "swap-3: free",
    ]);
    // A claim that was released and created again would have another UUID.
    expect(uuidOf(await one.records(USERS), "swap-1")).toBe(uuidOf(before, "swap-1"));
  });

  test("[V3] a name can also move between segments and between tables", async () => {
    const one = current();
    await one.addAccounts(30, "far");
    await one.insert("emails", [{ owner: 1, email: "a@x.io" }]);
    await one.lease({
      creates: [
        {
          bucket: { type: "EMAILS", value: "a@x.io" },
          subject: { type: "USER", id: "1" },
          source: { type: USERS, id: "4" },
        },
      ],
    });
    await one.update("accounts", { username: "gone" }, { id: 2 });
    await one.update("accounts", { username: "far-2" }, { id: 29 });
    await one.age();
    const report = await one.cell.verify({ apply: true, pageRows: 5, rangeRows: 2, digestRanges: 3 });
    expect([report.status, changes(report)]).toEqual(["done", [1, 2, 1]]);
    expect(await one.owners("USERNAMES", "far-2", "far-29", "gone")).toEqual([
      "far-2: ACTIVE of 1 for 29",
      "far-29: free",
      "gone: ACTIVE of 1 for 2",
    ]);
    expect((await one.records("RAILS_TABLE_EMAILS")).map(({ bucket }) => bucket.value)).toEqual(["a@x.io"]);
  });

  test("a name that another cell holds is reported and skipped", async () => {
    const one = current();
    await one.addAccounts(5, "mine");
    await one.lease({ destroys: [{ bucket: username("mine-2") }, { bucket: username("mine-4") }] });
    await one.lease({ creates: [takes("MINE-2", 77)] }, one.other());
    const plan = await one.cell.verify({ recentMs: 0 });
    expect(plan.items.map(brief).toSorted()).toEqual([
      "create mine-2 (no_claim) skipped: other_cell",
      "create mine-4 (no_claim) planned",
    ]);
    const report = await one.cell.verify({ apply: true, recentMs: 0 });
    expect([report.status, report.counts.otherCell, changes(report)]).toEqual(["done", 1, [1, 0, 0]]);
    expect(await one.owners("USERNAMES", "mine-2", "mine-4")).toEqual([
      "mine-2: ACTIVE of 2",
      "mine-4: ACTIVE of 1 for 4",
    ]);
  });

  test("two rows with the same name, and values that are not names, are reported", async () => {
    const one = current();
    await one.addAccounts(3, "twice");
    await one.update("accounts", { username: "TWICE-1" }, { id: 2 });
    await one.update("accounts", { username: "not\u0007a name" }, { id: 3 });
    await one.age();
    const report = await one.cell.verify({ apply: true });
    expect(report.items.map(brief).toSorted()).toEqual([
      "destroy twice-2 (value) done",
      "destroy twice-3 (not_claimed) done",
      "none TWICE-1 (two_rows) skipped: duplicate",
      "none not\u0007a name (not_a_name) skipped: unnameable",
    ]);
    // The same holds if the rows are not read in the same page.
    const apart = await one.cell.verify({ apply: true, pageRows: 1, digests: false });
    expect([apart.counts.duplicates, changes(apart)]).toEqual([1, [0, 0, 0]]);
    expect(await one.owners("USERNAMES", "twice-1")).toEqual(["twice-1: ACTIVE of 1 for 1"]);
  });

  test("[V3] a backfill claims a name once if two rows use it, and reports the other row", async () => {
    const one = current();
    const old = { updated_at: one.ago(86_400) };
    await one.insert(
      "accounts",
      ["Ada", "ada", "Bob"].map((value) => ({ username: value, ...old })),
    );
    const filled = await one.cell.verify({ apply: true, maxShare: 1 });
    expect([filled.counts.duplicates, filled.counts.recent, changes(filled)]).toEqual([1, 0, [5, 0, 0]]);
    expect(filled.items.map(brief)).toContain("replace ada (row) skipped: duplicate");
    expect(await one.owners("USERNAMES", "ada", "bob")).toEqual([
      "ada: ACTIVE of 1 for 1",
      "bob: ACTIVE of 1 for 3",
    ]);
  });

  test("[V5] needs approval for a larger share, unless `maxShare` allows it beforehand", async () => {
    const one = current();
    for (let at = 0; at < 600; at += 100)
      await one.insert(
        "accounts",
        Array.from({ length: 100 }, (_, index) => ({
          username: `old-${at + index}`,
          updated_at: one.ago(86_400),
        })),
      );
    const asked = await one.cell.verify({ apply: true });
    expect([asked.status, changes(asked), asked.approvalReason]).toEqual([
      "needs_approval",
      [0, 0, 0],
      "1200 of 1200 claims seen so far would change, and `maxShare` allows 0.1",
    ]);
    expect(await one.records(USERS)).toEqual([]);
    const few = await one.cell.verify({
      apply: true,
      maxShare: 1,
      maxChanges: 700,
      pageRows: 200,
      rangeRows: 100,
      digestRanges: 1,
    });
    expect([few.status, few.approvalReason]).toEqual([
      "needs_approval",
      "800 claims would change, and `maxChanges` allows 700",
    ]);
    const seen: number[] = [];
    const filled = await one.cell.verify({
      apply: true,
      maxShare: 1,
      onProgress: ({ rows, totalRows }) => void (totalRows > 0 && seen.push(rows / totalRows)),
    });
    expect([filled.status, filled.counts.created]).toEqual(["done", 1_200]);
    expect(seen.at(-1)).toBe(1);
    expect((await one.records(USERS)).length).toBe(1_200);
    expect(await one.client.leases.list().all()).toEqual([]);
  });

  test("[V5] an aborted run is continued from its saved cursor", async () => {
    const one = current();
    await one.addAccounts(60, "cut");
    await one.lease({ destroys: [5, 55].map((id) => ({ bucket: username(`cut-${id}`) })) });
    const options = { apply: true, recentMs: 0, pageRows: 10, rangeRows: 5, digestRanges: 2 };
    let begins = 0;
    one.network.fate = ({ operation }) => (operation === "begin" && (begins += 1) > 1 ? "refuse" : "deliver");
    const aborted = await one.cell.verify(options).catch((error: unknown) => error);
    expect(aborted).toBeInstanceOf(VerificationAborted);
    expect((aborted as VerificationAborted).report.next).toEqual({
      pass: "claim",
      source: USERS,
      after: "50",
    });
    one.network.forget();
    const rest = await one.cell.verify(options);
    expect([rest.status, rest.resumed, rest.counts.rows, changes(rest)]).toEqual([
      "done",
      true,
      60,
      [2, 0, 0],
    ]);
    expect(await one.owners("USERNAMES", "cut-5", "cut-55")).toEqual([
      "cut-5: ACTIVE of 1 for 5",
      "cut-55: ACTIVE of 1 for 55",
    ]);
    // No lease of a refused begin is still open.
    expect(await one.client.leases.list().all()).toEqual([]);
  });

  test("[B10] a claim that was destroyed and created again in the meantime is not destroyed", async () => {
    const one = current();
    await one.addAccounts(2, "twin");
    await one.delete("accounts", { id: 2 });
    let isLast = false;
    const extras: string[] = [];
    one.network.before = async ({ operation }) => {
      if (operation !== "begin" || !isLast) return;
      isLast = false;
      extras.push("begun");
      // After the claim was read, its name is claimed again, with the same id and source.
      await one.lease({ destroys: [{ bucket: username("twin-2") }] });
      await one.lease({ creates: [takes("twin-2", 2)] });
    };
    const report = await one.cell.verify({
      apply: true,
      onProgress: ({ source: its }) => void (isLast ||= its === "RAILS_TABLE_ORGANIZATIONS"),
    });
    expect(extras).toEqual(["begun"]);
    expect(report.items.map(brief)).toEqual([
      "destroy twin-2 (row_gone) skipped: changed",
      "destroy 2 (row_gone) done",
    ]);
    expect(await one.owners("USERNAMES", "twin-2")).toEqual(["twin-2: ACTIVE of 1 for 2"]);
  });

  test("[A3] slots limit how many cells verify at a time, and are released at the end", async () => {
    const one = current();
    const slots = ["11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"];
    await one.other().verificationSlots.take(slots[0] ?? "");
    expect((await one.cell.verify()).status).toBe("done");
    expect((await one.cell.verify()).status).toBe("done");
    await one.client.verificationSlots.take(slots[1] ?? "");
    const none = await one.cell.verify();
    expect([none.status, none.retryAfterMs !== undefined]).toEqual(["no_slot", true]);
  });
}
