import { clearTimeout, setImmediate, setTimeout } from "node:timers";
import type { HostClock } from "../node/hosted-object.ts";

/** Node's longest delay. It fires longer timers at once. */
const MAX_DELAY_MS = 2 ** 31 - 1;

function start(delayMs: number, fire: () => void, keepsProcessAlive: boolean): () => void {
  let timer: NodeJS.Timeout;
  const wait = (leftMs: number): void => {
    const partMs = Math.min(Math.max(0, leftMs), MAX_DELAY_MS);
    timer = setTimeout(() => (leftMs > partMs ? wait(leftMs - partMs) : fire()), partMs);
    if (!keepsProcessAlive) timer.unref();
  };
  wait(delayMs);
  return () => clearTimeout(timer);
}

/** The machine's clock. Node's timers follow a monotonic one, so a clock that is set back holds up none. */
export const systemClock: HostClock = {
  now: () => Date.now(),
  after: (delayMs, then) => start(delayMs, then, true),
  inBackground: (delayMs, then) => start(delayMs, then, false),
  turn: () => new Promise((resume) => void setImmediate(resume)),
};
