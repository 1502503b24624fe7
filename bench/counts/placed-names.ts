import { shardOf } from "../../src/coordinator/kernel/placement.ts";
import { bucketType } from "../../test/support/types.ts";

/** Generates new names on chosen shards, so that each batch of one size touches the same number of shards. */
export class PlacedNames {
  readonly #shards: number;
  #tried = 0;

  constructor(shards: number) {
    this.#shards = shards;
  }

  /** The number of shards that a batch of `claims` claims touches. */
  shardsTouched(claims: number): number {
    return Math.min(claims, this.#shards);
  }

  /**
   * Goes over the shards in turn, starting with `first`. Batches of one size touch the same shards, so the
   * first batch warms everything that the others use.
   */
  fresh(claims: number, first = 0): string[] {
    return Array.from({ length: claims }, (_, index) => this.#on((first + index) % this.#shards));
  }

  /** New names on whatever shards they hash to. */
  anywhere(claims: number): string[] {
    return Array.from({ length: claims }, () => this.#next());
  }

  /** The number of shards that have these names. */
  touchedBy(names: readonly string[]): number {
    return new Set(names.map((name) => this.#shardOf(name))).size;
  }

  #on(shard: number): string {
    for (;;) {
      const name = this.#next();
      if (this.#shardOf(name) === shard) return name;
    }
  }

  #next(): string {
    return `counted-group/counted-project-${this.#tried++}`;
  }

  #shardOf(name: string): number {
    return shardOf(bucketType("ROUTES"), name, this.#shards);
  }
}

/** The body of a begin that creates claims for the names. */
export const batchOf = (names: readonly string[]): object => ({
  creates: names.map((name) => ({
    bucket: { type: "ROUTES", value: name },
    subject: { type: "PROJECT", id: numberIn(name) },
    source: { type: "RAILS_TABLE_ROUTES", id: numberIn(name) },
  })),
});

/** Gives each claim its own source, because a page of records never splits the records of one source. */
const numberIn = (name: string): string => /\d+$/.exec(name)?.[0] ?? "0";
