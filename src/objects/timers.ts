/** Deadlines that end within the same window share one timer. */
const SHARE_WINDOW_MS = 100;
/** Shorter delays are pauses, not deadlines, and end exactly on time. */
const SHARED_FROM_MS = 500;

interface SharedTimer {
  waiting: Set<() => void>;
  timer: ReturnType<typeof setTimeout>;
}

/*
 * workerd has no monotonic clock for JavaScript: `performance.now()` returns what `Date.now()` returns
 * (src/workerd/api/performance.c++), and timers are ordered by the wall clock (TimeoutManagerImpl in
 * src/workerd/io/io-context.c++). Measured with workerd 1.20261102.1 and a clock that went back by an hour:
 * both stand still, and of all timers only the one that was armed already ends; new ones wait, too, until
 * the clock has caught up. Only a restart of the process helps; scripts/clock-watch.ts does it.
 */
/**
 * The timers of one object. Each call sets several deadlines, and nearly all of them are cancelled long
 * before they end. Therefore deadlines share the platform's timers, and may end up to `SHARE_WINDOW_MS` late.
 * A shared timer is cleared when nothing waits for it any more, so that it does not keep the object awake.
 */
export class Timers {
  readonly #sharedTimers = new Map<number, SharedTimer>();

  /** Calls `then` after `delayMs`. Returns a function that cancels the call. */
  after(delayMs: number, then: () => void): () => void {
    if (delayMs >= SHARED_FROM_MS)
      return this.#share(Math.ceil((Date.now() + delayMs) / SHARE_WINDOW_MS), then);
    const timer = setTimeout(then, delayMs);
    return () => clearTimeout(timer);
  }

  #share(end: number, then: () => void): () => void {
    const shared = this.#sharedTimers.get(end) ?? this.#openShared(end);
    // Each wait gets a function of its own, because the same `then` may wait twice.
    const wake = (): void => then();
    shared.waiting.add(wake);
    return () => {
      shared.waiting.delete(wake);
      if (shared.waiting.size === 0 && this.#sharedTimers.get(end) === shared) this.#closeShared(end, shared);
    };
  }

  #openShared(end: number): SharedTimer {
    const timer = setTimeout(
      () => {
        this.#sharedTimers.delete(end);
        for (const wake of shared.waiting) wake();
      },
      Math.max(0, end * SHARE_WINDOW_MS - Date.now()),
    );
    const shared: SharedTimer = { waiting: new Set(), timer };
    this.#sharedTimers.set(end, shared);
    return shared;
  }

  #closeShared(end: number, shared: SharedTimer): void {
    clearTimeout(shared.timer);
    this.#sharedTimers.delete(end);
  }
}
