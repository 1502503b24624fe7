/** Tests that of two reasons to refuse a call, the one answers that comes first in the order of checks. */
import { describe, expect, test } from "vitest";
import type { BeginRequest, Caller, DecideRequest, Exchange } from "../../src/coordinator/kernel/messages.ts";
import { order } from "../../src/coordinator/kernel/order.ts";
import { placementOf } from "../../src/coordinator/kernel/placement.ts";
import { refused } from "../../src/coordinator/kernel/refusal.ts";
import { allHere } from "../../src/coordinator/kernel/shard/residence.ts";
import { alwaysWorks } from "../../src/coordinator/kernel/standing.ts";
import { Cluster } from "../support/cluster.ts";
import { no } from "../support/calls.ts";
import { beginRequest, callerOf, decideRequest, exchangeOf, opsOf } from "../support/ops.ts";
import { privatePath } from "../support/private-fields.ts";

/** Why a call is refused. */
interface Check<Message> {
  name: string;
  /** Makes the check refuse the message. */
  arrange(c: Cluster, message: Message): unknown;
  refusal: object;
  /** Checks that cannot refuse the same message. */
  excludes?: readonly string[];
  /** Afterwards, the object refuses what other checks need. */
  isLast?: true;
}

const otherKey: Caller = { ...callerOf(), keyId: "k2" };
const anOperator: Caller = { role: "operator", keyId: "o1", expiresAtMs: Number.MAX_SAFE_INTEGER };

const limit =
  (limits: Partial<Cluster["limits"]>) =>
  (c: Cluster): unknown =>
    Object.assign(c.limits, limits);

type CheckOf<Stage extends keyof typeof order> = (typeof order)[Stage][number];

const placement: Check<BeginRequest | DecideRequest> = {
  name: "placement",
  arrange: (_, message) => (message.placement = placementOf(2)),
  refusal: no("UNAVAILABLE", { reason: "PLACEMENT_MISMATCH" }),
};

const ofMessages: Record<CheckOf<"message">, Check<BeginRequest | DecideRequest>> = {
  caller: {
    name: "caller",
    arrange: (c, { caller }) =>
      c.ledger("1").object.revoke({ ...c.envelope, keyId: caller.keyId, expiresAtMs: caller.expiresAtMs }),
    refusal: no("UNAUTHENTICATED", { reason: "KEY_REVOKED" }),
  },
  call: {
    name: "call",
    arrange: (_, message) => (message.seen = { incarnation: 1, position: 2 ** 52 }),
    refusal: no("INVALID_ARGUMENT", { field: "leasehold-history" }),
  },
  standing: {
    name: "standing",
    arrange: (c, { lease }) =>
      c.ledger("1").object.getLease({
        ...c.envelope,
        seen: { incarnation: 2 ** 40, position: 0 },
        caller: otherKey,
        lease,
      }),
    refusal: no("UNAVAILABLE", { reason: "HISTORY_LOST" }),
    isLast: true,
  },
};

/** The checks of every call of a cell. */
const ofCalls = [placement, ...order.message.map((name) => ofMessages[name])];

const knownLease: Check<BeginRequest> = {
  name: "batch of a known lease",
  arrange: (c, { lease }) =>
    c.ledger("1").object.begin(beginRequest(c.envelope, lease, ["other"], { caller: otherKey })),
  refusal: no("FAILED_PRECONDITION", { reason: "LEASE_ID_REUSED" }),
};

const roomForEntry: Check<BeginRequest | DecideRequest> = {
  name: "room for an operator's entry",
  arrange: (c, message) => {
    message.caller = anOperator;
    Object.assign(c.limits, { auditEntries: 0 });
  },
  refusal: no("UNAVAILABLE", { reason: "AUDIT_FULL" }),
  // An operator's key is not the cell's.
  excludes: ["caller"],
};

