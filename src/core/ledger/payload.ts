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
 * A lease's ops as its row keeps them: one array each, with the registry's numbers, and the canonical value only where it differs from the
 * typed one. A thousand ops fit into one row of the store that way. What came later stands at the end, and is left out where it is not given.
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

/** The inverse. Throws when the row holds what this version does not know: it is never guessed. */
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
  if (value === undefined) throw new Error("a stored lease holds a number that is not in the registry");
  return value;
}
