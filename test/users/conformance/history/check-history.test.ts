/** Tests the checker with correct histories, wrong histories and random ones. */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkHistory, type CheckOptions } from "../../../../src/users/conformance/history/check-history.ts";
import { falsify, generate, randomOf, type HistoryShape } from "./generate.ts";
import {
  answerOfRefusal,
  batchOpOf,
  bucketName,
  readHistory,
  Recorder,
  seenOf,
  type Answer,
  type BatchOp,
  type Call,
  type HistoryEvent,
  type SeenConflict,
  type SeenRecord,
} from "../../../../src/users/conformance/history/history.ts";
import { project, type Entry, type Part } from "../../../../src/users/conformance/history/project.ts";
import {
  initialState,
  isState,
  step,
  type State,
} from "../../../../src/users/conformance/history/register.ts";

const A = "ROUTES:a";
const B = "ROUTES:b";
const GRANTED: Answer = { kind: "ok", state: "GRANTED" };
const CREATED: Answer = { kind: "ok", state: "GRANTED", created: true };
const REPLAYED: Answer = { kind: "ok", state: "GRANTED", created: false };
const COMMITTED: Answer = { kind: "ok", state: "COMMITTED" };
const ROLLED_BACK: Answer = { kind: "ok", state: "ROLLED_BACK" };
const UNKNOWN: Answer = { kind: "unknown" };
const NOT_FOUND: Answer = { kind: "refused", code: "NOT_FOUND" };

const create = (bucket = A, subject = "NAMESPACE:1"): BatchOp => ({ kind: "create", bucket, subject });
const destroy = (bucket = A): BatchOp => ({ kind: "destroy", bucket });
const replace = (subject: string, bucket = A): BatchOp => ({ kind: "replace", bucket, subject });
const begin = (lease: string, ...ops: BatchOp[]): Call => ({ kind: "begin", cell: "1", lease, ops });
const beginOf = (cell: string, lease: string, ...ops: BatchOp[]): Call => ({
  kind: "begin",
  cell,
  lease,
  ops,
});
const commit = (lease: string, cell = "1"): Call => ({ kind: "decide", cell, lease, outcome: "COMMITTED" });
const rollback = (lease: string, cell = "1"): Call => ({
  kind: "decide",
  cell,
  lease,
  outcome: "ROLLED_BACK",
});
const get = (lease: string): Call => ({ kind: "get", cell: "1", lease });
const lookup = (...buckets: string[]): Call => ({
  kind: "lookup",
  buckets: buckets.length === 0 ? [A] : buckets,
});

const saw = (record: SeenRecord | null, bucket = A): Answer => ({ kind: "ok", found: { [bucket]: record } });
const active = (cell = "1", more: Partial<SeenRecord> = {}): SeenRecord => ({
  cell,
  status: "ACTIVE",
  lease: null,
  ...more,
});
const creating = (lease: string, more: Partial<SeenRecord> = {}): SeenRecord => ({
  cell: "1",
  status: "LEASE_CREATING",
  lease,
  ...more,
});
const destroying = (lease: string): SeenRecord => ({ cell: "1", status: "LEASE_DESTROYING", lease });
const conflict = (kind: SeenConflict["kind"], owner?: "self" | "other", bucket = A): Answer => ({
  kind: "refused",
  conflicts: [{ bucket, kind, ...(owner === undefined ? {} : { owner }) }],
});
const reason = (of: string): Answer => ({ kind: "refused", reason: of });

/** A history step by step: a whole operation, or a name with a call and later the name with its answer. */
type Line = [Call, Answer] | [string, Call] | [string, Answer];

function history(...lines: Line[]): HistoryEvent[] {
  const recorder = new Recorder();
  const open = new Map<string, string>();
  for (const [first, second] of lines) {
    if (typeof first !== "string")
      recorder.complete(recorder.invoke({ client: "c", ...first }), second as Answer);
    else if (open.has(first)) recorder.complete(open.get(first) ?? "", second as Answer);
    else open.set(first, recorder.invoke({ client: first, ...(second as Call) }));
  }
  return recorder.events;
}

const claimed: Line[] = [
  [begin("L1", create()), CREATED],
  [commit("L1"), COMMITTED],
];

