import type { Limits } from "../../../common/limits.ts";
import type { BucketKey, Prepare } from "../../kernel/messages.ts";
import type { Queues } from "../../kernel/shard/queues.ts";
import type { WaitState, Waiting } from "./messages.ts";
import type { Clock } from "../../kernel/ports.ts";
import { waitTimeoutMs } from "./wait-timeout.ts";
import { bucketText } from "../../kernel/shard/rows.ts";

/** The part of a queue, and of all queues of a shard, that one cell may have. */
const CELL_PART = 1 / 2;

/** A begin that has a place in the queue of a name. */
interface Waiter extends Waiting {
  queue: NameQueue;
  /** Answers the message that the shard keeps. Undefined between two messages. */
  answer: ((state: WaitState) => void) | undefined;
  cancelTimer: () => void;
  /** Its ledger has missed an offer since the last message. Until the next one, the waiter is passed over. */
  isPassedOver: boolean;
}

interface NameQueue {
  key: BucketKey;
  isHeld: boolean;
  /** The first to come is the first. */
  waiters: Waiter[];
  /** The free name is kept for this waiter. */
  offer: { waiter: Waiter; cancelTimer: () => void } | undefined;
}

/**
 * The begins that wait for names of this shard (B11). They are in memory only: a shard that restarts has no
 * queue, and the begins come again. A place holds nothing, so no safety depends on it.
 */
export class NameQueues implements Queues {
  readonly #clock: Clock;
  readonly #limits: Limits;
  readonly #queues = new Map<string, NameQueue>();
  readonly #byCell = new Map<string, Set<Waiter>>();
  /** The queues that have changed in the transaction under way. */
  readonly #changed = new Set<NameQueue>();
  #waiting = 0;
  #missedOffers = 0;
  #refused = 0;

  constructor(clock: Clock, limits: Limits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  get counts(): { waitingBegins: number; missedOffers: number; refusedWaits: number } {
    return { waitingBegins: this.#waiting, missedOffers: this.#missedOffers, refusedWaits: this.#refused };
  }

  /**
   * Returns whether a begin has a place in the queue of a name, and none before it has a message here. A
   * begin whose ledger is dead keeps its place for some time.
   */
  isFirst({ key, ...waiting }: Waiting & { key: BucketKey }): boolean {
    const own = this.#waiterOf(key, waiting);
    const first = own?.queue.waiters.find((each) => each === own || each.answer !== undefined);
    return first !== undefined && first === own;
  }

  /**
   * Resolves when the name is offered to the begin, after `exchangeTimeoutMs`, or at once if there is no
   * room.
   *
   * @param isHeld whether there is a hold on the name
   */
  wait({ cell, lease, key }: Waiting & { key: BucketKey }, isHeld: boolean): Promise<WaitState> {
    const waiter = this.#waiterOf(key, { cell, lease }) ?? this.#enter(key, { cell, lease });
    if (waiter === undefined) {
      this.#refused += 1;
      return Promise.resolve("full");
    }
    // An earlier message of the same begin is a copy, or its sender has given up on it.
    this.#answer(waiter, "waiting");
    waiter.isPassedOver = false;
    waiter.queue.isHeld = isHeld;
    return new Promise((resolve) => {
      waiter.answer = resolve;
      this.#setTimer(waiter, this.#limits.exchangeTimeoutMs, () => this.#answer(waiter, "waiting"));
      if (waiter.queue.offer?.waiter === waiter) this.#answer(waiter, "offered");
      else this.#next(waiter.queue);
    });
  }

  /** Gives up a place, with the offer if there is one. */
  leave({ cell, lease, key }: Waiting & { key: BucketKey }): void {
    const waiter = this.#waiterOf(key, { cell, lease });
    if (waiter === undefined) return;
    this.#remove(waiter);
    this.#next(waiter.queue);
  }

  /**
   * Returns the begin for which a free name is kept, if it is another one than the given begin. It is the
   * first in the queue, unless its ledger has missed an offer.
   */
  firstBefore(key: BucketKey, { cell, lease }: Waiting): Waiting | undefined {
    const queue = this.#queueOf(key);
    const first = queue === undefined ? undefined : firstOf(queue);
    return first === undefined || (first.cell === cell && first.lease === lease) ? undefined : first;
  }

  /** Sends away the begins that wait for names which other shards have now. They come again there (G6). */
  sendAway(hasMoved: (key: BucketKey) => boolean): void {
    const moved = [...this.#queues.values()].filter(({ key }) => hasMoved(key));
    for (const waiter of moved.flatMap(({ waiters }) => waiters)) this.#remove(waiter);
  }

  /** Returns whether a free name is kept for a begin. */
  isAwaited(key: BucketKey): boolean {
    const queue = this.#queueOf(key);
    return queue !== undefined && firstOf(queue) !== undefined;
  }

  /** Must be called in the transaction that makes or ends a hold on the name. */
  holdChanged(key: BucketKey, isHeld: boolean): void {
    const queue = this.#queueOf(key);
    if (queue === undefined) return;
    queue.isHeld = isHeld;
    this.#changed.add(queue);
  }

  /**
   * Must be called when a prepare was carried out. A begin that got the name, or that has taken an
   * offer in vain, gives up its place.
   */
  prepared(request: Prepare, isGranted: boolean): void {
    for (const op of request.ops) {
      const waiter = this.#waiterOf(op, request);
      if (waiter === undefined || !(isGranted || waiter.queue.offer?.waiter === waiter)) continue;
      this.#remove(waiter);
      this.#changed.add(waiter.queue);
    }
  }

  /** Must be called when a transaction is durable. Names that it has freed go to those who wait for them. */
  committed(): void {
    for (const queue of this.#changed) this.#next(queue);
    this.#changed.clear();
  }

  #enter(key: BucketKey, { cell, lease }: Waiting): Waiter | undefined {
    const text = bucketText(key.type, key.canonical);
    const queue = this.#queues.get(text) ?? { key, isHeld: true, waiters: [], offer: undefined };
    const { nameQueue, shardQueue } = this.#limits;
    if (queue.waiters.length >= nameQueue || this.#waiting >= shardQueue) return undefined;
    // No cell shuts out the others.
    const ofCellHere = queue.waiters.filter((each) => each.cell === cell).length;
    const ofCellInAll = this.#byCell.get(cell)?.size ?? 0;
    if (ofCellHere >= nameQueue * CELL_PART || ofCellInAll >= shardQueue * CELL_PART) return undefined;
    const waiter: Waiter = {
      cell,
      lease,
      queue,
      answer: undefined,
      cancelTimer: () => {},
      isPassedOver: false,
    };
    queue.waiters.push(waiter);
    this.#queues.set(text, queue);
    const ofCell = this.#byCell.get(cell) ?? new Set();
    this.#byCell.set(cell, ofCell.add(waiter));
    this.#waiting += 1;
    return waiter;
  }

  #remove(waiter: Waiter): void {
    this.#answer(waiter, "waiting");
    waiter.cancelTimer();
    const { queue } = waiter;
    if (queue.offer?.waiter === waiter) this.#endOffer(queue);
    queue.waiters.splice(queue.waiters.indexOf(waiter), 1);
    if (queue.waiters.length === 0) this.#queues.delete(bucketText(queue.key.type, queue.key.canonical));
    const ofCell = this.#byCell.get(waiter.cell);
    ofCell?.delete(waiter);
    if (ofCell?.size === 0) this.#byCell.delete(waiter.cell);
    this.#waiting -= 1;
  }

  /** Answers the message that is kept. Without another one, the waiter soon loses its place. */
  #answer(waiter: Waiter, state: WaitState): void {
    this.#setTimer(waiter, placeMs(this.#limits), () => {
      this.#remove(waiter);
      this.#next(waiter.queue);
    });
    waiter.answer?.(state);
    waiter.answer = undefined;
  }

