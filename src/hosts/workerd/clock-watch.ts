/**
 * How far the clock may go back without a restart. The runtime's timers wait until its clock has caught up,
 * so a smaller step delays them by no more than a restart would.
 */
const TOLERATED_MS = 1_000;
const INTERVAL_MS = 250;

/**
 * Calls `restart` when the clock was set back, and again only after that call has ended. In workerd, timers
 * follow the wall clock: if it goes back by an hour, the pauses of begins that compete for a name last an
 * hour longer. A new process has no earlier time to catch up with. Returns a function that ends the watch.
 */
export function watchClock(restart: (backMs: number) => Promise<void>, now = Date.now): () => void {
  let latestMs = now();
  let isRestarting = false;
  const check = (): void => {
    const nowMs = now();
    const backMs = latestMs - nowMs;
    if (backMs > TOLERATED_MS && !isRestarting) {
      isRestarting = true;
      latestMs = nowMs;
      void restart(backMs).finally(() => (isRestarting = false));
    }
    latestMs = Math.max(latestMs, nowMs);
  };
  const timer = setInterval(check, INTERVAL_MS);
  return () => clearInterval(timer);
}