const right: Record<string, Line[]> = {
  "nothing at all": [],
  "create, commit, destroy, commit": [
    ...claimed,
    [lookup(), saw(active())],
    [begin("L2", destroy()), CREATED],
    [lookup(), saw(destroying("L2"))],
    [commit("L2"), COMMITTED],
    [lookup(), saw(null)],
  ],
  "lookups during a create": [
    [lookup(), saw(null)],
    ["c1", begin("L1", create())],
    [lookup(), saw(null)],
    [lookup(), saw(creating("L1"))],
    ["c1", CREATED],
    [lookup(), saw(creating("L1"))],
    [rollback("L1"), ROLLED_BACK],
    [lookup(), saw(null)],
  ],
  "lookups during a commit, in either order": [
    [begin("L1", create()), CREATED],
    ["c1", commit("L1")],
    ["c2", lookup()],
    [lookup(), saw(creating("L1"))],
    ["c3", lookup()],
    ["c2", saw(active())],
    ["c3", saw(active())],
    ["c1", COMMITTED],
  ],
  "two begins at once, one wins": [
    ["c1", begin("L1", create())],
    ["c2", beginOf("2", "L2", create())],
    ["c2", conflict("leased", "other")],
    ["c1", CREATED],
    [beginOf("2", "L3", create()), conflict("leased", "other")],
    [commit("L1"), COMMITTED],
    [beginOf("2", "L4", create()), conflict("taken", "other")],
    [begin("L5", create()), conflict("taken", "self")],
    [beginOf("2", "L6", destroy()), conflict("not_owner", "other")],
  ],
  "two begins at once meet each other, and neither wins": [
    ["c1", begin("L1", create())],
    ["c2", beginOf("2", "L2", create())],
    ["c1", conflict("leased", "other")],
    ["c2", conflict("leased", "other")],
    [lookup(), saw(null)],
  ],
  "an unknown begin is never granted": [
    [begin("L1", create()), UNKNOWN],
    [lookup(), saw(null)],
    [beginOf("2", "L2", create()), CREATED],
  ],
  "an unknown begin is granted late": [
    [begin("L1", create()), UNKNOWN],
    [lookup(), saw(null)],
    [get("L1"), NOT_FOUND],
    [lookup(), saw(creating("L1"))],
    [begin("L1", create()), REPLAYED],
  ],
  "an unknown begin is seen through what it causes": [
    [begin("L1", create()), UNKNOWN],
    [commit("L1"), UNKNOWN],
    [beginOf("2", "L2", create()), conflict("taken", "other")],
  ],
  "several unknown leases in a row lead to what is seen": [
    [begin("L1", create()), UNKNOWN],
    [commit("L1"), UNKNOWN],
    [begin("L2", destroy()), UNKNOWN],
    [commit("L2"), UNKNOWN],
    [beginOf("2", "L3", create()), UNKNOWN],
    [commit("L3", "2"), UNKNOWN],
    [lookup(), saw(null)],
    [lookup(), saw(active("1"))],
    [lookup(), saw(active("2"))],
  ],
  "a fence ends an unknown begin": [
    [begin("L1", create()), UNKNOWN],
    [rollback("L1"), ROLLED_BACK],
    [begin("L1", create()), reason("LEASE_ROLLED_BACK")],
    [lookup(), saw(null)],
  ],
  "a fence meets a running begin": [
    ["c1", begin("L1", create())],
    [rollback("L1"), ROLLED_BACK],
    ["c1", reason("LEASE_ROLLED_BACK")],
  ],
  "a fence of a lease that was never begun": [
    [rollback("L1"), ROLLED_BACK],
    [rollback("L1"), ROLLED_BACK],
    [commit("L1"), reason("LEASE_ROLLED_BACK")],
    [get("L1"), ROLLED_BACK],
  ],
  replays: [
    [begin("L1", create()), CREATED],
    [begin("L1", create()), REPLAYED],
    [commit("L1"), COMMITTED],
    [commit("L1"), COMMITTED],
    [begin("L1", create()), { kind: "ok", state: "COMMITTED", created: false }],
    [rollback("L1"), reason("LEASE_COMMITTED")],
    [get("L1"), COMMITTED],
  ],
  "two decisions at once, one wins": [
    [begin("L1", create()), CREATED],
    ["c1", commit("L1")],
    ["c2", rollback("L1")],
    ["c1", reason("LEASE_ROLLED_BACK")],
    ["c2", ROLLED_BACK],
    [lookup(), saw(null)],
  ],
  "an unknown commit is applied late": [
    [begin("L1", create()), CREATED],
    [commit("L1"), UNKNOWN],
    [lookup(), saw(creating("L1"))],
    [lookup(), saw(active())],
    [rollback("L1"), reason("LEASE_COMMITTED")],
  ],
  "a destroy of another cell's claim while its owner destroys it": [
    ...claimed,
    [begin("L2", destroy()), CREATED],
    [beginOf("2", "L3", destroy()), conflict("leased", "other")],
    [rollback("L2"), ROLLED_BACK],
    [beginOf("2", "L4", destroy()), conflict("not_owner", "other")],
  ],
  "a replace shows its lease until it is decided": [
    ...claimed,
    [begin("L2", replace("NAMESPACE:2")), CREATED],
    [lookup(), saw(active("1", { lease: "L2", subject: "NAMESPACE:1", epoch: 1 }))],
    [beginOf("2", "L3", destroy()), conflict("not_owner", "other")],
    [commit("L2"), COMMITTED],
    [lookup(), saw(active("1", { subject: "NAMESPACE:2", epoch: 2 }))],
  ],
  "a lookup during the commit of a destroy": [
    ...claimed,
    [begin("L2", destroy()), CREATED],
    ["c1", commit("L2")],
    [lookup(), saw(destroying("L2"))],
    [lookup(), saw(null)],
    ["c1", COMMITTED],
  ],
  "a begin that was refused leaves a hold, which no lookup shows": [
    ...claimed,
    [begin("L2", destroy(), create(B)), conflict("leased", "self", B)],
    [lookup(), saw(active())],
    [begin("L3", destroy()), conflict("leased", "self")],
    [begin("L4", create(B)), CREATED],
  ],
  "destroys that find nothing": [
    [
      { kind: "begin", cell: "1", lease: "L1", ops: [destroy()], allowMissing: true },
      { ...CREATED, missing: 1 },
    ],
    [beginOf("2", "L2", create()), CREATED],
    [commit("L1"), COMMITTED],
    [lookup(), saw({ ...creating("L2"), cell: "2" })],
  ],
  "a replace that finds nothing is a create": [
    [{ kind: "begin", cell: "1", lease: "L1", ops: [replace("GROUP:1")], allowMissing: true }, CREATED],
    [beginOf("2", "L2", create()), conflict("leased", "other")],
    [lookup(), saw(creating("L1"))],
    [commit("L1"), COMMITTED],
    [lookup(), saw(active("1"))],
  ],
  "a destroy of a name without an owner": [[begin("L1", destroy()), conflict("absent")]],
  "a destroy that expects another subject": [
    ...claimed,
    [begin("L2", { kind: "destroy", bucket: A, subject: "NAMESPACE:2" }), conflict("mismatch", "self")],
    [begin("L3", { kind: "destroy", bucket: A, subject: "NAMESPACE:1" }), CREATED],
  ],
  "a begin that joins gets a refusal from before its call": [
    ...claimed,
    ["c1", begin("L2", create(), create(B))],
    [begin("L3", destroy()), CREATED],
    [commit("L3"), COMMITTED],
    [lookup(), saw(null)],
    ["c2", begin("L2", create(), create(B))],
    ["c1", conflict("taken", "self")],
    ["c2", conflict("taken", "self")],
  ],
  "epochs grow from owner to owner": [
    [begin("L1", create()), CREATED],
    [lookup(), saw(creating("L1", { epoch: 3 }))],
    [commit("L1"), COMMITTED],
    [lookup(), saw(active("1", { epoch: 3 }))],
    [begin("L2", destroy()), CREATED],
    [commit("L2"), COMMITTED],
    [begin("L3", create()), CREATED],
    [lookup(), saw(creating("L3", { epoch: 9 }))],
  ],
  "records of other cells show little": [
    ...claimed,
    [lookup(), saw({ cell: "1", status: "ACTIVE", value: "a" })],
  ],
};

