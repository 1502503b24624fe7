import { bytesOf } from "../core/ids.ts";
import { scalarText, type AnyRow, type Claimable } from "./claimable.ts";

export interface ChunkLimits {
  records: number;
  /** Claims: the coordinator's limit of a batch. */
  ops: number;
  /** Of the begin's body, as estimated. */
  bytes: number;
}

export const chunkDefaults: Readonly<ChunkLimits> = { records: 1_000, ops: 1_000, bytes: 900_000 };

/** What a claim adds to a begin besides its value: types, ids and punctuation. */
export const CLAIM_BYTES = 200;

/** Rows in their order, in chunks that stay under every limit. A row that is over one by itself is a chunk by itself. */
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

/** At most: what the database fills in, and whether a claim applies to a row, is known only after the insert. */
function sizeOf(row: AnyRow, { attributes }: Claimable): { ops: number; bytes: number } {
  const values = attributes.flatMap(({ name }) =>
    row[name] === undefined ? "" : (scalarText(row[name], name) ?? []),
  );
  return { ops: values.length, bytes: values.reduce((sum, value) => sum + bytesOf(value) + CLAIM_BYTES, 0) };
}