  #setTimer(waiter: Waiter, delayMs: number, then: () => void): void {
    waiter.cancelTimer();
    waiter.cancelTimer = this.#clock.after(delayMs, then);
  }

  /** Offers the name to the first waiter if it is free. */
  #next(queue: NameQueue): void {
    if (queue.offer !== undefined || queue.isHeld) return;
    const waiter = firstOf(queue);
    if (waiter === undefined) return;
    const cancelTimer = this.#clock.after(this.#limits.offerMs, () => this.#miss(waiter));
    queue.offer = { waiter, cancelTimer };
    if (waiter.answer !== undefined) this.#answer(waiter, "offered");
  }

  #endOffer(queue: NameQueue): void {
    queue.offer?.cancelTimer();
    queue.offer = undefined;
  }

  /**
   * A begin that misses its offer loses its place. Its ledger may be dead, and then the other begins of its
   * cell are, too. So all of them are passed over until they send another message, and they are asked for it
   * at once. That way a dead ledger delays the others by one offer, however many of its begins have waited.
   */
  #miss(missing: Waiter): void {
    const { cell, queue } = missing;
    this.#remove(missing);
    this.#missedOffers += 1;
    for (const waiter of this.#byCell.get(cell) ?? []) {
      waiter.isPassedOver = true;
      if (waiter.answer !== undefined) this.#answer(waiter, "waiting");
    }
    this.#next(queue);
  }

  #queueOf({ type, canonical }: BucketKey): NameQueue | undefined {
    return this.#queues.size === 0 ? undefined : this.#queues.get(bucketText(type, canonical));
  }

  #waiterOf(key: BucketKey, { cell, lease }: Waiting): Waiter | undefined {
    return this.#queueOf(key)?.waiters.find((each) => each.cell === cell && each.lease === lease);
  }
}

const firstOf = ({ offer, waiters }: NameQueue): Waiter | undefined =>
  offer?.waiter ?? waiters.find(({ isPassedOver }) => !isPassedOver);

/**
 * How long a place is kept between two messages. The ledger notices a lost message or answer after half of
 * this time, and comes again.
 */
const placeMs = (limits: Limits): number => 2 * waitTimeoutMs(limits);
