import { FairQueue } from "./fair-queue.ts";
import type { Clock, Halt, Sql } from "./ports.ts";
import type { WritePoint } from "./write-points.ts";

/**
 * The largest weight of one transaction, in rows, unless its first item alone weighs more. Work beyond it
 * goes into the next transaction, so that no transaction takes long: 4,000 rows take about 100 ms.
 */
const MAX_WEIGHT = 4_000;

/** The owner of work that belongs to no cell. */
const NO_OWNER = "";

interface Item {
  point: WritePoint;
  weight: number;
  work: () => unknown;
  resolve: (value: never) => void;
  reject: (error: unknown) => void;
}

/**
 * Puts all work that is ready into one transaction, as far as it fits (N1): work that arrives while a
 * transaction becomes durable shares the next one. If more is ready than fits, cells take turns (M7). Each
 * item is synchronous and sees what the items before it wrote. Its promise resolves when the transaction is
 * durable (B5, C2).
 *
 * If an item or the disk fails, the write may or may not be durable. Therefore the instance ends and answers
 * no caller (B5).
 */
export class GroupCommit {
  readonly #sql: Sql;
  readonly #clock: Clock;
  readonly #halt: Halt;
  readonly #alongside: () => void;
  readonly #durable: () => void;
  readonly #maxWeight: number;
  readonly #queue = new FairQueue<Item>();
  #draining = false;

  /**
   * @param alongside runs at the end of each transaction, for work that needs no transaction of its own
   * @param durable runs when a transaction is durable, before anybody learns of it
   * @param maxWeight the largest weight of one transaction, in rows
   */
  constructor(
    sql: Sql,
    clock: Clock,
    halt: Halt,
    alongside: () => void = () => {},
    durable: () => void = () => {},
    maxWeight: number = MAX_WEIGHT,
  ) {
    this.#sql = sql;
    this.#clock = clock;
    this.#halt = halt;
    this.#alongside = alongside;
    this.#durable = durable;
    this.#maxWeight = maxWeight;
  }

  /**
   * Queues `work` for the next transaction.
   *
   * @param weight roughly how many rows the work touches
   * @param owner the cell whose work it is; cells get their turns one after the other, and the work of one
   *   owner is done in its order
   */
  submit<T>(
    point: WritePoint,
    work: () => T extends PromiseLike<unknown> ? never : T,
    { weight = 8, owner = NO_OWNER }: { weight?: number; owner?: string } = {},
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#queue.push(owner, { point, weight, work, resolve, reject });
      if (!this.#draining) void this.#drain();
    });
  }

  /** The number of items that wait. */
  get waiting(): number {
    return this.#queue.length;
  }

  /** The number of items of one owner that wait. */
  waitingOf(owner: string): number {
    return this.#queue.lengthOf(owner);
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
        this.#durable();
        for (const [index, { resolve }] of items.entries()) resolve(values[index] as never);
      } catch (error) {
        for (const { reject } of [...items, ...this.#queue.drain()]) reject(error);
        this.#halt(error);
        return;
      }
    }
    this.#draining = false;
  }

  /**
   * Takes the first item whatever its weight, and the items after it that still fit. Owners take turns, so a
   * transaction has something of each, as far as it goes.
   */
  #take(): Item[] {
    const items: Item[] = [];
    let weight = 0;
    for (let next = this.#queue.peek(); next !== undefined; next = this.#queue.peek()) {
      weight += next.weight;
      if (items.length > 0 && weight > this.#maxWeight) break;
      this.#queue.shift();
      items.push(next);
    }
    return items;
  }
}
