import type { Principal } from "../auth/principal.ts";
import { ok, refused, type Result } from "../kernel/refusal.ts";
import type { WaitUntil, WallClock } from "../runtime.ts";
import { AgeClock, type Moment } from "../isolate/recent-answer.ts";

/**
 * What a request without a body counts, in bytes. It takes half a millisecond, in a dozen steps, and each
 * step of another caller's request waits for a step of every request that runs. One with a body counts its
 * size in addition, because the time that it takes grows with it: by some 0.15 ms per 1,024 bytes, for
 * lookups as for begins.
 */
const REQUEST_BYTES = 3_072;

/**
 * The requests of one caller that run at a time have this size together, unless one alone is larger: two
 * small ones. A body of unknown size counts as this.
 */
const SHARE_BYTES = 8_192;

/**
 * The same for a caller while no other one calls: requests that run together share messages and transactions,
 * so a small share would halve what one caller alone can do. What has started when another one calls takes
 * some 40 ms.
 */
const SHARE_ALONE_BYTES = 262_144;

/** A caller is alone if no other one has begun a request for so long. */
const ALONE_AFTER_MS = 1_000;

/**
 * A request that takes longer than this per 1,024 bytes waits for something and computes little. It goes on,
 * but no longer counts: a begin that waits for a name, or a shard that hangs, must not keep the caller's
 * other requests from running. Some 250 small requests per second start, even if none of them ends.
 */
const COUNTED_MS_PER_KIB = 2;
const MAX_COUNTED_MS = 500;

/**
 * A request counts this much longer than it runs if others of its caller wait. Otherwise, the next one would
 * start in the same turn of the event loop. Neither workerd nor Node reads what another caller has sent until
 * nothing is left to run, so that caller would wait for all requests of this one, whatever the share.
 */
const PAUSE_MS = 1;

/** The most requests of one caller that wait. */
const MAX_WAITING = 1_000;

/**
 * The same for callers without a key. The last of them starts after about half a second. By then, workerd has
 * not dropped its request, even if the caller has left.
 */
const MAX_WAITING_WITHOUT_KEY = 100;

/**
 * A request that has waited so long is refused, because its caller has given up or will soon. Cloudflare
 * drops work some 30 s after its caller has left. A request that is dropped while it waits would keep those
 * behind it waiting, so none waits that long.
 */
const MAX_WAIT_MS = 10_000;

const RETRY_AFTER_MS = 1_000;

interface Running {
  sizeBytes: number;
  startedAt: Moment;
}

/** A request that waits. */
interface Waiting {
  /** Lets it look again whether there is room. */
  wake: () => void;
  /** Whether it has waited too long. */
  isLate: boolean;
}

/** What one caller has running and waiting in this isolate. */
class Share {
  readonly #ages: AgeClock;
  readonly #limitBytes: () => number;
  readonly #running = new Set<Running>();
  /** In the order in which they start. */
  readonly #waiting: Waiting[] = [];

  constructor(ages: AgeClock, limitBytes: () => number) {
    this.#ages = ages;
    this.#limitBytes = limitBytes;
  }

  get isUnused(): boolean {
    return this.#running.size === 0 && this.#waiting.length === 0;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /**
   * Starts a request, now or when there is room for it and none that came before it waits. Undefined: it has
   * waited too long.
   */
  start(sizeBytes: number, clock: Pick<WallClock, "after">): Running | Promise<Running | undefined> {
    return this.#waiting.length === 0 && this.#hasRoom(sizeBytes)
      ? this.#add(sizeBytes)
      : this.#startLater(sizeBytes, clock);
  }

  #hasRoom(sizeBytes: number): boolean {
    let total = sizeBytes;
    for (const running of this.#running)
      if (this.#leftMs(running) > 0) total += running.sizeBytes;
      else this.#running.delete(running);
    return this.#running.size === 0 || total <= this.#limitBytes();
  }

  #add(sizeBytes: number): Running {
    const running = { sizeBytes, startedAt: this.#ages.now() };
    this.#running.add(running);
    return running;
  }

  end(running: Running): void {
    this.#running.delete(running);
    this.#waiting[0]?.wake();
  }

  /**
   * Each request that waits has its own promise and its own timer. In workerd, code that awaits a promise of
   * a request that has ended never continues, and a request that awaits nothing of its own counts as hung.
   */
  async #startLater(sizeBytes: number, clock: Pick<WallClock, "after">): Promise<Running | undefined> {
    const waiting: Waiting = { wake: () => {}, isLate: false };
    this.#waiting.push(waiting);
    // The clock may be set, but a timer takes its time.
    const cancel = clock.after(MAX_WAIT_MS, () => {
      waiting.isLate = true;
      waiting.wake();
    });
    let mayStart = this.#mayStart(waiting, sizeBytes);
    while (!mayStart && !waiting.isLate) {
      await this.#woken(waiting, clock);
      mayStart = this.#mayStart(waiting, sizeBytes);
    }
    cancel();
    // Those before it came earlier, so they are late too, or the platform has dropped them.
    this.#waiting.splice(0, this.#waiting.indexOf(waiting) + 1);
    const running = mayStart ? this.#add(sizeBytes) : undefined;
    this.#waiting[0]?.wake();
    return running;
  }

  #mayStart(waiting: Waiting, sizeBytes: number): boolean {
    return this.#waiting[0] === waiting && this.#hasRoom(sizeBytes);
  }

