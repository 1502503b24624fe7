import { describe, expect, test } from "vitest";
import { compare } from "../../../src/cell/verification/compare.ts";
import type { Drift } from "../../../src/cell/verification/drift.ts";
import type { VerifiedRow } from "../../../src/cell/verification/ports.ts";
import type { Record as ClaimRecord } from "../../../src/client/api-types.ts";

const NOW_MS = Date.parse("2026-11-20T12:00:00Z");
const HOUR_MS = 3_600_000;
const recency = { recentMs: HOUR_MS, asOfMs: NOW_MS };
const OLD_MS = 48 * HOUR_MS;

const row = (id: string, names: readonly string[], ageMs: number | undefined = OLD_MS): VerifiedRow => ({
  id,
  ageMs,
  claims: names.map((value) => ({
    bucket: { type: "USERNAMES", value },
    subject: { type: "USER", id },
    source: { type: "RAILS_TABLE_USERS", id },
    attribute: "username",
  })),
});

const record = (
  value: string,
  id: string,
  more: Partial<ClaimRecord> & { ageMs?: number } = {},
): ClaimRecord => {
  const { ageMs = OLD_MS, ...rest } = more;
  const at = new Date(NOW_MS - ageMs).toISOString();
  return {
    uuid: "u",
    bucket: { type: "USERNAMES", value },
    subject: { type: "USER", id },
    source: { type: "RAILS_TABLE_USERS", id },
    cell_id: "1",
    epoch: 5,
    status: "ACTIVE",
    lease_uuid: null,
    created_at: at,
    updated_at: at,
    ...rest,
  };
};

const brief = (drift: Drift): string =>
  `${drift.action} ${drift.action === "destroy" ? drift.record.bucket.value : drift.want.bucket.value}: ${drift.kind} ${drift.because}`;
const found = (rows: VerifiedRow[], records: ClaimRecord[]) => {
  const { drifts, wanted, recent, leased, duplicates } = compare(rows, records, recency);
  return {
    drifts: drifts.map(brief),
    wanted,
    recent,
    leased,
    duplicates: duplicates.map(({ source }) => source.id),
  };
};
const none = { drifts: [], wanted: [], recent: 0, leased: 0, duplicates: [] };

describe("compare", () => {
  test("what says the same is no drift, whatever the order", () => {
    expect(found([row("1", ["a"]), row("2", ["b"])], [record("b", "2"), record("a", "1")])).toEqual(none);
  });

  test("every kind", () => {
    const rows = [
      row("1", ["missing"]),
      row("2", ["new name"]),
      row("3", ["Spelled"]),
      row("4", ["subject"]),
      row("5", []),
    ];
    const records = [
      record("old name", "2"),
      record("spelled", "3"),
      record("subject", "4", { subject: { type: "USER", id: "9" } }),
      record("not claimed", "5"),
      record("gone", "6"),
    ];
    expect(found(rows, records).drifts).toEqual([
      "create missing: missing no_claim",
      "create new name: different value",
      "replace Spelled: different spelling",
      "replace subject: different subject",
      "destroy old name: different value",
      "destroy not claimed: extra not_claimed",
      "destroy gone: extra row_gone",
    ]);
  });

  test("[V1] a young row keeps its claims, however old those are, and its name is wanted", () => {
    expect(found([row("1", ["new"], 1_000)], [record("old", "1")])).toEqual({
      ...none,
      recent: 1,
      wanted: ["USERNAMES\nnew"],
    });
    // Also where another row could take the name over.
    expect(found([row("1", ["new"], 1_000), row("2", ["OLD"])], [record("old", "1")])).toMatchObject({
      drifts: [],
      wanted: ["USERNAMES\nnew", "USERNAMES\nold"],
    });
  });

  test("[V1] from the clock of the database being behind follows youth, not age", () => {
    expect(found([row("1", ["new"], -5_000)], []).drifts).toEqual([]);
  });

  test("[V1] a young claim is left alone, and one at the very age is not", () => {
    expect(found([], [record("x", "1", { ageMs: HOUR_MS - 1 })])).toEqual({ ...none, recent: 1 });
    expect(found([], [record("x", "1", { ageMs: HOUR_MS })]).drifts).toEqual(["destroy x: extra row_gone"]);
    expect(found([row("2", ["x"])], [record("x", "1", { ageMs: 5 })])).toEqual({
      ...none,
      recent: 1,
      wanted: ["USERNAMES\nx"],
    });
  });

  test("a claim that a lease is at work on is left alone: being made, given up, or replaced", () => {
    const creating = record("a", "1", { status: "LEASE_CREATING", lease_uuid: "l" });
    const destroying = record("b", "2", { status: "LEASE_DESTROYING", lease_uuid: "l" });
    const replacing = record("c", "3", { lease_uuid: "l" });
    expect(found([], [creating, destroying, replacing])).toEqual({ ...none, leased: 3 });
    expect(found([row("9", ["c"])], [replacing])).toEqual({ ...none, leased: 1, wanted: ["USERNAMES\nc"] });
  });

  test("[V3] a name that another row has now is replaced, not given up; one that both have is not touched", () => {
    expect(found([row("1", ["b"]), row("2", ["a"])], [record("a", "1"), record("b", "2")]).drifts).toEqual([
      "replace b: different row",
      "replace a: different row",
    ]);
    expect(found([row("1", ["A"]), row("2", ["a"])], [record("A", "1")])).toEqual({
      ...none,
      duplicates: ["2"],
      wanted: ["USERNAMES\na"],
    });
  });

  test("a row that does not tell when it was changed is not young", () => {
    const untold = { ...row("1", ["a"]), ageMs: undefined };
    expect(found([untold], []).drifts).toEqual(["create a: missing no_claim"]);
  });
});
