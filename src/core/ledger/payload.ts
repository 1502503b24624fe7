import type { Op, OpKind } from "../messages.ts";
import {
  bucketTypeByNumber,
  bucketTypes,
  sourceTypeByNumber,
  sourceTypes,
  subjectTypeByNumber,
  subjectTypes,
} from "../registry.ts";

/**
 * One op of a lease as its row stores it: an array with the registry's numbers, and with the canonical value
 * only if it differs from the typed one. In this form, 1,000 ops fit into one row. An op without an `epoch`
 * leaves out the last element.
 */
type StoredOp = [
  kind: number,
  type: number,
  value: string,
  canonical: string | 0,
  shard: number,
  subject: [type: number, id: string] | 0,
  source: [type: number, id: string] | 0,
  epoch?: number,
];

const kinds: readonly OpKind[] = ["create", "destroy", "replace"];

export function encodePayload(ops: readonly Op[]): string {
  return JSON.stringify(
    ops.map(({ kind, type, value, canonical, shard, subject, source, epoch }): StoredOp => [
      kinds.indexOf(kind),
      bucketTypes[type].number,
      value,
      canonical === value ? 0 : canonical,
      shard,
      subject === undefined ? 0 : [subjectTypes[subject.type].number, subject.id],
      source === undefined ? 0 : [sourceTypes[source.type].number, source.id],
      ...(epoch === undefined ? ([] as const) : ([epoch] as const)),
    ]),
  );
}

/**
 * Reverses `encodePayload`.
 *
 * @throws if the row contains a number that this version does not know
 */
export function decodePayload(payload: string): Op[] {
  const counts = { create: 0, destroy: 0, replace: 0 };
  return (JSON.parse(payload) as StoredOp[]).map(
    ([kindNumber, typeNumber, value, canonical, shard, subject, source, epoch]) => {
      const kind = fromRegistry(kinds[kindNumber]);
      return {
        kind,
        index: counts[kind]++,
        type: fromRegistry(bucketTypeByNumber(typeNumber)),
        value,
        canonical: canonical === 0 ? value : canonical,
        shard,
        ...(subject === 0
          ? {}
          : { subject: { type: fromRegistry(subjectTypeByNumber(subject[0])), id: subject[1] } }),
        ...(source === 0
          ? {}
          : { source: { type: fromRegistry(sourceTypeByNumber(source[0])), id: source[1] } }),
        ...(epoch === undefined ? {} : { epoch }),
      };
    },
  );
}

function fromRegistry<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("a stored lease contains a number that is not in the registry");
  return value;
}
