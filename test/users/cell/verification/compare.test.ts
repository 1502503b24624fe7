import { describe, expect, test } from "vitest";
import { compare, type Drift } from "../../../../src/users/cell/verification/compare.ts";
import type { VerifiedRow } from "../../../../src/users/cell/verification/ports.ts";
import type { ClaimRecord } from "../../../../src/users/client/api-types.ts";
import { shipped } from "../../../support/types.ts";

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

const nameOf = (drift: Drift): string =>
  (drift.action === "destroy" ? drift.record : drift.want).bucket.value;
const brief = (drift: Drift): string => `${drift.action} ${nameOf(drift)}: ${drift.kind} ${drift.reason}`;
const found = (rows: VerifiedRow[], records: ClaimRecord[]) => {
  const { drifts, neededKeys, recent, leased, duplicates } = compare(rows, records, recency, shipped);
  return {
    drifts: drifts.map(brief),
    neededKeys,
    recent,
    leased,
    duplicates: duplicates.map(({ name, otherRow }) => `${name.source.id} like ${otherRow.id}`),
  };
};
const none = { drifts: [], neededKeys: [], recent: 0, leased: 0, duplicates: [] };

describe("compare", () => {
  test("another scope is a difference, and so is a scope that the row lacks", () => {
    const scoped = (scope: string): VerifiedRow => {
      const { claims, ...rest } = row("1", ["ada"]);
      return { ...rest, claims: claims.map((claim) => ({ ...claim, scope })) };
    };
    expect(found([scoped("9970")], [record("ada", "1", { scope: "9970" })])).toEqual(none);
    const different = { ...none, drifts: ["replace ada: different scope"] };
    expect(found([scoped("9970")], [record("ada", "1", { scope: "9971" })])).toMatchObject(different);
    expect(found([scoped("9970")], [record("ada", "1")])).toMatchObject(different);
    expect(found([row("1", ["ada"])], [record("ada", "1", { scope: "9970" })])).toMatchObject(different);
  });

  test("equal rows and records have no drift, in any order", () => {
    expect(found([row("1", ["a"]), row("2", ["b"])], [record("b", "2"), record("a", "1")])).toEqual(none);
  });

  test("finds every kind of drift", () => {
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

  test("[V1] a recent row keeps its claims, however old they are, and needs its name", () => {
    expect(found([row("1", ["new"], 1_000)], [record("old", "1")])).toEqual({
      ...none,
      recent: 1,
      neededKeys: ["USERNAMES\nnew"],
    });
    // The same holds if another row could take the name over.
    expect(found([row("1", ["new"], 1_000), row("2", ["OLD"])], [record("old", "1")])).toMatchObject({
      drifts: [],
      neededKeys: ["USERNAMES\nnew", "USERNAMES\nold"],
    });
  });

  test("[V1] a row from the future, because of a clock set back, is recent", () => {
    expect(found([row("1", ["new"], -5_000)], []).drifts).toEqual([]);
  });

  test("[V1] a recent claim is skipped, and one of exactly `recentMs` is not", () => {
    expect(found([], [record("x", "1", { ageMs: HOUR_MS - 1 })])).toEqual({ ...none, recent: 1 });
    expect(found([], [record("x", "1", { ageMs: HOUR_MS })]).drifts).toEqual(["destroy x: extra row_gone"]);
    expect(found([row("2", ["x"])], [record("x", "1", { ageMs: 5 })])).toEqual({
      ...none,
      recent: 1,
      neededKeys: ["USERNAMES\nx"],
    });
  });

  test("a claim that a lease creates, destroys or replaces is skipped", () => {
    const creating = record("a", "1", { status: "LEASE_CREATING", lease_uuid: "l" });
    const destroying = record("b", "2", { status: "LEASE_DESTROYING", lease_uuid: "l" });
    const replacing = record("c", "3", { lease_uuid: "l" });
    expect(found([], [creating, destroying, replacing])).toEqual({ ...none, leased: 3 });
    expect(found([row("9", ["c"])], [replacing])).toEqual({
      ...none,
      leased: 1,
      neededKeys: ["USERNAMES\nc"],
    });
  });

  test("[V3] a name that moved to another row is replaced, and one that both rows use is kept", () => {
    expect(found([row("1", ["b"]), row("2", ["a"])], [record("a", "1"), record("b", "2")]).drifts).toEqual([
      "replace b: different row",
      "replace a: different row",
    ]);
    expect(found([row("1", ["A"]), row("2", ["a"])], [record("A", "1")])).toEqual({
      ...none,
      duplicates: ["2 like 1"],
      neededKeys: ["USERNAMES\na"],
    });
  });

  test("a row without a time of change is not recent", () => {
    const untold = { ...row("1", ["a"]), ageMs: undefined };
    expect(found([untold], []).drifts).toEqual(["create a: missing no_claim"]);
  });
});
