/** Tests that of two reasons to refuse a call, the one answers that comes first in the order of checks. */
import { describe, expect, test } from "vitest";
import type { BeginRequest, Caller, DecideRequest } from "../../src/coordinator/kernel/messages.ts";
import { placementOf } from "../../src/coordinator/kernel/placement.ts";
import { Cluster } from "../support/cluster.ts";
import { no } from "../support/calls.ts";
import { beginRequest, callerOf, decideRequest } from "../support/ops.ts";

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

/** The checks of every call of a cell. */
const ofCalls: Check<BeginRequest | DecideRequest>[] = [
  {
    name: "placement",
    arrange: (_, message) => (message.placement = placementOf(2)),
    refusal: no("UNAVAILABLE", { reason: "PLACEMENT_MISMATCH" }),
  },
  {
    name: "key",
    arrange: (c, { caller }) =>
      c.ledger("1").object.revoke({ ...c.envelope, keyId: caller.keyId, expiresAtMs: caller.expiresAtMs }),
    refusal: no("UNAUTHENTICATED", { reason: "KEY_REVOKED" }),
  },
  {
    name: "possible point",
    arrange: (_, message) => (message.seen = { incarnation: 1, position: 2 ** 52 }),
    refusal: no("INVALID_ARGUMENT", { field: "leasehold-history" }),
  },
  {
    name: "history",
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
];

const begins: Check<BeginRequest>[] = [
  ...ofCalls,
  {
    name: "batch of a known lease",
    arrange: (c, { lease }) =>
      c.ledger("1").object.begin(beginRequest(c.envelope, lease, ["other"], { caller: otherKey })),
    refusal: no("FAILED_PRECONDITION", { reason: "LEASE_ID_REUSED" }),
  },
  {
    name: "room for an operator's entry",
    arrange: (c, message) => {
      message.caller = anOperator;
      Object.assign(c.limits, { auditEntries: 0 });
    },
    refusal: no("UNAVAILABLE", { reason: "AUDIT_FULL" }),
    excludes: ["key"],
  },
  {
    name: "state of the cell",
    arrange: (c) => c.ledger("1").object.setState({ ...c.envelope, state: "FROZEN", stateVersion: 0 }),
    refusal: no("FAILED_PRECONDITION", { reason: "CELL_FROZEN" }),
  },
  {
    name: "caller that waits",
    arrange: (c, message) => {
      message.call = "call-1";
      return c.ledger("1").object.giveUp({ ...c.envelope, lease: message.lease, call: "call-1" });
    },
    refusal: no("UNAVAILABLE", { retryAfterMs: 1_000 }),
  },
  {
    name: "size",
    arrange: limit({ leaseBytes: 1 }),
    refusal: no("RESOURCE_EXHAUSTED", { reason: "LEASE_TOO_LARGE" }),
  },
  {
    name: "room in the ledger",
    arrange: limit({ ledgerBytes: 1 }),
    refusal: no("RESOURCE_EXHAUSTED", { reason: "LEDGER_FULL" }),
  },
  {
    name: "running begins",
    arrange: limit({ concurrentBegins: 0 }),
    refusal: no("RESOURCE_EXHAUSTED", { reason: "TOO_MANY_BEGINS" }),
  },
  {
    name: "outstanding leases",
    arrange: limit({ outstandingLeases: 0 }),
    refusal: no("RESOURCE_EXHAUSTED", { reason: "TOO_MANY_LEASES" }),
  },
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
  {
    name: "room for an operator's entry",
    arrange: (c, message) => {
      message.caller = anOperator;
      Object.assign(c.limits, { auditEntries: 0 });
    },
    refusal: no("UNAVAILABLE", { reason: "AUDIT_FULL" }),
    // What is not there needs no entry.
    excludes: ["key"],
  },
];

const fences: Check<DecideRequest>[] = [
  ...ofCalls,
  {
    name: "room for a fence",
    arrange: limit({ fences: 0 }),
    refusal: no("RESOURCE_EXHAUSTED", { reason: "TOO_MANY_FENCES" }),
  },
  ...commits.slice(-1),
];

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
