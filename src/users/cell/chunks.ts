import { bytesOf } from "../../common/ids.ts";
import { scalarText, type Claimable } from "./claimable.ts";
import type { AnyRow } from "./table.ts";

export interface ChunkLimits {
  records: number;
  /** Claims, up to the coordinator's limit for a batch. */
  ops: number;
  /** Estimated size of the begin's body. */
  bytes: number;
}

export const chunkDefaults: Readonly<ChunkLimits> = { records: 1_000, ops: 1_000, bytes: 900_000 };

/** Estimated size of a claim in a begin, without its value. */
export const CLAIM_BYTES = 200;

/** Splits rows into chunks within every limit. A single row over a limit is a chunk of its own. */
export function* chunksOf<R extends AnyRow>(
  rows: Iterable<R>,
  claimable: Claimable,
  limits: ChunkLimits,
): Generator<R[]> {
  let chunk: R[] = [];
  let ops = 0;
  let bytes = 0;
  for (const row of rows) {
    const size = sizeOf(row, claimable);
    const isFull =
      chunk.length >= limits.records || ops + size.ops > limits.ops || bytes + size.bytes > limits.bytes;
    if (isFull && chunk.length > 0) {
      yield chunk;
      [chunk, ops, bytes] = [[], 0, 0];
    }
    chunk.push(row);
    ops += size.ops;
    bytes += size.bytes;
  }
  if (chunk.length > 0) yield chunk;
}

/** An upper bound, because defaults of the database and `when` are known only after the insert. */
function sizeOf(row: AnyRow, { attributes }: Claimable): { ops: number; bytes: number } {
  const values = attributes.flatMap(({ name }) =>
    row[name] === undefined ? "" : (scalarText(row[name], name) ?? []),
  );
  return { ops: values.length, bytes: values.reduce((sum, value) => sum + bytesOf(value) + CLAIM_BYTES, 0) };
}

/** Runs `work` on chunks of at most `size` items, one after the other, and concatenates the results. */
export async function inChunks<T, R>(
  items: readonly T[],
  size: number,
  work: (chunk: readonly T[]) => Promise<readonly R[]>,
): Promise<R[]> {
  const results: R[] = [];
  for (let at = 0; at < items.length; at += size) results.push(...(await work(items.slice(at, at + size))));
  return results;
}
