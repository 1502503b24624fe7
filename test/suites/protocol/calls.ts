/** Calls of ledgers and shards, as tests of the protocol make them. */
import { expect } from "vitest";
import type { OperatorCall, LookupFound, Outcome } from "../../../src/coordinator/kernel/messages.ts";
import type { Ledger } from "../../../src/coordinator/kernel/ledger/ledger.ts";
import type { Shard } from "../../../src/coordinator/kernel/shard/shard.ts";
import { shardOf, shardsOf } from "../../../src/coordinator/kernel/placement.ts";
import { beginRequest, callerOf, decideRequest, keyOf, type OpSpec } from "../../support/ops.ts";

export interface TestObjects {
  envelope: OperatorCall;
  uuid(): string;
  ledger(
    cell: string,
  ): Pick<
    Ledger,
    | "begin"
    | "decide"
    | "getLease"
    | "listLeases"
    | "inquire"
    | "pull"
    | "maintain"
    | "status"
    | "setState"
    | "revoke"
    | "leaseStates"
    | "authorize"
  >;
  shard(
    index: number,
  ): Pick<Shard, "exchange" | "settle" | "lookup" | "listRecords" | "digestRecords" | "ping">;
  /** Waits for a call, and lets as much time pass as it needs. */
  runUntil<T>(work: Promise<T>): Promise<T>;
  /** Restarts every object: it loses its memory and keeps its database. */
  restart(): Promise<void>;
  holds(): Promise<{ canonical: string; cell: string; lease: string }[]>;
  claims(): Promise<{ canonical: string; cell: string; value: string; epoch: number }[]>;
}

export const ok = (value: unknown): object => ({
  ok: true,
  value: expect.objectContaining(value as object) as unknown,
});
export const no = (code: string, more: object = {}): object => ({
  ok: false,
  refusal: expect.objectContaining({ code, ...more }) as unknown,
});

export const begin = async (
  objects: TestObjects,
  cell: string,
  lease: string,
  specs: (OpSpec | string)[],
  more = {},
) => objects.runUntil(objects.ledger(cell).begin(beginRequest(objects.envelope, lease, specs, more)));
/** Waits until the shards have applied the decision, so that a test can look at their rows. */
const decide = async (objects: TestObjects, cell: string, lease: string, outcome: Outcome) => {
  const ledger = objects.ledger(cell);
  const answer = await objects.runUntil(ledger.decide(decideRequest(objects.envelope, lease, outcome)));
  const isHeld = async (): Promise<boolean> =>
    answer.ok && (await objects.holds()).some((hold) => hold.cell === cell && hold.lease === lease);
  for (let attempt = 0; (await isHeld()) && attempt < 1_000; attempt += 1)
    await objects.runUntil(ledger.status(objects.envelope));
  return answer;
};
export const commit = async (objects: TestObjects, cell: string, lease: string) =>
  decide(objects, cell, lease, "COMMITTED");
export const rollBack = async (objects: TestObjects, cell: string, lease: string) =>
  decide(objects, cell, lease, "ROLLED_BACK");
export const lookup = async (objects: TestObjects, value: string): Promise<LookupFound | undefined> => {
  const key = keyOf("ROUTES", value);
  const answer = await objects.runUntil(
    objects
      .shard(shardOf(key.type, key.canonical, shardsOf(objects.envelope.placement)))
      .lookup({ ...objects.envelope, keys: [key] }),
  );
  return answer.ok ? answer.value.found[0] : undefined;
};
export const own = async (objects: TestObjects, cell: string, values: string[]): Promise<void> => {
  const lease = objects.uuid();
  await begin(objects, cell, lease, values);
  await commit(objects, cell, lease);
};
export const list = async (
  objects: TestObjects,
  cell: string,
  more: Partial<{ createdAfterMs: number; afterPosition: number; limit: number }> = {},
) => {
  const answer = await objects.runUntil(
    objects.ledger(cell).listLeases({
      ...objects.envelope,
      caller: callerOf(),
      createdAfterMs: 0,
      afterPosition: 0,
      limit: 100,
      ...more,
    }),
  );
  if (!answer.ok) throw new Error(answer.refusal.detail);
  return answer.value;
};