const stateOfCell: Check<BeginRequest> = {
  name: "state of the cell",
  arrange: (c) => c.ledger("1").object.setState({ ...c.envelope, state: "FROZEN", stateVersion: 0 }),
  refusal: no("FAILED_PRECONDITION", { reason: "CELL_FROZEN" }),
};

/** The caller was checked when the message arrived. */
const ofGrants: Record<CheckOf<"grant">, Check<BeginRequest>[]> = {
  caller: [],
  capabilities: [roomForEntry, stateOfCell],
};

const givenUp: Check<BeginRequest> = {
  name: "caller that waits",
  arrange: (c, message) => {
    message.call = "call-1";
    return c.ledger("1").object.giveUp({ ...c.envelope, lease: message.lease, call: "call-1" });
  },
  refusal: no("UNAVAILABLE", { retryAfterMs: 1_000 }),
};

const ofLimits: Record<CheckOf<"limits">, Check<BeginRequest>> = {
  leaseBytes: {
    name: "bytes of the lease",
    arrange: limit({ leaseBytes: 1 }),
    refusal: no("RESOURCE_EXHAUSTED", { reason: "LEASE_TOO_LARGE" }),
  },
  ledgerBytes: {
    name: "bytes of the ledger",
    arrange: limit({ ledgerBytes: 1 }),
    refusal: no("RESOURCE_EXHAUSTED", { reason: "LEDGER_FULL" }),
  },
  runningBegins: {
    name: "running begins",
    arrange: limit({ concurrentBegins: 0 }),
    refusal: no("RESOURCE_EXHAUSTED", { reason: "TOO_MANY_BEGINS" }),
  },
  outstandingLeases: {
    name: "outstanding leases",
    arrange: limit({ outstandingLeases: 0 }),
    refusal: no("RESOURCE_EXHAUSTED", { reason: "TOO_MANY_LEASES" }),
  },
};

const begins: Check<BeginRequest>[] = [
  ...ofCalls,
  knownLease,
  ...order.grant.flatMap((name) => ofGrants[name]),
  givenUp,
  ...order.limits.map((name) => ofLimits[name]),
];

const commits: Check<DecideRequest>[] = [
  ...ofCalls,
  {
    name: "known lease",
    arrange: (c, message) => (message.lease = c.uuid()),
    refusal: no("NOT_FOUND"),
    excludes: ["first decision"],
  },
  {
    name: "first decision",
    arrange: (c, { lease }) =>
      c.ledger("1").object.decide(decideRequest(c.envelope, lease, "ROLLED_BACK", { caller: otherKey })),
    refusal: no("FAILED_PRECONDITION", { reason: "LEASE_ROLLED_BACK" }),
  },
  roomForEntry,
];

const fences: Check<DecideRequest>[] = [
  ...ofCalls,
  {
    name: "room for a fence",
    arrange: limit({ fences: 0 }),
    refusal: no("RESOURCE_EXHAUSTED", { reason: "TOO_MANY_FENCES" }),
  },
  roomForEntry,
];

/** Provides a slot of a shard once more. */
const replace = (c: Cluster, slot: string, value: object): unknown =>
  Object.defineProperty(privatePath(c.shard(0).object, `#part.${slot}`) as object, "current", { value });

const moving = refused("UNAVAILABLE", "the name moves", { isMoving: true }).refusal;
const incomplete = refused("UNAVAILABLE", "claims may be missing", { reason: "HISTORY_LOST" }).refusal;

const ofPrepares: Record<CheckOf<"prepare">, Check<Exchange>> = {
  residence: {
    name: "residence",
    arrange: (c) =>
      replace(c, "residence", { ...allHere(c.shard(0).sql), serves: () => false, notHere: () => moving }),
    refusal: moving,
  },
  completeness: {
    name: "completeness",
    arrange: (c) => replace(c, "standing", { ...alwaysWorks, incomplete }),
    refusal: incomplete,
  },
  room: {
    name: "room",
    arrange: limit({ shardBytes: 1 }),
    refusal: expect.objectContaining({ reason: "SHARD_FULL" }) as object,
  },
  holds: {
    name: "holds",
    arrange: limit({ heldNames: 0 }),
    refusal: expect.objectContaining({ reason: "SHARD_HOLDS_FULL" }) as object,
  },
};

