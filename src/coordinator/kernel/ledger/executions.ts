/**
 * The executions with which a lease was granted: for each shard that has a hold of the lease, the epoch and
 * the shard's incarnation. An epoch is a position of its shard, so together they are a point in the shard's
 * history, which this ledger has seen (H3).
 */
export type Executions = ReadonlyMap<number, { epoch: number; incarnation: number }>;

/** The stored form: a JSON object from shard to epoch and incarnation. */
export type StoredExecutions = Record<string, [epoch: number, incarnation: number]>;

export const encodeExecutions = (executions: Executions): string =>
  JSON.stringify(
    Object.fromEntries(
      [...executions].map(([shard, { epoch, incarnation }]) => [shard, [epoch, incarnation]]),
    ),
  );

export const decodeExecutions = (stored: string): Executions =>
  new Map(
    Object.entries(JSON.parse(stored) as StoredExecutions).map(([shard, [epoch, incarnation]]) => [
      Number(shard),
      { epoch, incarnation },
    ]),
  );
