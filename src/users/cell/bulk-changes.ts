import { callHook } from "../client/hooks.ts";
import { BulkInputs } from "./bulk-inputs.ts";
import { chunksOf, type ChunkLimits } from "./chunks.ts";
import type { ClaimTransaction, TransactionOptions } from "./claim-transaction.ts";
import type { Claimable } from "./claimable.ts";
import { BulkError } from "./errors.ts";
import type { RefusedInput } from "./field-errors.ts";
import type { CellDatabase } from "./local.ts";
import type { AnyRow } from "./table.ts";

export interface BulkOptions extends TransactionOptions {
  /**
   * Called after each chunk is saved, with what was done so far. Errors that it throws are ignored.
   */
  onProgress?: (done: BulkProgress) => void;
}

export interface BulkInsertOptions extends BulkOptions {
  /**
   * Leaves out the rows that are refused, and saves the others, instead of failing their chunk: rows whose
   * name is taken or leased, or cannot be a name, and rows that violate a unique key of the database. The
   * result lists them. False by default.
   */
  skipRefused?: boolean;
}

export interface BulkProgress {
  /** The rows that were saved or deleted. */
  records: number;
  /** The chunks, which have a transaction and a lease each. */
  chunks: number;
  /** What an insert has left out, chunk by chunk. Each refused column of a row has an entry. */
  refused: readonly RefusedInput[];
}

/** What bulk changes need of a cell. */
export interface BulkPorts<Tx> {
  transaction: <T>(body: (tx: ClaimTransaction<Tx>) => Promise<T>, options: TransactionOptions) => Promise<T>;
  database: CellDatabase<Tx>;
  limits: ChunkLimits;
}

/** What a chunk of a bulk change has done. */
interface ChunkDone {
  records: number;
  refused: readonly RefusedInput[];
}

/** See `Cell.bulkInsert`. */
export async function insertInChunks<Tx>(
  ports: BulkPorts<Tx>,
  claimable: Claimable,
  rows: readonly AnyRow[],
  options: BulkInsertOptions,
): Promise<BulkProgress> {
  const chunks = (function* (): Generator<BulkInputs> {
    let index = 0;
    for (const chunk of chunksOf(rows, claimable, ports.limits)) {
      yield new BulkInputs(claimable, chunk, index);
      index += chunk.length;
    }
  })();
  const insert = (inputs: BulkInputs): Promise<ChunkDone> => insertChunk(ports, claimable, inputs, options);
  return runChunks(options, chunks, insert, (inputs, error) => inputs.refusedBy(error));
}

/** Each attempt leaves out at least one row. */
async function insertChunk<Tx>(
  { transaction }: BulkPorts<Tx>,
  claimable: Claimable,
  inputs: BulkInputs,
  options: BulkInsertOptions,
): Promise<ChunkDone> {
  const { skipRefused = false } = options;
  for (;;) {
    try {
      const records = await transaction(
        (tx) =>
          inputs.insert((rows) =>
            skipRefused ? tx.tryInsertRows(claimable, rows) : tx.insertRows(claimable, rows),
          ),
        options,
      );
      return { records, refused: inputs.refused };
    } catch (error) {
      const refused = inputs.refusedBy(error);
      if (!skipRefused || refused.length === 0) throw error;
      inputs.refuse(refused);
    }
  }
}

/** See `Cell.bulkDelete`. */
export async function deleteInChunks<Tx>(
  { transaction, database, limits }: BulkPorts<Tx>,
  claimable: Claimable,
  where: unknown,
  options: BulkOptions,
): Promise<BulkProgress> {
  const endless = (function* (): Generator<undefined> {
    for (;;) yield undefined;
  })();
  return runChunks(options, endless, async () =>
    transaction(async (tx) => {
      const found = await database.lock(tx.db, claimable, { where }, limits.records);
      const [rows = []] = chunksOf(found, claimable, limits);
      await tx.deleteRows(claimable, rows);
      return rows.length === 0 ? undefined : { records: rows.length, refused: [] };
    }, options),
  );
}

/**
 * @param work - undefined if nothing is left to do
 * @param refusedBy - what an error refuses of a chunk
 */
async function runChunks<C>(
  { signal, onProgress }: BulkOptions,
  chunks: Iterable<C>,
  work: (chunk: C) => Promise<ChunkDone | undefined>,
  refusedBy: (chunk: C, error: unknown) => readonly RefusedInput[] = () => [],
): Promise<BulkProgress> {
  const refused: RefusedInput[] = [];
  const done = { records: 0, chunks: 0, refused };
  for (const chunk of chunks) {
    try {
      signal?.throwIfAborted();
      const its = await work(chunk);
      if (its === undefined) return done;
      done.records += its.records;
      refused.push(...its.refused);
    } catch (error) {
      throw new BulkError(error, {
        recordsDone: done.records,
        chunksDone: done.chunks,
        refused: [...refused, ...refusedBy(chunk, error)],
      });
    }
    done.chunks += 1;
    callHook(onProgress, { ...done, refused: [...refused] });
  }
  return done;
}
