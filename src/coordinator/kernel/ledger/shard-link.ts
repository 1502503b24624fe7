import type { Limits } from "../../../common/limits.ts";
import type { Decision, Exchange, ExchangeAnswer, Prepare, PrepareAnswer } from "../messages.ts";
import type { Placement } from "../placement.ts";
import { placementMismatch } from "../placement-guard.ts";
import type { Answer, Clock } from "../ports.ts";
import type { Traces } from "../traces.ts";

/** Why the outcome of a decision is unknown that a shard has answered without applying it. */
export const NOT_APPLIED = "the shard has not applied it";

/**
 * If the mean gap between messages with prepares is below the first, a decision waits for the next prepare,
 * for up to the second (N1). That is much less than the 5 s after which the alarm repeats decisions.
 */
const RIDE_GAP_MS = 600;
export const RIDE_WAIT_MS = 1_000;
/** The weight of the newest gap in the mean. Longer gaps count as `RIDE_WAIT_MS`. */
const GAP_WEIGHT = 1 / 8;

/** Sends one exchange. It always resolves, in bounded time. */
export type SendExchange = (
  placement: Placement,
  content: Pick<Exchange, "decisions" | "prepares">,
  traces: readonly Traces[],
) => Promise<Answer<ExchangeAnswer>>;

interface Queued<Item, T> {
  item: Item;
  /** How much of a message it takes (M7). */
  ops: number;
  /** The placement with which the item was sent to this shard. */
  placement: Placement;
  resolve: (answer: Answer<T>) => void;
  /**
   * `isOver` becomes true when the sender has given up. From then on, a prepare is not sent any more. Nobody
   * waits for an item without a signal.
   */
  signal: { isOver: boolean } | undefined;
  traces: Traces;
}

/** Runs the work when the ledger may send one more message. */
export type Pass = (work: () => Promise<void>) => Promise<void>;

/** True once the instance of the ledger has ended. Then the link sends nothing more (B5). */
export type IsHalted = () => boolean;

/**
 * The connection to one shard. It sends one message at a time, and everything that waits meanwhile goes into
 * the next message (N1). So a busy shard gets few large messages, and an idle one gets each prepare at once.
 * A slow shard delays only the leases that touch it.
 */
export class ShardLink {
  readonly #clock: Clock;
  readonly #limits: Limits;
  readonly #pass: Pass;
  readonly #send: SendExchange;
  readonly #isHalted: IsHalted;
  readonly #current: () => Placement;
  #decisions: Queued<Decision, null>[] = [];
  #prepares: Queued<Prepare, PrepareAnswer>[] = [];
  #busy = false;
  /** Ends the wait of decisions that nobody waits for. */
  #endWait = (): void => {};
  #lastPrepareMs = -Infinity;
  #meanGapMs = RIDE_WAIT_MS;
  /** True if prepares waited and the last message had no room for any of them. */
  #preparesFirst = false;

  /** @param current returns the placement of the ledger */
  constructor(
    clock: Clock,
    limits: Limits,
    pass: Pass,
    send: SendExchange,
    isHalted: IsHalted,
    current: () => Placement,
  ) {
    this.#clock = clock;
    this.#limits = limits;
    this.#pass = pass;
    this.#send = send;
    this.#isHalted = isHalted;
    this.#current = current;
  }

