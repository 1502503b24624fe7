import { isLeaseholdError } from "../client/errors.ts";
import { scalarText, type Claimable } from "./claimable.ts";
import type { RefusedInput } from "./field-errors.ts";
import type { AnyRow } from "./table.ts";
import { toValidationErrors } from "./validation.ts";

interface Input {
  index: number;
  row: AnyRow;
}

/** Inserts rows, and answers them as they are stored, or undefined if a unique key refused one of them. */
type TryInsert = (rows: readonly AnyRow[]) => Promise<AnyRow[] | undefined>;

/** The rows of one chunk of a bulk insert. */
export class BulkInputs {
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
