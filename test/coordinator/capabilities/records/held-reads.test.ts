/**
 * What is answered about a name with a hold. A commit or rollback is answered before the shards have carried
 * it out (C3), so nothing may be answered from a hold without asking its ledger (R2, B8).
 */
import { describe, expect, test } from "vitest";
import type { ClaimRecord, LookupFound, Outcome } from "../../../../src/coordinator/kernel/messages.ts";
import type { ListRecordsAnswer } from "../../../../src/coordinator/capabilities/records/messages.ts";
import type { Result } from "../../../../src/coordinator/kernel/refusal.ts";
import { sourceOrder } from "../../../../src/common/source-order.ts";
import { isDecision, isPrepare, no } from "../../../support/calls.ts";
import { Cluster, type Call } from "../../../support/cluster.ts";
import { passHolds } from "../../../support/holds.ts";
import { beginRequest, decideRequest, keyOf, type OpSpec } from "../../../support/ops.ts";
import { bucketType, sourceType } from "../../../support/types.ts";

const source = { type: "RAILS_TABLE_USERS", id: "1" } as const;
const destroy: OpSpec = { kind: "destroy", value: "ada", subject: null, source: null };
const replace: OpSpec = { kind: "replace", value: "Ada", source };

class Names {
  readonly c: Cluster;

  private constructor(c: Cluster) {
    this.c = c;
  }

  /** Cell 1 owns `ada`. No sweep runs, so a hold stays until somebody asks about it. */
  static async start(): Promise<Names> {
    const names = new Names(await Cluster.start({ shards: 1, limits: { sweepAfterMs: 600_000 } }));
    await names.decide(await names.begin("1", { value: "ada", source }), "COMMITTED");
    await names.c.pass(10);
    return names;
  }

  tryBegin(cell: string, ...specs: OpSpec[]): Promise<Result<unknown>> {
    const { c } = this;
    return c.clock.runUntil(c.ledger(cell).object.begin(beginRequest(c.envelope, c.uuid(), specs)));
  }

  async begin(cell: string, ...specs: OpSpec[]): Promise<string> {
    const { c } = this;
    const lease = c.uuid();
    const begun = await c.clock.runUntil(c.ledger(cell).object.begin(beginRequest(c.envelope, lease, specs)));
    expect(begun).toMatchObject({ ok: true });
    return lease;
  }

  async decide(lease: string, outcome: Outcome): Promise<void> {
    const { c } = this;
    const decided = c.ledger("1").object.decide(decideRequest(c.envelope, lease, outcome));
    expect(await c.clock.runUntil(decided)).toMatchObject({ ok: true });
  }

  /** Decides a lease, and the shard is not told. */
  async decideUntold(lease: string, outcome: Outcome): Promise<void> {
    this.c.fate = (call) => (isDecision(call) ? "lose" : "deliver");
    await this.decide(lease, outcome);
    expect(this.c.holds()).toHaveLength(1);
  }

  lookup(): Promise<LookupFound | undefined> {
    return this.c.clock.runUntil(this.startLookup());
  }

  async startLookup(): Promise<LookupFound | undefined> {
    const { c } = this;
    const keys = [keyOf("ROUTES", "ada")];
    const answer = await c.shard(0).object.lookup({ ...c.envelope, keys });
    return answer.ok ? answer.value.found[0] : undefined;
  }

  /** A page of the records of cell 1, after one source id and up to another. */
  #list(after: string, upTo: string): Promise<Result<ListRecordsAnswer>> {
    const { c } = this;
    return c.shard(0).object.listRecords({
      ...c.envelope,
      cell: "1",
      sourceType: sourceType(source.type),
      bucketTypes: [bucketType("ROUTES")],
      after: sourceOrder(after),
      upTo: sourceOrder(upTo),
      cursor: null,
      limit: 500,
    });
  }

  async page(after: string, upTo: string): Promise<ClaimRecord[]> {
    const page = await this.c.clock.runUntil(this.#list(after, upTo));
    if (!page.ok) throw new Error(page.refusal.detail);
    return page.value.records;
  }

  /** What a page of the cell's records shows of `ada`, in the form of a lookup. */
  listed(): Promise<LookupFound | undefined> {
    return this.c.clock.runUntil(this.startListing());
  }

  async startListing(): Promise<LookupFound | undefined> {
    const page = await this.#list("0", "9");
    if (!page.ok) return page.refusal.code === "UNAVAILABLE" ? { kind: "unknown" } : undefined;
    const [record] = page.value.records;
    return record === undefined ? { kind: "none" } : { kind: "record", record };
  }

  /** From now on, the answers to inquiries arrive 40 ms after the ledger has written them. */
  delayAnswers(): void {
    const ledger = this.c.ledger("1").object;
    const { inquire } = ledger;
    const delayed: typeof inquire = async (message) => {
      const answer = await inquire(message);
      await new Promise<void>((arrive) => this.c.clock.after(40, arrive));
      return answer;
    };
    Object.assign(ledger, { inquire: delayed });
  }

  inquiries(): number {
    return this.c.messages("inquire").length;
  }
}

