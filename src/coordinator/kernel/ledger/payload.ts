import type { Op, OpKind } from "../messages.ts";

/**
 * One op of a lease as its row stores it: an array with numbers for names, and with the canonical value only
 * if it differs from the typed one. In this form, 1,000 ops fit into one row. An op without `epoch` and
 * `scope` leaves out the last elements. The epoch 0 stands for none.
 */
export type StoredOp = [
  kind: number,
  type: number,
  value: string,
  canonical: string | 0,
  shard: number,
  subject: [type: number, id: string] | 0,
  source: [type: number, id: string] | 0,
  epoch?: number,
  scope?: string,
];

function lastOf(epoch: number | undefined, scope: string | undefined): [] | [number] | [number, string] {
  if (scope !== undefined) return [epoch ?? 0, scope];
  return epoch === undefined ? [] : [epoch];
}

const kinds: readonly OpKind[] = ["create", "destroy", "replace"];

export function encodePayload(ops: readonly Op[]): string {
  return JSON.stringify(
    ops.map(({ kind, type, value, canonical, shard, subject, source, epoch, scope }): StoredOp => [
      kinds.indexOf(kind),
      type,
      value,
      canonical === value ? 0 : canonical,
      shard,
      subject === undefined ? 0 : [subject.type, subject.id],
      source === undefined ? 0 : [source.type, source.id],
      ...lastOf(epoch, scope),
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
    ([kindNumber, type, value, canonical, shard, subject, source, epoch, scope]) => {
      const kind = kindOf(kindNumber);
      return {
        kind,
        index: counts[kind]++,
        type,
        value,
        canonical: canonical === 0 ? value : canonical,
        shard,
        ...(subject === 0 ? {} : { subject: { type: subject[0], id: subject[1] } }),
        ...(source === 0 ? {} : { source: { type: source[0], id: source[1] } }),
        ...(epoch === undefined || epoch === 0 ? {} : { epoch }),
        ...(scope === undefined ? {} : { scope }),
      };
    },
  );
}

function kindOf(number: number): OpKind {
  const kind = kinds[number];
  if (kind === undefined) throw new Error(`a stored lease has an op of the unknown kind ${number}`);
  return kind;
}
