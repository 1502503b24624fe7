/** Calls to the core in a cluster, and the expected answers. */
import { expect } from "vitest";
import type { Exchange, Lease, Outcome } from "../../src/coordinator/kernel/messages.ts";
import type { Call, Cluster } from "./cluster.ts";
import { beginRequest, callerOf, decideRequest } from "./ops.ts";

export const ok = (value: unknown): object => ({
  ok: true,
  value: expect.objectContaining(value as object) as unknown,
});
export const no = (code: string, more: object = {}): object => ({
  ok: false,
  refusal: expect.objectContaining({ code, ...more }) as unknown,
});

export const begin = (c: Cluster, cell: string, lease: string, names: string[]) =>
  c.ledger(cell).object.begin(beginRequest(c.envelope, lease, names));
export const decide = (c: Cluster, cell: string, lease: string, outcome: Outcome) =>
  c.ledger(cell).object.decide(decideRequest(c.envelope, lease, outcome));
/** The granted leases of a cell, in the order of their grants. */
export async function grantedLeases(c: Cluster, cell: string): Promise<Lease[]> {
  const { object, sql } = c.ledger(cell);
  const leases: Lease[] = [];
  for (const { lease } of sql.all<{ lease: string }>(
    "SELECT lease FROM lease WHERE state = 'GRANTED' ORDER BY created_position",
  )) {
    const answer = await c.clock.runUntil(object.getLease({ ...c.envelope, caller: callerOf(), lease }));
    if (!answer.ok) throw new Error(answer.refusal.detail);
    leases.push(answer.value);
  }
  return leases;
}
export const isPrepare = (call: Call): boolean =>
  call.method === "exchange" && (call.message as Exchange).prepares.length > 0;
export const isDecision = (call: Call): boolean =>
  call.method === "exchange" && (call.message as Exchange).decisions.length > 0;
