/** Aborts an attempt early: when its time is up, or when one of its owners aborts. */
export interface AttemptAbort {
  signal: AbortSignal;
  /** Undefined while the attempt goes on. */
  why(): "timeout" | "cancelled" | undefined;
  /**
   * Resolves as `work` does, or rejects on abort. For work that takes no signal. Leaves no listener behind.
   */
  race<T>(work: Promise<T>): Promise<T>;
  /** Starts the timer again with the full time. */
  restartTimer(): void;
  /** Stops the timer while the attempt waits for its caller. */
  stopTimer(): void;
  /** Call it when the attempt has ended. Otherwise the signals of long-lived owners collect listeners. */
  release(): void;
}

export function abortAfter(timeoutMs: number, owners: readonly (AbortSignal | undefined)[]): AttemptAbort {
  const controller = new AbortController();
  let why: "timeout" | "cancelled" | undefined;
  const end = (reason: "timeout" | "cancelled", cause: unknown): void => {
    why ??= reason;
    controller.abort(cause);
  };
  const { signal } = controller;
  const race = <T>(work: Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      const abort = (): void => reject(signal.reason as Error);
      if (signal.aborted) abort();
      signal.addEventListener("abort", abort);
      work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
    });
  const releases = owners.flatMap((owner) => {
    if (owner === undefined) return [];
    const listen = (): void => end("cancelled", owner.reason);
    if (owner.aborted) listen();
    owner.addEventListener("abort", listen);
    return [() => owner.removeEventListener("abort", listen)];
  });
  const late = (): void => end("timeout", new Error(`no answer within ${Math.ceil(timeoutMs)} ms`));
  const start = (): ReturnType<typeof setTimeout> =>
    setTimeout(late, Math.min(MAX_TIMER_MS, Math.max(1, timeoutMs)));
  let timer = start();
  const stopTimer = (): void => clearTimeout(timer);
  const restartTimer = (): void => {
    stopTimer();
    timer = start();
  };
  return {
    signal,
    why: () => why,
    race,
    restartTimer,
    stopTimer,
    release: () => {
      stopTimer();
      for (const release of releases) release();
    },
  };
}

/** The longest delay of a timer. With a longer one, it would fire at once. */
export const MAX_TIMER_MS = 2_147_483_647;

/** Resolves after `ms`, or as soon as one of `owners` aborts. */
export function pause(ms: number, owners: readonly (AbortSignal | undefined)[]): Promise<void> {
  return new Promise((resume) => {
    const listening = owners.filter((owner) => owner !== undefined);
    const done = (): void => {
      clearTimeout(timer);
      for (const owner of listening) owner.removeEventListener("abort", done);
      resume();
    };
    const timer = setTimeout(done, Math.min(MAX_TIMER_MS, ms));
    for (const owner of listening) owner.addEventListener("abort", done);
    if (listening.some(({ aborted }) => aborted)) done();
  });
}