const wrong: Record<string, Line[]> = {
  "two granted creates without a destroy between them": [
    [begin("L1", create()), CREATED],
    [beginOf("2", "L2", create()), CREATED],
  ],
  "a create of a claimed name is granted": [...claimed, [beginOf("2", "L2", create()), CREATED]],
  "two creates at once are both granted": [
    ["c1", begin("L1", create())],
    ["c2", beginOf("2", "L2", create())],
    ["c1", CREATED],
    ["c2", CREATED],
  ],
  "a lookup misses a claim": [...claimed, [lookup(), saw(null)]],
  "a lookup misses a granted create": [
    [begin("L1", create()), CREATED],
    [lookup(), saw(null)],
  ],
  "a lookup shows a create that was rolled back before": [
    [begin("L1", create()), CREATED],
    [rollback("L1"), ROLLED_BACK],
    [lookup(), saw(creating("L1"))],
  ],
  "a lookup shows a create that was refused": [
    ...claimed,
    [beginOf("2", "L2", create()), conflict("taken", "other")],
    [lookup(), saw({ ...creating("L2"), cell: "2" })],
  ],
  "a lookup shows a claim that no lease created": [[lookup(), saw(active())]],
  "a lookup shows a create that was never begun": [[lookup(), saw(creating("L1"))]],
  "a lookup shows the claim of a create that was rolled back": [
    [begin("L1", create()), CREATED],
    [rollback("L1"), ROLLED_BACK],
    [lookup(), saw(active())],
  ],
  "a lookup shows a create as claimed that is not decided": [
    [begin("L1", create()), CREATED],
    [lookup(), saw(active())],
  ],
  "a lookup shows an earlier owner after a later one": [
    ...claimed,
    [begin("L2", destroy()), CREATED],
    [commit("L2"), COMMITTED],
    [beginOf("2", "L3", create()), CREATED],
    [commit("L3", "2"), COMMITTED],
    [lookup(), saw(active("1"))],
  ],
  "a lookup shows another subject": [...claimed, [lookup(), saw(active("1", { subject: "NAMESPACE:2" }))]],
  "a lookup shows a destroy that was never begun": [...claimed, [lookup(), saw(destroying("L2"))]],
  "a lookup shows a claim as free of the destroy that is granted": [
    ...claimed,
    [begin("L2", destroy()), CREATED],
    [lookup(), saw(active())],
  ],
  "a destroyed name comes back": [
    ...claimed,
    [begin("L2", destroy()), CREATED],
    [commit("L2"), COMMITTED],
    [lookup(), saw(null)],
    [lookup(), saw(destroying("L2"))],
  ],
  "a lookup shows a destroy whose commit was acknowledged": [
    ...claimed,
    [begin("L2", destroy()), CREATED],
    [commit("L2"), COMMITTED],
    [lookup(), saw(destroying("L2"))],
  ],
  "a lookup shows a destroy whose rollback was acknowledged": [
    ...claimed,
    [begin("L2", destroy()), CREATED],
    [rollback("L2"), ROLLED_BACK],
    [lookup(), saw(destroying("L2"))],
  ],
  "a lookup shows the record from before a replace that was committed": [
    ...claimed,
    [begin("L2", replace("NAMESPACE:2")), CREATED],
    [commit("L2"), COMMITTED],
    [lookup(), saw(active("1", { lease: "L2", subject: "NAMESPACE:1", epoch: 1 }))],
  ],
  "a lookup shows a destroy that was refused": [
    ...claimed,
    [begin("L2", destroy(), create(B)), conflict("leased", "self", B)],
    [lookup(), saw(destroying("L2"))],
  ],
  "a begin meets the owner of a name that was destroyed": [
    ...claimed,
    [begin("L2", destroy()), CREATED],
    [commit("L2"), COMMITTED],
    [beginOf("2", "L3", destroy()), conflict("not_owner", "other")],
  ],
  "a destroyed name shows without its destroy": [
    ...claimed,
    [begin("L2", destroy()), CREATED],
    [commit("L2"), COMMITTED],
    [lookup(), saw(active())],
  ],
  "a destroy that was rolled back takes the name": [
    ...claimed,
    [begin("L2", destroy()), CREATED],
    [rollback("L2"), ROLLED_BACK],
    [lookup(), saw(null)],
  ],
  "a replace is undone": [
    ...claimed,
    [begin("L2", replace("NAMESPACE:2")), CREATED],
    [commit("L2"), COMMITTED],
    [lookup(), saw(active("1", { subject: "NAMESPACE:2" }))],
    [lookup(), saw(active("1", { lease: "L2", subject: "NAMESPACE:1", epoch: 1 }))],
  ],
  "a decision flips": [
    [begin("L1", create()), CREATED],
    [commit("L1"), COMMITTED],
    [rollback("L1"), ROLLED_BACK],
  ],
  "both decisions are said to have been the first": [
    [begin("L1", create()), CREATED],
    ["c1", commit("L1")],
    ["c2", rollback("L1")],
    ["c1", reason("LEASE_ROLLED_BACK")],
    ["c2", reason("LEASE_COMMITTED")],
  ],
  "a granted lease is lost": [
    [begin("L1", create()), CREATED],
    [get("L1"), NOT_FOUND],
  ],
  "a granted lease is granted again": [
    [begin("L1", create()), CREATED],
    [begin("L1", create()), CREATED],
  ],
  "the name of a granted lease goes to another lease": [
    [begin("L1", create()), CREATED],
    [beginOf("2", "L2", create()), UNKNOWN],
    [commit("L1"), UNKNOWN],
    [lookup(), saw({ ...creating("L2"), cell: "2" })],
  ],
  "a committed lease is lost": [...claimed, [commit("L1"), NOT_FOUND]],
  "a fence does not hold": [
    [begin("L1", create()), UNKNOWN],
    [rollback("L1"), ROLLED_BACK],
    [lookup(), saw(creating("L1"))],
  ],
  "a fence out of the blue does not hold": [
    [rollback("L1"), ROLLED_BACK],
    [begin("L1", create()), CREATED],
  ],
  "a fence is forgotten": [
    [rollback("L1"), ROLLED_BACK],
    [commit("L1"), NOT_FOUND],
  ],
  "taken without an owner": [[begin("L1", create()), conflict("taken", "other")]],
  "taken by oneself, when it is another cell's": [
    ...claimed,
    [beginOf("2", "L2", create()), conflict("taken", "self")],
  ],
  "taken by a create that is only granted": [
    [begin("L1", create()), CREATED],
    [beginOf("2", "L2", create()), conflict("taken", "other")],
  ],
  "taken by a name that was destroyed": [
    ...claimed,
    [begin("L2", destroy()), CREATED],
    [commit("L2"), COMMITTED],
    [beginOf("2", "L3", create()), conflict("taken", "other")],
  ],
  "leased without a hold": [[begin("L1", create()), conflict("leased", "other")]],
  "absent, when it is there": [...claimed, [begin("L2", destroy()), conflict("absent")]],
  "not the owner, when it is": [...claimed, [begin("L2", destroy()), conflict("not_owner", "other")]],
  "mismatch, when it matches": [
    ...claimed,
    [begin("L2", { kind: "destroy", bucket: A, subject: "NAMESPACE:1" }), conflict("mismatch", "self")],
  ],
  "a foreign claim is destroyed": [...claimed, [beginOf("2", "L2", destroy()), CREATED]],
  "a destroy of nothing is granted": [[begin("L1", destroy()), CREATED]],
  "a replace of nothing is granted": [[begin("L1", replace("GROUP:1")), CREATED]],
  "a replace that names an epoch finds nothing and is granted": [
    [
      {
        kind: "begin",
        cell: "1",
        lease: "L1",
        ops: [{ ...replace("GROUP:1"), epoch: 1 }],
        allowMissing: true,
      },
      CREATED,
    ],
  ],
  "a destroy finds nothing where there is a claim": [
    ...claimed,
    [
      { kind: "begin", cell: "1", lease: "L2", ops: [destroy()], allowMissing: true },
      { ...CREATED, missing: 1 },
    ],
  ],
  "a begin that was refused shows as granted": [
    [begin("L0", create(B)), CREATED],
    [begin("L1", create(), create(B)), conflict("leased", "self", B)],
    [lookup(), saw(creating("L1"))],
  ],
  "a begin that was refused is answered as granted": [
    [begin("L0", create(B)), CREATED],
    [begin("L1", create(), create(B)), conflict("leased", "self", B)],
    [begin("L1", create(), create(B)), REPLAYED],
  ],
  "a lease that shows as granted on one name, and not on the other": [
    [begin("L1", create(), create(B)), UNKNOWN],
    [lookup(), saw(creating("L1"))],
    [lookup(B), saw(null, B)],
  ],
  "a batch that is committed on one name only": [
    [begin("L1", create(), create(B)), CREATED],
    [commit("L1"), COMMITTED],
    [lookup(), saw(active())],
    [lookup(B), saw(null, B)],
  ],
  "an epoch that does not grow": [
    [begin("L1", create()), CREATED],
    [lookup(), saw(creating("L1", { epoch: 5 }))],
    [rollback("L1"), ROLLED_BACK],
    [begin("L2", create()), CREATED],
    [lookup(), saw(creating("L2", { epoch: 5 }))],
  ],
  "an owner whose epoch changes": [
    ...claimed,
    [lookup(), saw(active("1", { epoch: 5 }))],
    [lookup(), saw(active("1", { epoch: 6 }))],
  ],
  "an operation that takes effect before its call": [
    [lookup(), saw(creating("L1"))],
    [begin("L1", create()), UNKNOWN],
  ],
};

