import { describe, expect, test } from "vitest";
import { DeferredLeases, noDeferred, type DeferredPorts } from "../../../src/users/cell/deferred.ts";
import type { Deferred } from "../../../src/users/cell/local.ts";
import type { LeaseState } from "../../../src/users/cell/remote-leases.ts";
import { unknown, type Answer, type Refused } from "../../../src/users/client/answer.ts";
import type { Batch, Conflict } from "../../../src/users/client/api-types.ts";
import { refusal } from "../../../src/users/cell/conformance/local-leases.ts";

const batch: Batch = {
  destroys: ["a", "b", "c"].map((value) => ({ bucket: { type: "ROUTES", value } })),
  allow_missing: true,
};
const conflict = (index: number, kind: Conflict["kind"]): Conflict => ({
  list: "destroys",
  index,
  kind,
  bucket: { type: "ROUTES", value: "x" },
});
const refused = (...conflicts: Conflict[]): Refused => ({
  ...refusal({ status: 409, code: "FAILED_PRECONDITION", detail: "" }),
  conflicts,
});
const limit = (status: number): Refused => ({
  ...refusal({ status, code: "RESOURCE_EXHAUSTED", detail: "" }),
  retryable: status === 429,
});
const granted: Answer<LeaseState> = { kind: "ok", value: "GRANTED" };
const committed: Answer<LeaseState> = { kind: "ok", value: "COMMITTED" };

/** The rows of deferred leases. UUIDs made by a run sort after the ids that the tests use. */
class Rows implements DeferredPorts {
  readonly all: Map<string, Deferred>;
  /** Runs before a row is replaced, as a concurrent run would. */
  beforeReplace: () => void = () => {};

  constructor(...uuids: string[]) {
    this.all = new Map(uuids.map((uuid) => [uuid, { uuid, batch }]));
  }

  async listDeferred(page: { afterUuid: string; limit: number }): Promise<Deferred[]> {
    const uuids = [...this.all.keys()].toSorted().filter((uuid) => uuid > page.afterUuid);
    return uuids.slice(0, page.limit).flatMap((uuid) => this.all.get(uuid) ?? []);
  }

  async replaceDeferred(uuid: string, next: Deferred | undefined): Promise<boolean> {
    this.beforeReplace();
    if (!this.all.delete(uuid)) return false;
    if (next !== undefined) this.all.set(next.uuid, next);
    return true;
  }

  async remove(uuid: string): Promise<void> {
    this.all.delete(uuid);
  }
}

interface Answers {
  /** Answers of the begins, in order. Further begins are granted. */
  begins?: readonly Answer<LeaseState>[];
  commit?: Answer<LeaseState>;
}

async function run(rows: Rows, { begins = [], commit = committed }: Answers = {}) {
  const given = new Set(rows.all.keys());
  const asked: string[] = [];
  const leases = {
    begin: async (uuid: string, { destroys = [] }: Batch) => {
      asked.push(
        `${given.has(uuid) ? uuid : "another"}: ${destroys.map(({ bucket }) => bucket.value).join("")}`,
      );
      return begins[asked.length - 1] ?? granted;
    },
    commit: async () => commit,
  };
  const reported: string[] = [];
  const counters = await new DeferredLeases(rows, leases, (uuid) =>
    reported.push(given.has(uuid) ? uuid : "another"),
  ).runAll();
  return {
    asked,
    counters,
    reported,
    rows: [...rows.all.keys()].map((uuid) => (given.has(uuid) ? uuid : "another")),
  };
}

test("begins, commits, and removes the row", async () => {
  const counters = { ...noDeferred(), done: 1 };
  expect(await run(new Rows("0"))).toEqual({ asked: ["0: abc"], counters, reported: [], rows: [] });
  // A process died between the commit and the removal of the row.
  expect(await run(new Rows("0"), { begins: [committed] })).toMatchObject({ counters, rows: [] });
});

test("runs all leases, page by page", async () => {
  const uuids = Array.from({ length: 250 }, (_, index) => `0-${1_000 + index}`);
  const { asked, counters, rows } = await run(new Rows(...uuids));
  expect(asked).toEqual(uuids.map((uuid) => `${uuid}: abc`));
  expect(counters).toEqual({ ...noDeferred(), done: 250 });
  expect(rows).toEqual([]);
});