type Pair<Message> = [first: Check<Message>, second: Check<Message>];

const pairsOf = <Message>(checks: readonly Check<Message>[]): Pair<Message>[] =>
  checks.flatMap((first, index) =>
    checks.slice(index + 1).flatMap((second): Pair<Message>[] => {
      const isPossible = !first.excludes?.includes(second.name) && !second.excludes?.includes(first.name);
      return isPossible ? [[first, second]] : [];
    }),
  );

async function arrange<Message>(c: Cluster, pair: Pair<Message>, message: Message): Promise<void> {
  for (const check of pair.toSorted((a, b) => Number(a.isLast ?? false) - Number(b.isLast ?? false)))
    await c.clock.runUntil((async () => check.arrange(c, message))());
}

const named = <Message>(pairs: Pair<Message>[]) =>
  pairs.map((pair) => ({ first: pair[0].name, second: pair[1].name, pair }));

/** A ledger that has a placement and an incarnation, and may have a granted lease. */
async function started(lease?: string): Promise<Cluster> {
  const c = await Cluster.start();
  const begun = c.ledger("1").object.begin(beginRequest(c.envelope, lease ?? c.uuid(), ["name"]));
  expect(await c.clock.runUntil(begun)).toMatchObject({ ok: true });
  return c;
}

describe("a begin", () => {
  test.each(begins)("is refused: $name", async (check) => {
    const c = await started();
    const message = beginRequest(c.envelope, c.uuid(), ["new"]);
    await arrange(c, [check, check], message);
    expect(await c.clock.runUntil(c.ledger("1").object.begin(message))).toEqual(check.refusal);
  });

  test.each(named(pairsOf(begins)))("checks first: $first, and then: $second", async ({ pair }) => {
    const c = await started();
    const message = beginRequest(c.envelope, c.uuid(), ["new"]);
    await arrange(c, pair, message);
    expect(await c.clock.runUntil(c.ledger("1").object.begin(message))).toEqual(pair[0].refusal);
  });
});

describe.each([
  { kind: "a commit", checks: commits, outcome: "COMMITTED", isKnown: true },
  { kind: "a rollback of an unknown lease", checks: fences, outcome: "ROLLED_BACK", isKnown: false },
] as const)("$kind", ({ checks, outcome, isKnown }) => {
  test.each(named(pairsOf<DecideRequest>(checks)))(
    "checks first: $first, and then: $second",
    async ({ pair }) => {
      const lease = "00000000-0000-4000-8000-0000000000aa";
      const c = await started(isKnown ? lease : undefined);
      const message = decideRequest(c.envelope, lease, outcome);
      await arrange(c, pair, message);
      expect(await c.clock.runUntil(c.ledger("1").object.decide(message))).toEqual(pair[0].refusal);
    },
  );
});

test.each(named(pairsOf(order.prepare.map((name) => ofPrepares[name]))))(
  "a prepare checks first: $first, and then: $second",
  async ({ pair }) => {
    const c = await Cluster.start({ shards: 1 });
    const attempt = { cell: "1", lease: c.uuid(), incarnation: 7, counter: 1, allowMissing: false };
    const message = exchangeOf(c.envelope, "1", {
      prepares: [{ ...attempt, ops: opsOf(c.envelope.placement, ["name"]) }],
    });
    await arrange(c, pair, message);
    const answer = await c.clock.runUntil(c.shard(0).object.exchange(message));
    expect(answer).toMatchObject({
      ok: true,
      value: { prepares: [{ granted: false, refusal: pair[0].refusal }] },
    });
  },
);
