/** Calls to the core in a cluster, and the expected answers. */
import { expect } from "vitest";
import type { Exchange, Outcome } from "../../src/coordinator/kernel/messages.ts";
import type { Call, Cluster } from "./cluster.ts";
import { beginRequest, decideRequest } from "./ops.ts";

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
export const isPrepare = (call: Call): boolean =>
  call.method === "exchange" && (call.message as Exchange).prepares.length > 0;
export const isDecision = (call: Call): boolean =>
  call.method === "exchange" && (call.message as Exchange).decisions.length > 0;
