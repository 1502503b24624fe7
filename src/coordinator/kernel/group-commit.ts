import { FairQueue } from "./fair-queue.ts";
import type { Ports } from "./ports.ts";
import { ok, type Result } from "./refusal.ts";
import type { Standing } from "./standing.ts";
import type { WritePoint } from "./write-points.ts";

/**
 * The largest weight of one transaction, in rows, unless its first item alone weighs more. Work beyond it
 * goes into the next transaction, so that no transaction takes long: 4,000 rows take about 100 ms.
 */
const MAX_WEIGHT = 4_000;

/** The owner of work that belongs to no cell. */
const NO_OWNER = "";

/** A slot, of which work needs only this. */
interface MayWork {
  readonly current: Pick<Standing, "stopped">;
}

interface SubmitOptions {
  weight?: number;
  owner?: string;
  evenIfStopped?: boolean;
}

interface Item {
  point: WritePoint;
  weight: number;
  evenIfStopped: boolean;
  work: () => Result<unknown> | void;
  resolve: (value: never) => void;
  reject: (error: unknown) => void;
}

/**
 * Puts all work that is ready into one transaction, as far as it fits (N1): work that arrives while a
 * transaction becomes durable shares the next one. If more is ready than fits, cells take turns (M7). Each
 * item is synchronous and sees what the items before it wrote. Its promise resolves when the transaction is
 * durable (B5, C2).
 *
 * A part may notice that it has gone back in time while work waits for its transaction. Then the work is not
 * carried out, and its promise resolves with the refusal, once the loss is durable (M1, H4).
 *
 * If an item or the disk fails, the write may or may not be durable. Therefore the instance ends and answers
 * no caller (B5).
 */
export class GroupCommit {
  readonly #ports: Pick<Ports, "sql" | "clock" | "halt">;
  readonly #standing: MayWork;
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
    ports: Pick<Ports, "sql" | "clock" | "halt">,
    standing: MayWork,
    alongside: () => void = () => {},
    durable: () => void = () => {},
    maxWeight: number = MAX_WEIGHT,
  ) {
    this.#ports = ports;
    this.#standing = standing;
    this.#alongside = alongside;
    this.#durable = durable;
    this.#maxWeight = maxWeight;
  }

  /**
   * Queues `work` for the next transaction. Resolves with its result, or with the reason why a part that has
   * gone back in time did not carry it out.
   *
   * @param weight roughly how many rows the work touches
   * @param owner the cell whose work it is; cells get their turns one after the other, and the work of one
   *   owner is done in its order
   * @param evenIfStopped also carries it out in a part that has gone back in time
   */
  submit<T = void>(
    point: WritePoint,
    work: () => Result<T> | void,
    { weight = 8, owner = NO_OWNER, evenIfStopped = false }: SubmitOptions = {},
  ): Promise<Result<T>> {
    return new Promise((resolve, reject) => {
      this.#queue.push(owner, { point, weight, evenIfStopped, work, resolve, reject });
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
        await this.#ports.clock.turn();
        items = this.#take();
        const refusal = this.#standing.current.stopped;
        const allowed = refusal === undefined ? items : items.filter(({ evenIfStopped }) => evenIfStopped);
        const results = allowed.length === 0 ? [] : this.#carryOut(allowed);
        await this.#ports.sql.flush();
        if (allowed.length > 0) this.#durable();
        for (const [index, { resolve }] of allowed.entries()) resolve(results[index] as never);
        if (refusal !== undefined)
          for (const item of items) if (!item.evenIfStopped) item.resolve({ ok: false, refusal } as never);
      } catch (error) {
        for (const { reject } of [...items, ...this.#queue.drain()]) reject(error);
        this.#ports.halt(error);
        return;
      }
    }
    this.#draining = false;
  }

  #carryOut(items: readonly Item[]): Result<unknown>[] {
    const points = [...new Set(items.map(({ point }) => point))];
    return this.#ports.sql.transaction(points, () => {
      const results = items.map(({ work }) => work() ?? ok(undefined));
      this.#alongside();
      return results;
    });
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