describe("correct histories", () => {
  test.each(Object.entries(right))("%s", (_, lines) => {
    const result = checkHistory(history(...lines));
    expect(result.ok ? result.undecided : result.explanation).toEqual([]);
  });
});

describe("wrong histories", () => {
  test.each(Object.entries(wrong))("%s", (_, lines) => {
    expect(checkHistory(history(...lines)).ok).toBe(false);
  });
});

describe("the verdict", () => {
  const impossible = (events: HistoryEvent[], options: CheckOptions = {}): string => {
    const result = checkHistory(events, options);
    return result.ok ? "possible" : result.explanation;
  };

  test("names the first impossible answer, the reason, and the concurrent operations", () => {
    const lines: Line[] = [
      ...claimed,
      ["c1", get("L1")],
      [lookup(), saw(null)],
      ["c1", COMMITTED],
      [lookup(), saw(active())],
      [get("L1"), NOT_FOUND],
    ];
    const explanation = impossible(history(...lines));
    expect(explanation).toMatch(/^No order of the operations on ROUTES:a/);
    expect(explanation.split("\n")[1]).toMatch(/lookup ROUTES:a → ok \{"found":\{"ROUTES:a":null\}\}$/);
    expect(explanation).toContain(
      "after which the bucket is: claim: cell 1 NAMESPACE:1; hold: none; largest epoch seen: 0; " +
        "leases: 1/L1=C",
    );
    expect(explanation).toContain("there is a claim");
    expect(explanation).not.toContain("NOT_FOUND");
  });

  test("lists undecided buckets and does not call them correct", () => {
    const events = generate({
      seed: 1,
      clients: 8,
      cells: 2,
      buckets: 1,
      operations: 200,
      unknown: 20,
    });
    expect(checkHistory(events, { maxSteps: 20 })).toMatchObject({ ok: true, undecided: ["ROUTES:0"] });
    expect(checkHistory(events)).toMatchObject({ ok: true, undecided: [], buckets: 1 });
  });

  test("uses the owners from before the history", () => {
    const events = history([lookup(), saw(active())], [begin("L1", create()), conflict("taken", "self")]);
    expect(impossible(events)).not.toBe("possible");
    expect(impossible(events, { initial: { [A]: { cell: "1" } } })).toBe("possible");
  });

  test("treats operations within the clock error as concurrent", () => {
    const at = [0, 10, 10.5, 12];
    const recorder = new Recorder({ now: () => at.shift() ?? 99 });
    recorder.complete(recorder.invoke({ client: "c1", ...begin("L1", create()) }), GRANTED);
    recorder.complete(recorder.invoke({ client: "c2", ...lookup() }), saw(null));
    expect(impossible(recorder.events)).not.toBe("possible");
    expect(impossible(recorder.events, { clockErrorMs: 0.2 })).not.toBe("possible");
    expect(impossible(recorder.events, { clockErrorMs: 0.3 })).toBe("possible");
  });
});