test("drops names that somebody else holds, and begins the rest under another UUID", async () => {
  const { asked, counters, rows } = await run(new Rows("0"), {
    begins: [refused(conflict(0, "not_owner"), conflict(2, "mismatch"))],
  });
  expect(asked).toEqual(["0: abc", "another: b"]);
  expect(counters).toEqual({ ...noDeferred(), done: 1, dropped: 2 });
  expect(rows).toEqual([]);
  const nothing = refused(...[0, 1, 2].map((index) => conflict(index, "not_owner")));
  expect(await run(new Rows("0"), { begins: [nothing] })).toMatchObject({
    asked: ["0: abc"],
    counters: { ...noDeferred(), done: 1, dropped: 3 },
    rows: [],
  });
});

test.each<{ what: string; closed: Answer<LeaseState> }>([
  { what: "refused", closed: { ...refused(), reason: "LEASE_ROLLED_BACK" } },
  { what: "answered with ROLLED_BACK", closed: { kind: "ok", value: "ROLLED_BACK" } },
])("takes another UUID if the lease was rolled back and its begin is $what", async ({ closed }) => {
  expect(await run(new Rows("0"), { begins: [closed] })).toMatchObject({
    asked: ["0: abc", "another: abc"],
    counters: { ...noDeferred(), done: 1 },
    rows: [],
  });
});

test("a lease whose conflicts keep changing is postponed, reported, and handled once per run", async () => {
  const closed = { ...refused(), reason: "LEASE_ROLLED_BACK" };
  expect(await run(new Rows("0"), { begins: [closed, closed, closed] })).toEqual({
    asked: ["0: abc", "another: abc", "another: abc"],
    counters: { ...noDeferred(), postponed: 1 },
    reported: ["another"],
    rows: ["another"],
  });
});

describe("two concurrent runs of one lease", () => {
  test.each<{ what: string; begun: Answer<LeaseState> }>([
    { what: "the lease was rolled back", begun: { ...refused(), reason: "LEASE_ROLLED_BACK" } },
    { what: "a name belongs to another cell", begun: refused(conflict(0, "not_owner")) },
    {
      what: "no name remains to be released",
      begun: refused(...[0, 1, 2].map((index) => conflict(index, "not_owner"))),
    },
  ])("the slower one stops and counts nothing: $what", async ({ begun }) => {
    const rows = new Rows("0", "1");
    rows.beforeReplace = () => void rows.all.delete("0");
    expect(await run(rows, { begins: [begun] })).toEqual({
      asked: ["0: abc", "1: abc"],
      counters: { ...noDeferred(), done: 1 },
      reported: [],
      rows: [],
    });
  });
});

describe("a begin that fails", () => {
  test.each<{ what: string; begun: Answer<LeaseState>; as: "postponed" | "refused" }>([
    { what: "a name is leased", begun: refused(conflict(0, "leased")), as: "postponed" },
    {
      what: "it was refused after an attempt without an answer",
      begun: { ...refused(conflict(0, "not_owner")), outcomeKnown: false },
      as: "postponed",
    },
    {
      what: "the error is retryable",
      begun: { ...refusal({ status: 500, code: "INTERNAL", detail: "" }), retryable: true },
      as: "postponed",
    },
    { what: "the cell is frozen", begun: { ...refused(), reason: "CELL_FROZEN" }, as: "refused" },
    { what: "the batch is too large", begun: limit(413), as: "refused" },
  ])("is counted as $as, and the next lease is handled: $what", async ({ begun, as }) => {
    expect(await run(new Rows("0", "1"), { begins: [begun] })).toEqual({
      asked: ["0: abc", "1: abc"],
      counters: { ...noDeferred(), done: 1, [as]: 1 },
      reported: ["0"],
      rows: ["0"],
    });
  });

  test.each<{ what: string; begun: Answer<LeaseState> }>([
    { what: "no answer", begun: unknown("no answer") },
    { what: "a limit of the cell", begun: limit(429) },
    { what: "a limit of this process", begun: limit(0) },
  ])("ends the run if the next lease would fail too: $what", async ({ begun }) => {
    expect(await run(new Rows("0", "1"), { begins: [begun] })).toEqual({
      asked: ["0: abc"],
      counters: { ...noDeferred(), postponed: 1 },
      reported: ["0"],
      rows: ["0", "1"],
    });
  });
});

test("a commit without an answer is postponed, and the next run repeats the begin", async () => {
  const rows = new Rows("0");
  expect(await run(rows, { commit: unknown("no answer") })).toMatchObject({
    counters: { ...noDeferred(), postponed: 1 },
    reported: ["0"],
    rows: ["0"],
  });
  expect(await run(rows)).toMatchObject({
    asked: ["0: abc"],
    counters: { ...noDeferred(), done: 1 },
    rows: [],
  });
});
