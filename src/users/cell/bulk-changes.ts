import { isLeaseholdError } from "../client/errors.ts";
import { callHook } from "../client/hooks.ts";
import { chunksOf, type ChunkLimits } from "./chunks.ts";
import type { ClaimTransaction, TransactionOptions } from "./claim-transaction.ts";
import { scalarText, type Claimable } from "./claimable.ts";
import { BulkError, type RefusedInput } from "./errors.ts";
import type { CellDatabase } from "./local.ts";
import type { AnyRow } from "./table.ts";
import { toValidationErrors } from "./validation.ts";

interface Input {
  index: number;
  row: AnyRow;
}

/** Inserts rows, and answers them as they are stored, or undefined if a unique key refused one of them. */
type TryInsert = (rows: readonly AnyRow[]) => Promise<AnyRow[] | undefined>;

/** The rows of one chunk of a bulk insert. */
class BulkInputs {
  readonly #claimable: Claimable;
  /** Those that the coordinator has not refused. */
  #left: readonly Input[];
  readonly #refused: RefusedInput[] = [];
  /** Those that a unique key refused in the latest attempt. */
  #duplicates: RefusedInput[] = [];
  /** Those that the latest attempt stored, by their ids. */
  #stored = new Map<string, { index: number; row: AnyRow }>();

  /** @param firstIndex - the index of the first row among all rows that were given */
  constructor(claimable: Claimable, rows: readonly AnyRow[], firstIndex: number) {
    this.#claimable = claimable;
    this.#left = rows.map((row, at) => ({ index: firstIndex + at, row }));
  }

  get refused(): RefusedInput[] {
    return [...this.#refused, ...this.#duplicates];
  }

  /** Inserts what is left, without the rows that a unique key refuses. Answers how many were stored. */
  async insert(tryInsert: TryInsert): Promise<number> {
    this.#duplicates = [];
    this.#stored = new Map();
    await this.#insert(this.#left, tryInsert);
    return this.#stored.size;
  }

  /** Splits the rows in halves until those that a unique key refuses are alone. */
  async #insert(inputs: readonly Input[], tryInsert: TryInsert): Promise<void> {
    const [first] = inputs;
    if (first === undefined) return;
    const stored = await tryInsert(inputs.map(({ row }) => row));
    if (stored !== undefined)
      for (const [at, { index }] of inputs.entries()) {
        const row = stored[at];
        if (row !== undefined) this.#stored.set(this.#claimable.idOf(row), { index, row });
      }
    else if (inputs.length === 1)
      this.#duplicates.push({ index: first.index, field: undefined, value: undefined, problem: "taken" });
    else {
      const middle = Math.ceil(inputs.length / 2);
      await this.#insert(inputs.slice(0, middle), tryInsert);
      await this.#insert(inputs.slice(middle), tryInsert);
    }
  }

  /** The rows that are why their transaction failed. Empty if it failed for another reason. */
  refusedBy(error: unknown): RefusedInput[] {
    const { name } = this.#claimable;
    if (!isLeaseholdError(error) || !error.outcomeKnown) return [];
    if (error.conflicts.length === 0 && error.code !== "INVALID_ARGUMENT") return [];
    return toValidationErrors(error).flatMap(({ table, field, id, problem }) => {
      const found = id === undefined || table !== name ? undefined : this.#stored.get(id);
      if (found === undefined) return [];
      return [{ index: found.index, field, value: scalarText(found.row[field], field), problem }];
    });
  }

  /** Leaves these rows out from now on. */
  refuse(inputs: readonly RefusedInput[]): void {
    const indexes = new Set(inputs.map(({ index }) => index));
    this.#left = this.#left.filter(({ index }) => !indexes.has(index));
    this.#refused.push(...inputs);
  }
}

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
