/** Claims that no verified row has, but that must be kept. */
import { describe, expect, test } from "vitest";
import { claimable } from "../../../../../src/users/cell/claimable.ts";
import type { VerifiedCell } from "../../../../../src/users/cell/conformance/verification/verified-cell.ts";
import { VerificationAborted } from "../../../../../src/users/cell/verification/loop.ts";

const HOUR_MS = 3_600_000;
const USERS = "RAILS_TABLE_USERS";
const username = (value: string) => ({ type: "USERNAMES" as const, value });

export function keptClaimsSuite(current: () => VerifiedCell): void {
  describe("keeps", () => {
    test("a claim that a deferred lease is going to destroy", async () => {
      const one = current();
      await one.addAccounts(2, "later");
      one.network.fate = ({ operation }) => (operation === "begin" ? "refuse" : "deliver");
      await one.cell.transaction((tx) =>
        tx.deleteLater(one.tables.accounts, one.where("accounts", { id: 1 })),
      );
      one.network.forget();
      const report = await one.cell.verify({ apply: true, recentMs: 0 });
      expect([report.counts.extra, report.counts.destroyed, report.counts.leased]).toEqual([2, 0, 2]);
      expect(await one.owners("USERNAMES", "later-1")).toEqual(["later-1: ACTIVE of 1 for 1"]);
      await one.cell.reconcile();
      expect(await one.owners("USERNAMES", "later-1")).toEqual(["later-1: free"]);
    });

    test("a claim of a row without a subject", async () => {
      const one = current();
      const subjectless = claimable(one.tables.emails, {
        source: "RAILS_TABLE_EMAILS",
        subject: { type: "USER", id: ({ owner }) => (owner === 0 ? "" : owner) },
        attributes: { email: "EMAILS" },
      });
      const cell = one.open([subjectless]);
      await cell.transaction((tx) => tx.insert(one.tables.emails, { owner: 7, email: "a@x.io" }));
      await one.update("emails", { owner: 0 });
      const report = await cell.verify({ apply: true, recentMs: 0 });
      expect([report.counts.unnameable, report.counts.destroyed, report.counts.replaced]).toEqual([1, 0, 0]);
      expect(await one.owners("EMAILS", "a@x.io")).toEqual(["a@x.io: ACTIVE of 1 for 1"]);
    });

    test("a claim of a table or column that this run does not verify", async () => {
      const one = current();
      await one.addAccounts(1, "other");
      await one.insert("projects", [{ id: "p", path: "x" }]);
      const isOn = { value: true };
      const both = (tables: "both" | "projects") => {
        const its = claimable(one.tables.projects, {
          source: "RAILS_TABLE_PROJECTS",
          subject: { type: "PROJECT", id: "id" },
          attributes: { path: "USERNAMES" },
        });
        const theirs = claimable(one.tables.accounts, {
          source: USERS,
          subject: { type: "USER", id: "id" },
          attributes: { username: { bucket: "USERNAMES", enabled: () => isOn.value } },
        });
        return one.open(tables === "both" ? [its, theirs] : [its]);
      };
      await one.update("projects", { path: "other-1" });
      const options = { apply: true, recentMs: 0 };
      expect((await both("projects").verify(options)).items.map(({ skipReason }) => skipReason)).toEqual([
        "not_verified",
      ]);
      isOn.value = false;
      expect((await both("both").verify(options)).items.map(({ skipReason }) => skipReason)).toEqual([
        "not_verified",
      ]);
      isOn.value = true;
      expect((await both("both").verify(options)).items.map(({ skipReason }) => skipReason)).toEqual([
        "duplicate",
      ]);
      expect(await one.owners("USERNAMES", "other-1")).toEqual(["other-1: ACTIVE of 1 for 1"]);
    });

    test("[V3] a name that two rows use, if the row with the claim is renamed during the run", async () => {
      const one = current();
      await one.addAccounts(5, "pair");
      await one.delete("accounts", { id: 2 });
      await one.insert("accounts", [{ username: "PAIR-1", updated_at: one.ago(86_400) }]);
      let isLast = false;
      one.network.before = async ({ operation }) => {
        if (operation !== "other" || !isLast) return;
        isLast = false;
        await one.update("accounts", { username: "moved on", updated_at: one.ago(86_400) }, { id: 1 });
      };
      const report = await one.cell.verify({
        apply: true,
        digests: false,
        onProgress: ({ source }) => void (isLast ||= source === "RAILS_TABLE_PROJECTS"),
      });
      expect([report.counts.duplicates, report.counts.needed]).toEqual([1, 1]);
      expect(await one.owners("USERNAMES", "pair-1")).toEqual(["pair-1: ACTIVE of 1 for 1"]);
      const next = await one.cell.verify({ apply: true });
      expect([next.counts.replaced, next.counts.created]).toEqual([1, 1]);
      expect(await one.owners("USERNAMES", "pair-1", "moved on")).toEqual([
        "pair-1: ACTIVE of 1 for 6",
        "moved on: ACTIVE of 1 for 1",
      ]);
    });
  });

  test("an id that cannot be a source id aborts the run, and is named", async () => {
    const one = current();
    for (const id of ["", "a".repeat(129), "tab\there"]) {
      await one.delete("projects");
      await one.insert("projects", [{ id, path: "p" }]);
      const aborted = await one.cell.verify().catch((error: unknown) => error);
      expect(aborted).toBeInstanceOf(VerificationAborted);
      expect(String(aborted)).toContain(`of a row of projects, ${JSON.stringify(id)}`);
    }
    await one.delete("projects");
    await one.insert("accounts", [{ id: -5, username: "below" }]);
    expect(String(await one.cell.verify().catch((error: unknown) => error))).toContain(
      '"-5", is not a whole number, 0 or more',
    );
  });

  test("[V5] a run can pause within a segment with few rows and many records", async () => {
    const one = current();
    const ids = Array.from({ length: 40 }, (_, index) => index + 1);
    await one.lease({
      creates: ids.map((id) => ({
        bucket: username(`ghost-${id}`),
        subject: { type: "USER", id },
        source: { type: USERS, id },
      })),
    });
    await one.coordinator.advance(2 * HOUR_MS);
    const options = { apply: true, pageRows: 2 };
    const first = await one.cell.verify({ ...options, maxMs: 0 });
    expect([first.status, first.next]).toEqual([
      "out_of_time",
      { pass: "claim", source: USERS, after: "32" },
    ]);
    const stopped = await one.cell.verify({ ...options, signal: AbortSignal.abort() });
    expect(stopped.status).toBe("stopped");
    const rest = await one.cell.verify(options);
    expect([rest.status, rest.resumed, rest.counts.destroyed]).toEqual(["done", true, 40]);
  });

  test("a row with the same name in two columns has one claim, and keeps it", async () => {
    const one = current();
    const twice = claimable(one.tables.projects, {
      source: "RAILS_TABLE_PROJECTS",
      subject: { type: "PROJECT", id: "id" },
      attributes: { id: "ROUTES", path: "ROUTES" },
    });
    const cell = one.open([twice]);
    await one.insert("projects", [{ id: "tools", path: "Tools" }]);
    const first = await cell.verify({ apply: true, recentMs: 0 });
    expect([first.counts.created, first.counts.duplicates]).toEqual([1, 1]);
    const second = await cell.verify({ apply: true, recentMs: 0 });
    expect([second.counts.created, second.counts.replaced, second.counts.destroyed]).toEqual([0, 0, 0]);
  });

  test("a dry run reports rows with the same name, as a backfill does", async () => {
    const one = current();
    for (const name of ["Twin", "twin"])
      await one.insert("accounts", [{ username: name, updated_at: one.ago(86_400) }]);
    const plan = await one.cell.verify();
    expect([plan.counts.missing, plan.counts.duplicates]).toEqual([4, 1]);
    const filled = await one.cell.verify({ apply: true, recentMs: 0 });
    expect([filled.counts.created, filled.counts.duplicates]).toEqual([3, 1]);
  });
}
