import type { Result } from "../../../src/coordinator/kernel/refusal.ts";
import { copied } from "../../support/copied.ts";
import type { Faults } from "./faults.ts";
import type { Instance, Part } from "./part.ts";
import type { Owner, Scheduler } from "./scheduler.ts";

/** One message, as the judge sees it. */
export interface Sent {
  from: Owner;
  to: string;
  method: string;
  message: unknown;
}

export interface Witness {
  /** A message was sent. */
  sent(call: Sent): void;
  /** The network delivers a message a second time. */
  repeated(call: Sent): void;
  /** A message has arrived. Each time it does, `call` is another object, which its answer names. */
  delivered(call: Sent): void;
  /** An answer was sent. `isHeard`: to a sender that waits for it, and not to a late copy. */
  answered(call: Sent, reply: Result<unknown>, isHeard: boolean, by: Instance<object>): void;
  /** A message was carried out without an answer. */
  failed(call: Sent): void;
}

/** The number of recent messages that an echo may deliver again. */
const REMEMBERED = 12;

type Methods = Record<string, (message: unknown) => Promise<Result<unknown>>>;

/**
 * Mean delays of a message whose sender gets no answer: among the next attempts, after them, or after
 * everything else.
 */
const LATE_MS = [100, 1_000, 10_000, 60_000] as const;
/**
 * The longest delay, also of copies. It is shorter than the retention of outcomes: a begin that arrives after
 * its lease was forgotten would be a new begin.
 */
const MOST_LATE_MS = 240_000;

/** Delivers messages between parts, and loses, duplicates, delays and reorders them. */
export class Network {
  readonly #scheduler: Scheduler;
  readonly #faults: Faults;
  readonly #witness: Witness;
  /** The last messages that each part was sent. */
  readonly #recent = new Map<string, { call: Sent; atMs: number }[]>();

  constructor(scheduler: Scheduler, faults: Faults, witness: Witness) {
    this.#scheduler = scheduler;
    this.#faults = faults;
    this.#witness = witness;
  }

  /**
   * Rejects if the platform reports an error. Never settles if no answer arrives: the sender has its own
   * timeout.
   */
  send<T>(from: Owner, to: Part<object>, method: string, message: unknown): Promise<Result<T>> {
    const call: Sent = { from, to: to.name, method, message: copied(message) };
    this.#witness.sent(call);
    this.#remember(call);
    if (from.isReplaced === true) this.#faults.count("sent_by_replaced");
    return new Promise((resolve, reject) => {
      const respond = (finish: () => void): void => {
        const isCut = this.#faults.isCut(from.name, to.name, this.#scheduler.nowMs);
        if (!isCut)
          this.#scheduler.after(this.#faults.latencyMs(from.name, this.#scheduler.nowMs), from, finish);
      };
      const answer = (reply: Result<unknown>): void => respond(() => resolve(copied(reply) as Result<T>));
      const fail = (reason: string): void => respond(() => reject(new Error(reason)));
      const arrive = (delayMs: number, then: (call: Sent) => void): void => {
        const isCut = this.#faults.isCut(from.name, to.name, this.#scheduler.nowMs);
        if (isCut) return;
        this.#scheduler.after(delayMs, undefined, () => then({ ...call, message: copied(call.message) }));
      };
      const latencyMs = this.#faults.latencyMs(to.name, this.#scheduler.nowMs);
      const late = this.#faults.stream("late");
      const lateMs = Math.min(MOST_LATE_MS, late.exponential(late.pick(LATE_MS)));
      const deliver = (got: Sent): void => this.#carryOut(to, got, answer, fail);
      switch (this.#faults.message(from.name, to.name, method, message)) {
        case "lose":
          return;
        case "lose_answer":
          return arrive(latencyMs, (got) => this.#carryOut(to, got, ignore, ignore));
        case "duplicate":
          this.#witness.repeated(call);
          arrive(latencyMs, deliver);
          return arrive(lateMs, (got) => this.#carryOut(to, got, ignore, ignore));
        case "late":
          return arrive(lateMs, (got) => this.#carryOut(to, got, ignore, ignore));
        case "overloaded":
          return fail("the object is overloaded");
        case "reset_before":
          return fail("the object was reset");
        case "reset_after":
          return arrive(latencyMs, (got) =>
            this.#carryOut(to, got, () => fail("the object was reset"), fail),
          );
        case "unknown_format":
          return arrive(latencyMs, (got) =>
            deliver({ ...got, message: { ...(got.message as object), format: 99 } }),
          );
        case "other_placement":
          return arrive(latencyMs, (got) =>
            deliver({
              ...got,
              message: { ...(got.message as object), placement: "hash1.shards77.canonical1" },
            }),
          );
        case undefined:
          return arrive(latencyMs, deliver);
      }
    });
  }

  /** Delivers the last messages to a part again, in order, as after a repaired link. */
  echo(to: Part<object>, count: number): void {
    let delayMs = 0;
    for (const { call, atMs } of (this.#recent.get(to.name) ?? []).slice(-count)) {
      if (this.#scheduler.nowMs + delayMs - atMs > MOST_LATE_MS) continue;
      this.#witness.repeated(call);
      delayMs += this.#faults.latencyMs(to.name, this.#scheduler.nowMs);
      this.#scheduler.after(delayMs, undefined, () =>
        this.#carryOut(to, { ...call, message: copied(call.message) }, ignore, ignore),
      );
    }
  }

  #remember(call: Sent): void {
    const recent = this.#recent.get(call.to) ?? [];
    recent.push({ call, atMs: this.#scheduler.nowMs });
    if (recent.length > REMEMBERED) recent.shift();
    this.#recent.set(call.to, recent);
  }

  #carryOut(
    to: Part<object>,
    call: Sent,
    answer: (reply: Result<unknown>) => void,
    fail: (reason: string) => void,
  ): void {
    const instance = to.instance();
    const died = (): void => fail("the instance ended");
    instance.onDeath.add(died);
    this.#witness.delivered(call);
    (instance.object as unknown as Methods)[call.method]?.(call.message).then(
      (reply) => {
        // A dead instance sends no answers.
        if (instance.dead) return;
        instance.onDeath.delete(died);
        if (reply.ok) instance.isAdmitted = true;
        this.#witness.answered(call, reply, answer !== ignore, instance);
        answer(reply);
      },
      (error: unknown) => {
        if (!instance.onDeath.delete(died)) return;
        this.#witness.failed(call);
        fail(error instanceof Error ? error.message : String(error));
      },
    );
  }
}

const ignore = (): void => {};
