import { expect, test } from "vitest";
import { formatReport } from "../../../../src/users/cell/verification/format.ts";
import {
  noCounts,
  type VerificationItem,
  type VerificationReport,
} from "../../../../src/users/cell/verification/report.ts";

const counts = {
  ...noCounts(),
  rows: 2_500,
  claims: 5_000,
  records: 1_200,
  ranges: 40,
  equalRanges: 38,
  missing: 6,
  different: 2,
  extra: 5,
  otherCell: 1,
  duplicates: 1,
  recent: 3,
};
const source = { type: "RAILS_TABLE_USERS", id: "20" } as const;
const subject = { type: "USER", id: "20" } as const;
const report: VerificationReport = {
  status: "needs_approval",
  applied: true,
  cell: "7",
  resumed: true,
  startedAt: "2026-11-20T12:00:00.000Z",
  durationMs: 1_234,
  counts,
  tables: { RAILS_TABLE_USERS: counts },
  items: [
    {
      kind: "missing",
      reason: "no_claim",
      source,
      bucket: { type: "USERNAMES", value: "ada\n" },
      subject,
      action: "create",
      outcome: "done",
    },
    {
      kind: "different",
      reason: "row",
      source,
      bucket: { type: "USERNAMES", value: "Eve" },
      subject,
      claim: { value: "eve", subject, source: { ...source, id: "3" }, epoch: 9 },
      action: "replace",
      outcome: "skipped",
      skipReason: "other_cell",
      otherCell: "9",
    },
  ],
  decisionsOmitted: 0,
  itemsOmitted: 1_000,
  next: { pass: "claim", source: "RAILS_TABLE_USERS", after: "1000" },
  approvalReason: "1200 of 1200 claims seen so far would change, and `maxShare` allows 0.1",
};

test("formatReport writes a report as text", () => {
  expect(formatReport(report).split("\n")).toEqual([
    "Verification of cell 7, resumed: stopped, because it needs approval: " +
      "1200 of 1200 claims seen so far would change, and `maxShare` allows 0.1",
    "2,500 rows with 5,000 names in 1.2 s; 1,200 records read, 38 of 40 ranges equal by digest",
    "found: 6 missing, 2 different, 5 extra",
    "done: 0 claims created, 0 replaced, 0 destroyed",
    "skipped: 1 held by another cell, 1 used by two rows, 3 changed recently",
    "",
    "a person must decide about 2 names:",
    '! USERNAMES "Eve" of RAILS_TABLE_USERS 20 (claimed as "eve" by RAILS_TABLE_USERS 3): ' +
      "the claim belongs to another row; skipped: cell 9 has the name",
    "… and 1 that earlier runs have found: a dry run lists them",
    "",
    String.raw`+ USERNAMES "ada\n" of RAILS_TABLE_USERS 20: the row's name has no claim; done`,
    "… and 1,000 more",
    "the next run continues with RAILS_TABLE_USERS, after id 1000 (pass: claim)",
  ]);
});

test.each([
  {
    item: { kind: "unnameable", reason: "not_a_name", skipReason: "unnameable", detail: "a reason" },
    end: "the value cannot be a name (a reason)",
  },
  {
    item: { skipReason: "duplicate", otherRow: { ...source, id: "8" } },
    end: "; skipped: RAILS_TABLE_USERS 8 has the name too",
  },
  {
    item: { skipReason: "duplicate", otherRow: source },
    end: "; skipped: another column of the row has the name too",
  },
  {
    item: { skipReason: "not_verified", otherRow: { type: "RAILS_TABLE_EMAILS", id: "8" } },
    end: "; skipped: the claim belongs to RAILS_TABLE_EMAILS 8, which is not verified in this run",
  },
  { item: { skipReason: "other_cell" }, end: "; skipped: another cell has the name" },
] as { item: Partial<VerificationItem>; end: string }[])("an item says who has the name: $end", (given) => {
  const [first] = report.items as [VerificationItem];
  const items: VerificationItem[] = [{ ...first, outcome: "skipped", ...given.item }];
  expect(formatReport({ ...report, items })).toContain(`${given.end}\n`);
});

test("a report can be written as JSON", () => {
  expect(JSON.parse(JSON.stringify(report))).toEqual(report);
});