describe("recording", () => {
  test("histories of several processes are merged from their files, without an incomplete last line", () => {
    const files = ["", ""];
    let time = 0;
    const recorders = files.map(
      (_, index) =>
        new Recorder({ name: `p${index}-`, now: () => (time += 1), write: (line) => (files[index] += line) }),
    );
    const [first, second] = recorders as [Recorder, Recorder];
    first.complete(first.invoke({ client: "c1", ...begin("L1", create()) }), CREATED);
    second.complete(second.invoke({ client: "c2", ...lookup() }), saw(creating("L1")));
    first.invoke({ client: "c1", ...commit("L1") });
    const events = readHistory(files[1] ?? "", (files[0] ?? "") + '{"id":"p0-2","at":7,"eve');
    expect(events).toHaveLength(5);
    expect(checkHistory(events)).toMatchObject({ ok: true, buckets: 1, operations: 3 });
    expect(() => checkHistory([...events, ...events])).toThrow(/two calls have the id/);
  });

  test("ops, refusals and records of the core are converted", () => {
    const op = {
      kind: "create" as const,
      type: "ROUTES",
      canonical: "a",
      value: "A",
      subject: { type: "NAMESPACE", id: "1" },
    };
    expect(batchOpOf(op)).toEqual({ ...create(), value: "A" });
    const ops = [create(), destroy(B)];
    const conflicts = [{ list: "destroys", index: 0, kind: "not_owner" as const, owner: "other" as const }];
    expect(answerOfRefusal({ code: "FAILED_PRECONDITION", conflicts }, ops)).toEqual({
      kind: "refused",
      code: "FAILED_PRECONDITION",
      conflicts: [{ bucket: B, kind: "not_owner", owner: "other" }],
    });
    for (const code of ["UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL"])
      expect(answerOfRefusal({ code })).toEqual(UNKNOWN);
    const record = { cell: "1", status: "ACTIVE" as const, lease: null, value: "A", epoch: 4 };
    expect(
      seenOf({
        ...record,
        subject: { type: "NAMESPACE", id: "1" },
        source: { type: "RAILS_TABLE_ROUTES", id: "2" },
      }),
    ).toEqual({
      ...record,
      subject: "NAMESPACE:1",
      source: "RAILS_TABLE_ROUTES:2",
    });
    expect(bucketName({ type: "ROUTES", canonical: "a" })).toBe(A);
  });
});

