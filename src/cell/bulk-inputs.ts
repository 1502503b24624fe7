import { isLeaseholdError } from "../client/errors.ts";
import type { Types } from "../core/types/types.ts";
import { scalarText, type Claimable } from "./claimable.ts";
import { canonicalOf } from "./declared-types.ts";
import { invalidArgument } from "./errors.ts";
import type { RefusedInput } from "./field-errors.ts";
import type { AnyRow } from "./table.ts";
import { toValidationErrors } from "./validation.ts";

interface Input {
  index: number;
  row: AnyRow;
}

/** The rows of one chunk of a bulk insert, without those that were refused. */
export class BulkInputs {
  readonly refused: RefusedInput[] = [];
  readonly #claimable: Claimable;
  readonly #types: Types;
  #left: readonly Input[];
  #storedById = new Map<string, { index: number; stored: AnyRow }>();

  /** @param firstIndex - the index of the first row among all rows that were given */
  constructor(claimable: Claimable, types: Types, rows: readonly AnyRow[], firstIndex: number) {
    this.#claimable = claimable;
    this.#types = types;
    this.#left = rows.map((row, at) => ({ index: firstIndex + at, row }));
  }

  get rows(): AnyRow[] {
    return this.#left.map(({ row }) => row);
  }

  /**
   * Notes which rows the database has stored, in the order in which they were given, and leaves out those
   * that it has not.
   */
  noteStored(stored: readonly AnyRow[]): void {
    const isComplete = stored.length === this.#left.length;
    let next = 0;
    this.#storedById = new Map();
    const kept: Input[] = [];
    for (const input of this.#left) {
      const row = stored[next];
      if (row !== undefined && (isComplete || this.#isStoredAs(input.row, row))) {
        this.#storedById.set(this.#claimable.idOf(row), { index: input.index, stored: row });
        kept.push(input);
        next += 1;
      } else this.refused.push({ index: input.index, field: undefined, value: undefined, problem: "taken" });
    }
    if (next < stored.length)
      throw invalidArgument(
        "skipRefused",
        `cannot be used for ${this.#claimable.name}, because the database stores other names than those ` +
          "given, so it is unknown which rows it left out",
      );
    this.#left = kept;
  }

  /** The rows that are why their transaction failed. Empty if it failed for another reason. */
  refusedBy(error: unknown): RefusedInput[] {
    const { name } = this.#claimable;
    if (!isLeaseholdError(error) || !error.outcomeKnown) return [];
    if (error.conflicts.length === 0 && error.code !== "INVALID_ARGUMENT") return [];
    return toValidationErrors(error).flatMap(({ table, field, id, problem }) => {
      const found = id === undefined || table !== name ? undefined : this.#storedById.get(id);
      if (found === undefined) return [];
      const value = scalarText(found.stored[field], field);
      return [{ index: found.index, field, value, problem }];
    });
  }

  /** Leaves these rows out from now on. */
  refuse(inputs: readonly RefusedInput[]): void {
    const indexes = new Set(inputs.map(({ index }) => index));
    this.#left = this.#left.filter(({ index }) => !indexes.has(index));
    this.refused.push(...inputs);
  }

  #isStoredAs(given: AnyRow, stored: AnyRow): boolean {
    const { idName, attributes } = this.#claimable;
    const isSame = (column: string, canonical: (value: string) => string): boolean => {
      // The database computes the others, or converts them.
      if (!["string", "number", "bigint"].includes(typeof given[column])) return true;
      const [one = "", other = ""] = [given, stored].map((row) => scalarText(row[column], column));
      return one === other || canonical(one) === canonical(other);
    };
    return (
      isSame(idName, (value) => value) &&
      attributes.every(({ name, bucket }) =>
        isSame(name, (value) => {
          const made = canonicalOf(this.#types, { type: bucket, value });
          return made.ok ? made.canonical : value;
        }),
      )
    );
  }
}
