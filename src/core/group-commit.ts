import type { Clock, Halt, Sql } from "./ports.ts";

/** Work items of one transaction at most; more wait for the next. Bounds the time one transaction takes. */
const MAX_ITEMS = 500;

interface Item {
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

  submit<T>(work: () => T extends PromiseLike<unknown> ? never : T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ work, resolve, reject });
      if (!this.#draining) void this.#drain();
    });
  }

  async #drain(): Promise<void> {
    this.#draining = true;
    while (this.#queue.length > 0) {
      await this.#clock.turn();
      const items = this.#queue.splice(0, MAX_ITEMS);
      try {
        const values = this.#sql.transaction(() => {
          const done = items.map(({ work }) => work());
          this.#alongside();
          return done;
        });
        await this.#sql.flush();
        for (const [index, { resolve }] of items.entries()) resolve(values[index] as never);
      } catch (error) {
        for (const { reject } of items) reject(error);
        this.#halt(error);
        return;
      }
    }
    this.#draining = false;
  }
}
