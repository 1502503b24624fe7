/** The steps of docs/guides/backfill.md. */
import { describe, expect, test } from "vitest";
import type { VerifiedCell } from "../../../../../src/users/cell/conformance/verification/verified-cell.ts";
import { formatReport } from "../../../../../src/users/cell/verification/format.ts";
import {
  isDecision,
  type VerificationItem,
  type VerificationReport,
} from "../../../../../src/users/cell/verification/report.ts";

const ROWS = 1_300;
/** Rows that need a decision. More ordinary rows come before them than a report keeps. */
const TAKEN = 1_200;
const TWIN = 1_201;
const UNNAMEABLE = 1_202;

const decisionsOf = ({ items }: VerificationReport): string[] =>
  items
    .filter(isDecision)
    .map(({ skipReason, source, otherCell, otherRow }) =>
      [source.id, skipReason, otherCell ?? otherRow?.id].join(" "),
    )
    .toSorted();

export function backfillSuite(current: () => VerifiedCell): void {
  const rename = (id: number, username: string): Promise<unknown> =>
    current().cell.transaction((tx) =>
      tx.update(current().tables.accounts, current().where("accounts", { id }), { username }),
    );

  async function addOldRows(): Promise<void> {
    const one = current();
    const names = Array.from({ length: ROWS }, (_, index) => `user-${index + 1}`);
    names[TWIN - 1] = "USER-7";
    names[UNNAMEABLE - 1] = "not\u0007a name";
    for (let at = 0; at < ROWS; at += 500)
      await one.insert(
        "accounts",
        names.slice(at, at + 500).map((username) => ({ username })),
      );
    await one.age();
    const subject = { type: "USER", id: "1" } as const;
    const bucket = { type: "USERNAMES", value: `User-${TAKEN}` } as const;
    await one.lease(
      { creates: [{ bucket, subject, source: { type: "RAILS_TABLE_USERS", id: "1" } }] },
      one.other(),
    );
  }

  describe("the backfill guide", () => {
    test("the rows that a person must decide about come first, and say who has the name", async () => {
      const one = current();
      await addOldRows();
      const dryRun = await one.cell.verify();
      expect(decisionsOf(dryRun)).toEqual([
        `${TAKEN} other_cell 2`,
        `${TWIN} duplicate 7`,
        `${UNNAMEABLE} unnameable `,
      ]);
      expect(dryRun.items.findIndex((item) => !isDecision(item))).toBe(3);
      // Each account has a name and an id to claim.
      expect([dryRun.items.length, dryRun.itemsOmitted, dryRun.decisionsOmitted]).toEqual([
        1_000 + 3,
        2 * ROWS - 3 - 1_000,
        0,
      ]);
      const lines = formatReport(dryRun).split("\n");
      const at = lines.findIndex((line) => line.startsWith("a person must decide about 3"));
      expect(
        lines
          .slice(at + 1, at + 4)
          .map((line) => line.split(": ").at(-1) ?? "")
          .toSorted(),
      ).toEqual([
        "RAILS_TABLE_USERS 7 has the name too",
        "cell 2 has the name",
        "the value cannot be a name (U+0007 at index 3 is a control character.)",
      ]);

      const filled = await one.cell.verify({ apply: true, maxShare: 1 });
      expect([filled.status, filled.counts.created]).toEqual(["done", 2 * ROWS - 3]);
      expect(decisionsOf(filled)).toEqual(decisionsOf(dryRun));

      await rename(TAKEN, "another");
      await rename(TWIN, "twin");
      await rename(UNNAMEABLE, "nameable");
      const last = await one.cell.verify({ recentMs: 0 });
      expect([last.status, last.items]).toEqual(["done", []]);
    });

    test("the report has a limit for them, and another one for all other items", async () => {
      const one = current();
      await addOldRows();
      const seen: VerificationItem[] = [];
      const onItem = (item: VerificationItem): void => void seen.push(item);
      const report = await one.cell.verify({ maxItems: 2, maxDecisions: 1, onItem });
      expect(report.items.map(isDecision)).toEqual([true, false, false]);
      expect([report.decisionsOmitted, report.itemsOmitted]).toEqual([2, 2 * ROWS - 3 - 2]);
      expect([seen.length, seen.filter(isDecision).length]).toEqual([2 * ROWS, 3]);
      const text = formatReport(report);
      expect(text).toContain("… and 2 more to decide about");
      expect(text).toContain(`… and ${(2 * ROWS - 3 - 2).toLocaleString("en")} more`);
      expect(formatReport(report, { maxItems: 1 })).toContain(
        `… and ${(2 * ROWS - 3 - 1).toLocaleString("en")} more`,
      );
      expect(formatReport(report, { maxDecisions: 0 })).toContain("… and 3 more to decide about");
    });
  });
}
