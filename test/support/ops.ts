import type {
  Operator,
  BeginRequest,
  BucketKey,
  DecideRequest,
  Envelope,
  Exchange,
  Op,
  OpKind,
  Outcome,
} from "../../src/coordinator/kernel/messages.ts";
import { canonicalize } from "../../src/common/canonical/canonicalize.ts";
import { FORMAT, type Stamp } from "../../src/coordinator/kernel/formats.ts";
import { shardOf, shardsOf } from "../../src/coordinator/kernel/placement.ts";
import {
  bucketType,
  ruleOf,
  sourceOf,
  subjectOf,
  type BucketTypeName,
  type SourceTypeName,
  type SubjectTypeName,
} from "./types.ts";

/** What callers in tests add to the messages that they send without an interceptor (M9). */
export const STAMP: Stamp = { speaks: FORMAT, format: FORMAT };

/** An op as a test writes it, with the names of the shipped types. */
export interface OpSpec {
  kind?: OpKind;
  type?: BucketTypeName;
  value: string;
  subject?: { type: SubjectTypeName; id: string } | null | undefined;
  source?: { type: SourceTypeName; id: string } | null | undefined;
  scope?: string | undefined;
  epoch?: number | undefined;
}

/** Returns a batch as the HTTP layer passes it to a ledger. A plain string is the create of a route. */
export function opsOf(placement: string, specs: readonly (OpSpec | string)[]): Op[] {
  const counts = { create: 0, destroy: 0, replace: 0 };
  return specs.map((given) => {
    const spec = typeof given === "string" ? { value: given } : given;
    const { kind = "create", type = "ROUTES", value } = spec;
    const subject = spec.subject === undefined ? { type: "NAMESPACE" as const, id: "1" } : spec.subject;
    const source = spec.source === undefined ? { type: "RAILS_TABLE_ROUTES" as const, id: "1" } : spec.source;
    const key = keyOf(type, value);
    return {
      kind,
      index: counts[kind]++,
      value,
      ...key,
      ...(subject === null ? {} : { subject: subjectOf(subject.type, subject.id) }),
      ...(source === null ? {} : { source: sourceOf(source.type, source.id) }),
      ...(spec.scope === undefined ? {} : { scope: spec.scope }),
      ...(spec.epoch === undefined ? {} : { epoch: spec.epoch }),
      shard: shardOf(key.type, key.canonical, shardsOf(placement)),
    };
  });
}

export function keyOf(type: BucketTypeName, value: string): BucketKey {
  const result = canonicalize(ruleOf(type), value, 1_024);
  if (!result.ok) throw new Error(result.detail);
  return { type: bucketType(type), canonical: result.canonical };
}

/** Who makes the changes of operators in a test. */
export const operator: Operator = { keyId: "operator-key", requestId: "request-1", reason: null };

export const callerOf = (): { role: "cell"; keyId: string; expiresAtMs: number } => ({
  role: "cell",
  keyId: "k1",
  expiresAtMs: Number.MAX_SAFE_INTEGER,
});

export function beginRequest(
  envelope: Envelope,
  lease: string,
  specs: readonly (OpSpec | string)[],
  more: Partial<BeginRequest> = {},
): BeginRequest {
  const ops = opsOf(envelope.placement, specs);
  const payloadHash = JSON.stringify(
    ops.map(({ kind, type, value, subject, source, scope, epoch }) => [
      kind,
      type,
      value,
      subject,
      source,
      scope,
      epoch,
    ]),
  );
  return {
    ...envelope,
    caller: callerOf(),
    requestId: "request-1",
    lease,
    ops,
    payloadHash,
    allowMissing: false,
    ...more,
  };
}

export function decideRequest(
  envelope: Envelope,
  lease: string,
  outcome: Outcome,
  more: Partial<DecideRequest> = {},
): DecideRequest {
  return { ...envelope, caller: callerOf(), requestId: "request-1", lease, outcome, ...more };
}

/** Returns a message from the ledger of a cell to a shard, with everything else as for a new ledger. */
export const exchangeOf = (envelope: Envelope, cell: string, more: Partial<Exchange> = {}): Exchange => ({
  ...envelope,
  cell,
  point: null,
  confirmed: null,
  decisions: [],
  prepares: [],
  ...more,
});
