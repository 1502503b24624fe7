import type { Limits } from "../limits.ts";
import {
  MESSAGE_VERSION,
  type Decision,
  type Exchange,
  type ExchangeAnswer,
  type Prepare,
  type PrepareAnswer,
} from "../messages.ts";
import type { Placement } from "../placement.ts";
import type { Answer, Clock } from "../ports.ts";

/** Always answers, in bounded time. */
export type SendExchange = (message: Exchange) => Promise<Answer<ExchangeAnswer>>;

interface Queued<Item, T> {
  item: Item;
  resolve: (answer: Answer<T>) => void;
  /** Set when the sender has given up: what has not left by then never will. */
  signal: { isOver: boolean };
}

/** Lets the work through when there is room for one more message. */
export type Pass = (work: () => Promise<void>) => Promise<void>;

/** Ends the link for good, when its ledger's instance ends (rule B5). */
export type IsHalted = () => boolean;

/**
 * The way to one shard. One message is under way at a time, and everything that waits meanwhile leaves together with the next (rule N1): a busy
 * shard gets few large messages, an idle one gets each op at once. A slow shard delays only what is for it.
 */
export class ShardLink {
  readonly #clock: Clock;
  readonly #limits: Limits;
  readonly #pass: Pass;
  readonly #send: SendExchange;
  readonly #isHalted: IsHalted;
  #decisions: Queued<Decision, null>[] = [];
  #prepares: Queued<Prepare, PrepareAnswer>[] = [];
  #busy = false;
  /** The last message had no room for a prepare that waited. */
  #preparesFirst = false;

  constructor(clock: Clock, limits: Limits, pass: Pass, send: SendExchange, isHalted: IsHalted) {
    this.#clock = clock;
    this.#limits = limits;
    this.#pass = pass;
    this.#send = send;
    this.#isHalted = isHalted;
  }

  /** At most once per attempt and shard (rule B3). `unknown` at once when `signal` is over before the message leaves. */
  prepare(
    placement: Placement,
    prepare: Prepare,
    signal: { isOver: boolean },
  ): Promise<Answer<PrepareAnswer>> {
    return new Promise((resolve) => {
      this.#prepares.push({ item: prepare, resolve, signal });
      this.#go(placement);
    });
  }

  /** `ok`: the shard has applied it durably. */
  decide(placement: Placement, decision: Decision): Promise<Answer<null>> {
    return new Promise((resolve) => {
      this.#decisions.push({ item: decision, resolve, signal: { isOver: false } });
      this.#go(placement);
    });
  }

  #go(placement: Placement): void {
    if (!this.#busy) void this.#run(placement);
  }

  async #run(placement: Placement): Promise<void> {
    this.#busy = true;
    try {
      while (this.#decisions.length + this.#prepares.length > 0) {
        await this.#clock.turn();
        await this.#pass(() => this.#next(placement));
        if (this.#isHalted()) break;
      }
    } finally {
      this.#busy = false;
    }
  }

  /** Taken only when there is room for the message: what was given up while it waited for that does not leave. */
  async #next(placement: Placement): Promise<void> {
    if (this.#isHalted()) return;
    const [decisions, prepares] = this.#take();
    if (decisions.length + prepares.length > 0) await this.#exchange(placement, decisions, prepares);
  }

  async #exchange(
    placement: Placement,
    decisions: Queued<Decision, null>[],
    prepares: Queued<Prepare, PrepareAnswer>[],
  ): Promise<void> {
    const message: Exchange = {
      version: MESSAGE_VERSION,
      placement,
      decisions: decisions.map(({ item }) => item),
      prepares: prepares.map(({ item }) => item),
    };
    let answer: Answer<ExchangeAnswer>;
    try {
      answer = await this.#send(message);
    } catch (error) {
      answer = { kind: "unknown", cause: String(error) };
    }
    answerWaiting(answer, decisions, prepares);
  }

  /** What fits into one message. Decisions first, because they free what prepares may be waiting for; but nobody is passed over twice. */
  #take(): [Queued<Decision, null>[], Queued<Prepare, PrepareAnswer>[]] {
    for (const waiting of this.#prepares)
      if (waiting.signal.isOver) waiting.resolve({ kind: "unknown", cause: "given up before it was sent" });
    this.#prepares = this.#prepares.filter(({ signal }) => !signal.isOver);
    const room = new MessageRoom(this.#limits.messageOps);
    const takeDecisions = (): Queued<Decision, null>[] =>
      takeWhile(this.#decisions, ({ item }) => room.fits(item.keys.length));
    const takePrepares = (): Queued<Prepare, PrepareAnswer>[] =>
      takeWhile(this.#prepares, ({ item }) => room.fits(item.ops.length));
    const prepares = this.#preparesFirst ? takePrepares() : [];
    const decisions = takeDecisions();
    prepares.push(...takePrepares());
    this.#preparesFirst = prepares.length === 0 && this.#prepares.length > 0;
    return [decisions, prepares];
  }
}

/** Ops that one message still has room for; the first item fits whatever its size. */
class MessageRoom {
  #left: number;
  #isEmpty = true;

  constructor(ops: number) {
    this.#left = ops;
  }

  fits(ops: number): boolean {
    if (!this.#isEmpty && ops > this.#left) return false;
    this.#isEmpty = false;
    this.#left -= ops;
    return true;
  }
}

function answerWaiting(
  answer: Answer<ExchangeAnswer>,
  decisions: Queued<Decision, null>[],
  prepares: Queued<Prepare, PrepareAnswer>[],
): void {
  for (const { resolve } of decisions) resolve(answer.kind === "ok" ? { kind: "ok", value: null } : answer);
  for (const [index, { resolve }] of prepares.entries()) {
    const value = answer.kind === "ok" ? answer.value.prepares[index] : undefined;
    if (answer.kind !== "ok") resolve(answer);
    else
      resolve(
        value === undefined
          ? { kind: "unknown", cause: "the answer does not fit the message" }
          : { kind: "ok", value },
      );
  }
}

/** Removes and returns the leading items that fit. */
function takeWhile<T>(items: T[], fits: (item: T) => boolean): T[] {
  let count = 0;
  for (const item of items) {
    if (!fits(item)) break;
    count += 1;
  }
  return items.splice(0, count);
}
