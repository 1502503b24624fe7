import { shardOf } from "../../src/core/placement.ts";

/** Makes names that nobody has, on the shards that are wanted: a batch must touch as many each time. */
export class PlacedNames {
  readonly #shards: number;
  #tried = 0;

  constructor(shards: number) {
    this.#shards = shards;
  }

  /** How many shards a batch of so many claims touches. */
  shardsTouched(claims: number): number {
    return Math.min(claims, this.#shards);
  }

  /**
   * One after another over the shards, from `first` on: batches of one size touch the same ones, so the first
   * of them warms all that the others use.
   */
  fresh(claims: number, first = 0): string[] {
    return Array.from({ length: claims }, (_, index) => this.#on((first + index) % this.#shards));
  }

  #on(shard: number): string {
    for (;;) {
      const name = `counted-group/counted-project-${this.#tried++}`;
      if (shardOf("ROUTES", name, this.#shards) === shard) return name;
    }
  }
}

/** The body of a begin that creates them. */
export const batchOf = (names: readonly string[]): object => ({
  creates: names.map((name) => ({
    bucket: { type: "ROUTES", value: name },
    subject: { type: "PROJECT", id: numberIn(name) },
    source: { type: "RAILS_TABLE_ROUTES", id: numberIn(name) },
  })),
});

/** Each its own: a page of records never splits those of one source. */
const numberIn = (name: string): string => /\d+$/.exec(name)?.[0] ?? "0";
