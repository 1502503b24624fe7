import type { Limits } from "../../../common/limits.ts";
import type { BeginRequest, BucketKey } from "../../kernel/messages.ts";
import type { WaitResult } from "../../kernel/metrics/messages.ts";
import type { Clock } from "../../kernel/ports.ts";
import type { ShardLinks } from "../../kernel/ledger/shard-links.ts";

/** The pause before a message that was lost is repeated. It doubles each time. */
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 1_000;

/** A name that is in the way of a begin. */
export interface Awaited {
  shard: number;
  key: BucketKey;
}

/** How long one begin may wait, all its waits together. */
export class WaitTime {
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

/** The waits of a ledger's begins for leased names (B11). A begin that waits has no attempt and no hold. */
export class Waits {
  readonly #clock: Clock;
  readonly #limits: Limits;
  readonly #links: ShardLinks;
  #begins = 0;
  #bytes = 0;

  constructor(clock: Clock, limits: Limits, links: ShardLinks) {
    this.#clock = clock;
    this.#limits = limits;
    this.#links = links;
  }

  /** The begins that wait. */
  get begins(): number {
    return this.#begins;
  }

  /**
   * Waits in the queue of one name.
   *
   * @param bytes the stored size of the payload, which stays in memory meanwhile
   */
  async forName(request: BeginRequest, awaited: Awaited, bytes: number, time: WaitTime): Promise<WaitResult> {
    const { waitingBegins, beginBytes } = this.#limits;
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

  async #wait(
    { lease, placement, traces }: BeginRequest,
    { shard, key }: Awaited,
    time: WaitTime,
  ): Promise<WaitResult> {
    for (let pauseMs = FIRST_PAUSE_MS; !time.isOver;) {
      const answer = await Promise.race([this.#links.wait(shard, placement, lease, key, traces), time.over]);
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
    this.#links.leave(shard, placement, lease, key);
    return "ended";
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resume) => this.#clock.after(ms, resume));
  }
}