const record = (more: Partial<ClaimRecord>) => ({ kind: "record", record: expect.objectContaining(more) });
const free = { kind: "none" };
const unchanged = record({ value: "ada", status: "ACTIVE", lease: null });

describe.each([
  ["[R2] a lookup", (names: Names) => names.lookup()],
  ["[R3] [R2] a page of records", (names: Names) => names.listed()],
])("%s", (_, read) => {
  test.each([
    ["destroy", "COMMITTED", destroy, free],
    ["destroy", "ROLLED_BACK", destroy, unchanged],
    ["replace", "COMMITTED", replace, record({ value: "Ada", status: "ACTIVE", lease: null })],
    ["replace", "ROLLED_BACK", replace, unchanged],
  ] as const)(
    "of a %s that is %s shows the decision, and carries it out",
    async (_kind, outcome, op, shown) => {
      const names = await Names.start();
      const lease = await names.begin("1", op);
      await names.decideUntold(lease, outcome);
      const asked = names.inquiries();
      expect(await read(names)).toEqual(shown);
      expect(names.inquiries() - asked).toBe(1);
      expect(names.c.holds()).toEqual([]);
      expect(await read(names)).toEqual(shown);
      expect(names.inquiries() - asked).toBe(1);
    },
  );

  test("of a granted destroy or replace shows its lease", async () => {
    for (const [op, status] of [
      [destroy, "LEASE_DESTROYING"],
      [replace, "ACTIVE"],
    ] as const) {
      const names = await Names.start();
      const lease = await names.begin("1", op);
      expect(await read(names)).toEqual(record({ value: "ada", status, lease }));
    }
  });

  test("of a destroy whose begin is running shows nothing of it", async () => {
    const names = await Names.start();
    names.c.fate = (call) => (isPrepare(call) ? "lose_answer" : "deliver");
    const { c } = names;
    const running = c.ledger("1").object.begin(beginRequest(c.envelope, c.uuid(), [destroy]));
    await c.clock.pass(10);
    expect(c.holds()).toHaveLength(1);
    expect(await read(names)).toEqual(unchanged);
    await c.clock.runUntil(running);
  });

  test("is unavailable if the ledger of a hold cannot be asked", async () => {
    for (const op of [destroy, replace]) {
      const names = await Names.start();
      const lease = await names.begin("1", op);
      await names.decideUntold(lease, "COMMITTED");
      names.c.fate = (call: Call) => (call.method === "inquire" ? "lose" : "deliver");
      expect(await read(names)).toEqual({ kind: "unknown" });
    }
  });

  test("answers what a name showed between two holds, if its hold changes during each inquiry", async () => {
    const names = await Names.start();
    await names.begin("1", destroy);
    const { c } = names;
    c.fate = (call) => {
      // The next lease has the hold before the answer arrives.
      if (call.method === "inquire") passHolds(c.shard(0), c.uuid());
      return "deliver";
    };
    const asked = names.inquiries();
    expect(await read(names)).toEqual(unchanged);
    expect(names.inquiries() - asked).toBe(3);
  });
});

describe.each([
  ["9", "2"],
  ["2", "9"],
])("[R3] [R2] a claim that an untold commit moves from source %s to %s", (from, to) => {
  test("is on exactly one page of each listing", async () => {
    const names = await Names.start();
    const { c } = names;
    const at = (id: string) => ({ value: "eve", source: { ...source, id } });
    await names.decide(await names.begin("1", at(from)), "COMMITTED");
    await c.pass(10);
    await names.decideUntold(await names.begin("1", { kind: "replace", ...at(to) }), "COMMITTED");
    // Before the decision is carried out, and after.
    for (let listing = 0; listing < 2; listing += 1) {
      const pages = [await names.page("1", "5"), await names.page("5", "99")];
      expect(pages.flat().map(({ source: shown }) => shown.id)).toEqual([to]);
      expect(pages[to === "2" ? 0 : 1]).toHaveLength(1);
    }
  });

  test("stays where it is while its lease is only granted", async () => {
    const names = await Names.start();
    const at = (id: string) => ({ value: "eve", source: { ...source, id } });
    await names.decide(await names.begin("1", at(from)), "COMMITTED");
    await names.c.pass(10);
    const lease = await names.begin("1", { kind: "replace", ...at(to) });
    const pages = [await names.page("1", "5"), await names.page("5", "99")];
    expect(pages.flat()).toEqual([expect.objectContaining({ lease })]);
    expect(pages.flat()[0]?.source.id).toBe(from);
  });
});