  /**
   * Queues a prepare. To be called at most once per attempt and shard (B3). If `signal` is over before the
   * message is sent, the answer is `unknown`.
   */
  prepare(
    placement: Placement,
    prepare: Prepare,
    signal: { isOver: boolean },
    traces?: Traces,
  ): Promise<Answer<PrepareAnswer>> {
    return new Promise((resolve) => {
      if (this.#prepares.length >= this.#limits.concurrentBegins)
        this.#prepares = withoutOver(this.#prepares);
      const ops = prepare.ops.length || 1;
      this.#prepares.push({ item: prepare, ops, placement, resolve, signal, traces });
      this.#go();
    });
  }

  /**
   * Queues a decision. `ok` means that the shard has applied it durably. One with a `signal` is sent at once,
   * because somebody waits for it. The caller of an attempt waits for its release (B6): once its signal is
   * over, the release may be dropped from a long queue, and the answer is `unknown`.
   *
   * @param ops the number of ops of the lease: the decision ends at most as many holds
   */
  decide(
    placement: Placement,
    decision: Decision,
    ops: number,
    signal?: { isOver: boolean },
    traces?: Traces,
  ): Promise<Answer<null>> {
    return new Promise((resolve) => {
      if (signal !== undefined && this.#decisions.length >= this.#limits.concurrentBegins)
        this.#decisions = withoutOver(this.#decisions);
      this.#decisions.push({ item: decision, ops, placement, resolve, signal, traces });
      this.#go();
    });
  }

  /**
   * To be called for each message with prepares. If the clock went back, the gap may be wrong, but it never
   * makes a wait longer (M4).
   */
  #noteGap(): void {
    const now = this.#clock.now();
    const gapMs = Math.min(Math.abs(now - this.#lastPrepareMs), RIDE_WAIT_MS);
    this.#meanGapMs += (gapMs - this.#meanGapMs) * GAP_WEIGHT;
    this.#lastPrepareMs = now;
  }

  #go(): void {
    if (!this.#busy) void this.#run();
    else if (this.#isDue()) this.#endWait();
  }

  async #run(): Promise<void> {
    this.#busy = true;
    try {
      while (this.#decisions.length + this.#prepares.length > 0) {
        if (!this.#isDue()) await this.#waitForPrepare();
        await this.#clock.turn();
        await this.#pass(() => this.#next());
        if (this.#isHalted()) break;
      }
    } finally {
      this.#busy = false;
    }
  }

  /** True if a caller waits for an item in the queue, or if its decisions fill a message. */
  #isDue(): boolean {
    let sum = 0;
    const isDue = ({ ops, signal }: Queued<Decision, null>): boolean => {
      sum += ops;
      return signal !== undefined || sum >= this.#limits.messageOps;
    };
    return this.#prepares.length > 0 || this.#decisions.some(isDue);
  }

  /**
   * Waits for a prepare that can share the message of the decisions, or for other work that is due, but no
   * longer than the limit (N1). A caller that begins one lease after the other, without doing much in
   * between, begins the next one within this time. If prepares come often, the wait is long enough for most
   * decisions to meet one.
   */
  #waitForPrepare(): Promise<void> {
    const { decisionWaitMs } = this.#limits;
    if (decisionWaitMs === 0) return Promise.resolve();
    const waitMs = this.#meanGapMs < RIDE_GAP_MS ? RIDE_WAIT_MS : decisionWaitMs;
    return new Promise((resolve) => {
      const cancel = this.#clock.after(waitMs, resolve);
      this.#endWait = () => {
        cancel();
        resolve();
      };
    });
  }

  /**
   * Takes items from the queue only once the message may be sent, so that items whose senders gave up in the
   * meantime are left out.
   */
  async #next(): Promise<void> {
    if (this.#isHalted()) return;
    const placement = this.#current();
    this.#decisions = withoutOutdated(this.#decisions, placement);
    this.#prepares = withoutOutdated(this.#prepares, placement);
    const [decisions, prepares] = this.#take();
    if (prepares.length > 0) this.#noteGap();
    if (decisions.length + prepares.length > 0) await this.#exchange(placement, decisions, prepares);
  }

  async #exchange(
    placement: Placement,
    decisions: Queued<Decision, null>[],
    prepares: Queued<Prepare, PrepareAnswer>[],
  ): Promise<void> {
    let answer: Answer<ExchangeAnswer>;
    try {
      const content = {
        decisions: decisions.map(({ item }) => item),
        prepares: prepares.map(({ item }) => item),
      };
      const traces = [...prepares, ...decisions].map((each) => each.traces);
      answer = await this.#send(placement, content, traces);
    } catch (error) {
      answer = { kind: "unknown", cause: String(error) };
    }
    answerWaiting(answer, decisions, prepares);
  }

  /**
   * Takes the items that fit into one message. Decisions come first, because they free names that prepares
   * may wait for. But if a message had no room for any prepare, prepares come first in the next one.
   */
  #take(): [Queued<Decision, null>[], Queued<Prepare, PrepareAnswer>[]] {
    this.#prepares = withoutOver(this.#prepares);
    const room = new MessageRoom(this.#limits.messageOps);
    const takeDecisions = (): Queued<Decision, null>[] =>
      takeWhile(this.#decisions, ({ ops }) => room.fits(ops));
    const takePrepares = (): Queued<Prepare, PrepareAnswer>[] =>
      takeWhile(this.#prepares, ({ ops }) => room.fits(ops));
    const prepares = this.#preparesFirst ? takePrepares() : [];
    const decisions = takeDecisions();
    prepares.push(...takePrepares());
    this.#preparesFirst = prepares.length === 0 && this.#prepares.length > 0;
    return [decisions, prepares];
  }
}

/** The number of ops that one message still has room for. The first item always fits. */
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
  const unapplied = new Set(answer.kind === "ok" ? answer.value.unapplied : []);
  for (const { resolve, item } of decisions) {
    if (answer.kind !== "ok") resolve(answer);
    else if (unapplied.has(item.lease)) resolve({ kind: "unknown", cause: NOT_APPLIED });
    else resolve({ kind: "ok", value: null });
  }
  for (const [index, { resolve }] of prepares.entries()) {
    const value = answer.kind === "ok" ? answer.value.prepares[index] : undefined;
    if (answer.kind !== "ok") resolve(answer);
    else if (value !== undefined && "refusal" in value) resolve({ kind: "refused", refusal: value.refusal });
    else
      resolve(
        value === undefined
          ? { kind: "unknown", cause: "the shard's answer has too few prepares" }
          : { kind: "ok", value },
      );
  }
}

/** Drops the items whose senders have given up, so that no queue grows without end while a shard hangs. */
function withoutOver<Item, T>(waiting: readonly Queued<Item, T>[]): Queued<Item, T>[] {
  for (const { signal, resolve } of waiting)
    if (signal?.isOver === true)
      resolve({ kind: "unknown", cause: "the caller gave up before the message was sent" });
  return waiting.filter(({ signal }) => signal?.isOver !== true);
}

/** Drops the items for this shard whose names may have another shard by now (G3). */
function withoutOutdated<Item, T>(
  waiting: readonly Queued<Item, T>[],
  current: Placement,
): Queued<Item, T>[] {
  for (const { placement, resolve } of waiting)
    if (placement !== current) resolve({ kind: "refused", refusal: placementMismatch(current, placement) });
  return waiting.filter(({ placement }) => placement === current);
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
