/** What ends a try early: its time, or one of its owners. */
export interface AttemptAbort {
  signal: AbortSignal;
  /** Undefined while it goes on. */
  why(): "timeout" | "cancelled" | undefined;
  /** As `work`, or rejects when it is cut off: for what does not heed a signal. Keeps nothing of what came in time. */
  race<T>(work: Promise<T>): Promise<T>;
  /** Lets the time run again from its beginning. */
  restartTimer(): void;
  /** Stops the time: the try waits for its caller. */
  stopTimer(): void;
  /** To be called when the try has ended: signals of long-lived owners would otherwise collect listeners. */
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

/** A timer cannot run longer, and one that is told to runs out at once. */
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