describe("a begin that meets a destroy whose commit no shard knows yet", () => {
  const untold = async (): Promise<Names> => {
    const names = await Names.start();
    await names.decideUntold(await names.begin("1", destroy), "COMMITTED");
    return names;
  };

  test("[B8] takes the name", async () => {
    const names = await untold();
    expect(await names.tryBegin("2", { value: "ada" })).toMatchObject({ ok: true });
  });

  test("[B8] is not refused because of the earlier owner", async () => {
    const names = await untold();
    expect(await names.tryBegin("2", destroy)).toEqual(
      no("FAILED_PRECONDITION", { conflicts: [{ list: "destroys", index: 0, kind: "absent" }] }),
    );
  });

  test("[B8] is told to retry if the ledger cannot be asked", async () => {
    const names = await untold();
    names.c.fate = (call) => (call.method === "inquire" ? "lose" : "deliver");
    for (const op of [{ value: "ada" }, destroy, replace])
      expect(await names.tryBegin("2", op)).toEqual(no("ABORTED"));
  });

  test("[B8] lists no hold that is over beside one that is granted", async () => {
    const names = await untold();
    await names.begin("1", { value: "bob" });
    expect(await names.tryBegin("2", { value: "ada" }, { value: "bob" })).toEqual(
      no("ABORTED", { conflicts: [expect.objectContaining({ index: 1, kind: "leased" })] }),
    );
  });
});

describe("[M6] [R2] reads of held names", () => {
  test("share inquiries, also if many come at a time", async () => {
    const names = await Names.start();
    const { c } = names;
    const lease = await names.begin("1", destroy);
    names.delayAnswers();
    const asked = names.inquiries();
    const first = names.startLookup();
    await c.clock.pass(10);
    const others = Array.from({ length: 200 }, (_, index) =>
      index % 20 ? names.startLookup() : names.startListing(),
    );
    const granted = record({ status: "LEASE_DESTROYING", lease });
    for (const shown of await c.clock.runUntil(Promise.all([first, ...others])))
      expect(shown).toEqual(granted);
    // The first is under way when the others come.
    expect(names.inquiries() - asked).toBe(2);
  });

  test("do not share the answer to an inquiry that was under way when they came", async () => {
    const names = await Names.start();
    const { c } = names;
    const lease = await names.begin("1", destroy);
    names.delayAnswers();
    c.fate = (call) => (isDecision(call) ? "lose" : "deliver");
    const before = names.startLookup();
    await c.clock.pass(10);
    await names.decide(lease, "COMMITTED");
    const after = [names.startLookup(), names.startListing()];
    expect(await c.clock.runUntil(Promise.all(after))).toEqual([free, free]);
    // It was asked before the commit, so it may show either.
    expect([free, record({ lease })]).toContainEqual(await c.clock.runUntil(before));
  });

  test("are all unavailable after an inquiry without an answer, and the next ones ask again", async () => {
    const names = await Names.start();
    const { c } = names;
    await names.begin("1", destroy);
    c.fate = ({ method }) => (method === "inquire" ? "lose" : "deliver");
    const reads = [names.startLookup(), names.startLookup(), names.startListing()];
    expect(await c.clock.runUntil(Promise.all(reads))).toEqual(reads.map(() => ({ kind: "unknown" })));
    c.fate = () => "deliver";
    expect(await names.lookup()).toEqual(record({ status: "LEASE_DESTROYING" }));
  });
});

test("[M7] a listing that has asked about holds waits for its turn to read again", async () => {
  const names = await Names.start();
  const { c } = names;
  const others = Array.from({ length: 300 }, (_, index) => ({
    value: `other-${index}`,
    source: { ...source, id: `${100 + index}` },
  }));
  await names.decide(await names.begin("1", ...others), "COMMITTED");
  await c.pass(10);
  const lengthOf = async (): Promise<number> => {
    const sinceMs = c.clock.now();
    expect(await names.page("0", "999")).toHaveLength(301);
    return c.clock.now() - sinceMs;
  };
  expect(await lengthOf()).toBe(0);
  await c.pass(100);
  await names.begin("1", destroy);
  // The clock is virtual: this is the rest after the first reading of 301 records.
  expect(await lengthOf()).toBe(4);
});

test("[B8] another cell's claim that is being replaced is that cell's in any case", async () => {
  const names = await Names.start();
  await names.begin("1", replace);
  const asked = names.inquiries();
  expect(await names.tryBegin("2", destroy)).toEqual(
    no("FAILED_PRECONDITION", { conflicts: [expect.objectContaining({ kind: "not_owner" })] }),
  );
  expect(names.inquiries()).toBe(asked);
});
