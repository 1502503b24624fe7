import { ask } from "../../kernel/ask.ts";
import type {
  Awaited,
  Waiter,
  WaitingBegin,
  WaitResult,
  WaitTime as Time,
} from "../../kernel/ledger/waiter.ts";
import type { LedgerPart } from "../../kernel/ledger/part.ts";
import type { BeginRequest } from "../../kernel/messages.ts";
import { Counts } from "../../kernel/metrics/counts.ts";
import { Histogram } from "../../kernel/metrics/histogram.ts";
import type { LedgerMetrics } from "../../kernel/metrics/messages.ts";
import type { Answer, Clock } from "../../kernel/ports.ts";
import { sharedTraces } from "../../kernel/traces.ts";
import type { WaitAnswer } from "./messages.ts";
import { waitTimeoutMs } from "./wait-timeout.ts";

/** The pause before a message that was lost is repeated. It doubles each time. */
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 1_000;

class WaitTime implements Time {
  /** Resolves when the time is over, or when the begin must not wait any more. */
  readonly over: Promise<void>;
  readonly end: () => void;
  #isOver = false;

  constructor(clock: Clock, waitMs: number) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.over = promise;
    const cancel = clock.after(waitMs, () => this.end());
    this.end = () => {
      cancel();
      this.#isOver = true;
      resolve();
    };
  }

  get isOver(): boolean {
    return this.#isOver;
  }
}

type Needs = Pick<LedgerPart, "cell" | "limits" | "links" | "peers" | "placementGuard" | "ports">;

/** The waits of a ledger's begins for leased names (B11). A begin that waits has no attempt and no hold. */
export class Waits implements Waiter {
  readonly #part: Needs;
  readonly #durations: Histogram;
  readonly #results = new Counts(["offered", "ended", "refused"] satisfies WaitResult[]);
  #begins = 0;
  #bytes = 0;

  constructor(part: Needs) {
    this.#part = part;
    this.#durations = new Histogram(part.ports.clock);
  }

  get metrics(): Pick<LedgerMetrics, "waitingBegins" | "waits" | "waitDurations"> {
    return {
      waitingBegins: this.#begins,
      waits: this.#results.entries.map(([result, count]) => ({ result: result as WaitResult, count })),
      waitDurations: this.#durations.durations,
    };
  }

  timeFor({ waitMs = 0 }: BeginRequest): Time | undefined {
    return waitMs > 0 ? new WaitTime(this.#part.ports.clock, waitMs) : undefined;
  }

  async wait({ request, bytes, waitTime }: WaitingBegin, awaited: Awaited): Promise<WaitResult | undefined> {
    if (waitTime === undefined || waitTime.isOver) return undefined;
    const result = await this.#durations.time(() => this.#forName(request, awaited, bytes, waitTime));
    this.#results.add(result);
    return result;
  }

  /** If the message is lost, the shard finds out by itself. */
  leave({ lease, placement }: BeginRequest, { shard, key }: Awaited): void {
    const { cell, links, limits, peers, ports } = this.#part;
    const envelope = links.envelopeTo(shard, placement);
    if (envelope === undefined) return;
    const message = { ...envelope, cell, lease, key };
    void ask(ports.clock, limits.exchangeTimeoutMs, () => peers.shard(shard).leave(message));
  }

  /** Waits in the queue of one name. */
  async #forName(request: BeginRequest, awaited: Awaited, bytes: number, time: Time): Promise<WaitResult> {
    const { waitingBegins, beginBytes } = this.#part.limits;
    // Begins that wait leave room for those that do not.
    if (this.#begins >= waitingBegins || this.#bytes + bytes > beginBytes / 2) return "refused";
    this.#begins += 1;
    this.#bytes += bytes;
    try {
      return await this.#wait(request, awaited, time);
    } finally {
      this.#begins -= 1;
      this.#bytes -= bytes;
    }
  }

  async #wait(request: BeginRequest, awaited: Awaited, time: Time): Promise<WaitResult> {
    for (let pauseMs = FIRST_PAUSE_MS; !time.isOver;) {
      const answer = await Promise.race([this.#send(request, awaited), time.over]);
      if (answer === undefined) break;
      if (answer.kind === "refused") break;
      if (answer.kind === "ok") {
        if (answer.value.state === "full") return "refused";
        if (answer.value.state === "offered" && !time.isOver) return "offered";
        pauseMs = FIRST_PAUSE_MS;
        continue;
      }
      await Promise.race([this.#pause(pauseMs), time.over]);
      pauseMs = Math.min(MAX_PAUSE_MS, 2 * pauseMs);
    }
    this.leave(request, awaited);
    return "ended";
  }

  /**
   * Waits until the name is offered to the begin. It is a message of its own, because a shard answers
   * exchanges without waiting (B4). It takes no permit from other messages: the begins that wait are limited.
   */
  #send({ lease, placement, traces }: BeginRequest, { shard, key }: Awaited): Promise<Answer<WaitAnswer>> {
    const { cell, links, limits, peers, placementGuard, ports } = this.#part;
    return ask(ports.clock, waitTimeoutMs(limits), async () => {
      const envelope = links.envelopeTo(shard, placement);
      if (envelope === undefined) throw new Error("this instance of the ledger sends nothing more");
      const message = { ...envelope, ...sharedTraces([traces]), cell, lease, key };
      const reply = await peers.shard(shard).wait(message);
      if (!reply.ok) await placementGuard.learn(reply.refusal);
      return reply;
    });
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resume) => this.#part.ports.clock.after(ms, resume));
  }
}