describe("random histories", () => {
  const SEED = 20_260;

  const shapes = (operations: number, buckets = 3): fc.Arbitrary<HistoryShape> =>
    fc.record({
      seed: fc.integer({ min: 0, max: 2 ** 31 }),
      clients: fc.integer({ min: 1, max: 8 }),
      cells: fc.integer({ min: 1, max: 3 }),
      buckets: fc.integer({ min: 1, max: buckets }),
      operations: fc.integer({ min: 1, max: operations }),
      unknown: fc.integer({ min: 0, max: 40 }),
    });

  test("histories of a correct register are possible", () => {
    fc.assert(
      fc.property(shapes(200), (shape) => {
        const result = checkHistory(generate(shape));
        expect(result.ok ? result.undecided : result.explanation).toEqual([]);
      }),
      { seed: SEED, numRuns: 300 },
    );
  });

  test("with one wrong answer, nearly all of them are impossible", () => {
    const counts = { wrong: 0, refuted: 0 };
    for (const [index, shape] of fc.sample(shapes(200), { seed: SEED, numRuns: 400 }).entries()) {
      const falsified = falsify(generate(shape), randomOf(index));
      if (falsified === undefined) continue;
      counts.wrong += 1;
      if (!checkHistory(falsified).ok) counts.refuted += 1;
    }
    expect(counts.wrong).toBeGreaterThan(350);
    // The others are possible by chance: the changed answer was concurrent with an operation that allows it,
    // or said nothing.
    expect(counts.refuted / counts.wrong).toBeGreaterThan(0.9);
  });

  test("the search agrees with an exhaustive search", () => {
    const counts = { possible: 0, impossible: 0 };
    for (const [index, shape] of fc.sample(shapes(11, 1), { seed: SEED, numRuns: 1_500 }).entries()) {
      const events = generate(shape);
      const judged = (index % 4 === 0 ? undefined : falsify(events, randomOf(index))) ?? events;
      const expected = project(judged).every(tryEverything);
      expect(checkHistory(judged)).toMatchObject({ ok: expected });
      counts[expected ? "possible" : "impossible"] += 1;
    }
    expect(counts.possible).toBeGreaterThan(400);
    expect(counts.impossible).toBeGreaterThan(400);
  });
});

/** Tries every order, with unknown operations at every place. */
function tryEverything({ leases, entries }: Part): boolean {
  const place = (state: State, open: readonly Entry[]): boolean => {
    if (open.every(({ optional }) => optional)) return true;
    const until = Math.min(...open.map(({ to }) => to));
    return open.some((entry) => {
      if (entry.from > until) return false;
      const rest = open.filter((other) => other !== entry);
      return entry.ways.some((way) => tried(step(state, way), rest, place));
    });
  };
  return place(initialState(leases.length), entries);
}

const tried = (
  result: State | string,
  open: readonly Entry[],
  place: (state: State, open: readonly Entry[]) => boolean,
): boolean => isState(result) && place(result, open);
