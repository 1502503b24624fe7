/** How runs end, and where the next run continues. */
import { describe, expect, test, vi } from "vitest";
import { claimable } from "../../../../../src/users/cell/claimable.ts";
import {
  numbers,
  type VerifiedCell,
} from "../../../../../src/users/cell/conformance/verification/verified-cell.ts";
import { formatReport } from "../../../../../src/users/cell/verification/format.ts";
import type { VerificationProgress } from "../../../../../src/users/cell/verification/options.ts";

const HOUR_MS = 3_600_000;
const USERS = "RAILS_TABLE_USERS";
const EMAILS = "RAILS_TABLE_EMAILS";

export function stopAndResumeSuite(current: () => VerifiedCell): void {
  describe("continuing", () => {
    test("[V5] a run can be stopped before it begins, and between tables", async () => {
      const one = current();
      await one.addAccounts(3, "stop");
      await one.addEmails(1, 3, "stop");
      await one.update("accounts", { bot: true });
      await one.age();
      const none = await one.cell.verify({ apply: true, signal: AbortSignal.abort() });
      expect([none.status, none.counts.rows, await one.savedCursor()]).toEqual(["stopped", 0, undefined]);
      const first = await one.cell.verify({ apply: true, maxMs: 0 });
      expect([first.status, first.next]).toEqual([
        "out_of_time",
        { pass: "claim", source: EMAILS, after: "" },
      ]);
      expect(await one.savedCursor()).toMatchObject(first.next ?? {});
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

    test("a dry run that reaches `maxMs` saves no cursor", async () => {
      const one = current();
      await one.addAccounts(50, "dry");
      const report = await one.cell.verify({ maxMs: 0, pageRows: 10, rangeRows: 10, digestRanges: 2 });
      expect([report.status, report.next, await one.savedCursor()]).toEqual([
        "out_of_time",
        undefined,
        undefined,
      ]);
      expect(formatReport(report)).not.toContain("next");
    });

    test("[V5] `maxMs` counts from the start of the run, however old its process is", async () => {
      const one = current();
      await one.addAccounts(3, "old");
      const now = performance.now.bind(performance);
      const clock = vi.spyOn(performance, "now").mockImplementation(() => 2 * HOUR_MS + now());
      const report = await one.cell.verify({ maxMs: HOUR_MS }).finally(() => clock.mockRestore());
      expect(report.status).toBe("done");
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