  /** The first also looks when one that runs no longer counts. */
  async #woken(waiting: Waiting, clock: Pick<WallClock, "after">): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.wake = resolve;
    const leftMs = Math.min(...[...this.#running].map((each) => this.#leftMs(each)), MAX_COUNTED_MS);
    const cancel = this.#waiting[0] === waiting ? clock.after(Math.ceil(leftMs), resolve) : undefined;
    await promise;
    cancel?.();
  }

  #leftMs({ sizeBytes, startedAt }: Running): number {
    const countedMs = Math.min((sizeBytes / 1_024) * COUNTED_MS_PER_KIB, MAX_COUNTED_MS);
    return countedMs - this.#ages.ageMs(startedAt);
  }
}

/**
 * Limits how much each caller has running in an isolate at a time (M8). Objects that share its thread, and
 * the checks of requests, do one thing at a time, and a request takes many steps. Each of them waits for what
 * all other requests have ready by then. So it matters how many requests run, and not only who is next.
 */
export class FairShares {
  readonly #clock: WallClock;
  readonly #ages: AgeClock;
  readonly #shares = new Map<string, Share>();
  /** The latest request, and the latest one of another caller. */
  #latest: { owner: string; at: Moment } | undefined;
  #latestOther: { owner: string; at: Moment } | undefined;

  constructor(clock: WallClock) {
    this.#clock = clock;
    this.#ages = new AgeClock(clock);
  }

  /**
   * Carries out work when the caller's share has room for it. Refuses it if too much waits, or if it has
   * waited for 10 s.
   *
   * @param caller null: callers without a key, who have one share together. They don't make the share of a
   *   caller alone smaller
   * @param bodyBytes undefined if the size of the request's body is not known before it is read
   */
  async run<T>(
    caller: Principal | null,
    bodyBytes: number | undefined,
    waitUntil: WaitUntil,
    work: () => Promise<T>,
  ): Promise<Result<T>> {
    const owner = ownerOf(caller);
    if (caller !== null) this.#note(owner);
    const share = this.#shares.get(owner) ?? new Share(this.#ages, () => this.#limitOf(owner));
    const mostWaiting = caller === null ? MAX_WAITING_WITHOUT_KEY : MAX_WAITING;
    if (share.waiting >= mostWaiting) return tooManyWaiting(mostWaiting);
    this.#shares.set(owner, share);
    // Otherwise workerd would drop the work of a caller who has gone, and the share would have less room.
    const ended = Promise.withResolvers<void>();
    waitUntil(ended.promise);
    const sizeBytes = bodyBytes === undefined ? SHARE_BYTES : REQUEST_BYTES + bodyBytes;
    const running = await share.start(sizeBytes, this.#clock);
    const end = (): void => {
      if (running !== undefined) share.end(running);
      if (share.isUnused && this.#shares.get(owner) === share) this.#shares.delete(owner);
      ended.resolve();
    };
    if (running === undefined) {
      end();
      return waitedTooLong;
    }
    try {
      return ok(await work());
    } finally {
      if (share.waiting === 0) end();
      else this.#clock.after(PAUSE_MS, end);
    }
  }

  #note(owner: string): void {
    if (this.#latest?.owner !== owner) this.#latestOther = this.#latest;
    this.#latest = { owner, at: this.#ages.now() };
  }

  #limitOf(owner: string): number {
    const other = this.#latest?.owner === owner ? this.#latestOther : this.#latest;
    const isAlone = other === undefined || this.#ages.ageMs(other.at) > ALONE_AFTER_MS;
    return isAlone ? SHARE_ALONE_BYTES : SHARE_BYTES;
  }
}

function ownerOf(caller: Principal | null): string {
  if (caller === null) return "nobody";
  return caller.cell === null ? `key ${caller.keyId}` : `cell ${caller.cell}`;
}

const waitedTooLong = refused(
  "RESOURCE_EXHAUSTED",
  `this request has waited ${MAX_WAIT_MS / 1_000} s for earlier ones of its caller, and was not begun`,
  { retryAfterMs: RETRY_AFTER_MS },
);

const tooManyWaiting = (mostWaiting: number) =>
  refused(
    "RESOURCE_EXHAUSTED",
    `${mostWaiting} requests of this caller wait already; retry when some have ended`,
    { retryAfterMs: RETRY_AFTER_MS },
  );
