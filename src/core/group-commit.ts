import type { Clock, Halt, Sql } from "./ports.ts";
import type { WritePoint } from "./write-points.ts";

/** Weight of one transaction; more waits for the next, so that nobody waits long for one. About as many rows take 100 ms. */
const MAX_WEIGHT = 4_000;

interface Item {
  point: WritePoint;
  weight: number;
  work: () => unknown;
  resolve: (value: never) => void;
  reject: (error: unknown) => void;
}

/**
 * One transaction for all that is ready (rule N1): work that arrives while a transaction becomes durable shares the next one. Each item
 * is synchronous, sees what the items before it wrote, and its promise resolves once all of it is durable (rules B5, C2).
 *
 * A failure, of an item or of the disk, may or may not have been durable: the instance ends and nobody is answered (rule B5).
 */
export class GroupCommit {
  readonly #sql: Sql;
  readonly #clock: Clock;
  readonly #halt: Halt;
  readonly #alongside: () => void;
  readonly #queue: Item[] = [];
  #draining = false;

  /** `alongside`: work that does not deserve a transaction of its own; runs at the end of each. */
  constructor(sql: Sql, clock: Clock, halt: Halt, alongside: () => void = () => {}) {
    this.#sql = sql;
    this.#clock = clock;
    this.#halt = halt;
    this.#alongside = alongside;
  }

  /** `weight`: about how many rows the work touches. */
  submit<T>(
    point: WritePoint,
    work: () => T extends PromiseLike<unknown> ? never : T,
    weight = 8,
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ point, weight, work, resolve, reject });
      if (!this.#draining) void this.#drain();
    });
  }

  async #drain(): Promise<void> {
    this.#draining = true;
    while (this.#queue.length > 0) {
      let items: Item[] = [];
      try {
        await this.#clock.turn();
        items = this.#take();
        const points = [...new Set(items.map(({ point }) => point))];
        const values = this.#sql.transaction(points, () => {
          const done = items.map(({ work }) => work());
          this.#alongside();
          return done;
        });
        await this.#sql.flush();
        for (const [index, { resolve }] of items.entries()) resolve(values[index] as never);
      } catch (error) {
        for (const { reject } of [...items, ...this.#queue.splice(0)]) reject(error);
        this.#halt(error);
        return;
      }
    }
    this.#draining = false;
  }

  /** The first item always, and what fits beside it. */
  #take(): Item[] {
    let weight = 0;
    let count = 0;
    for (const item of this.#queue) {
      weight += item.weight;
      if (count > 0 && weight > MAX_WEIGHT) break;
      count += 1;
    }
    return this.#queue.splice(0, count);
  }
}
