import { setTimeout } from "node:timers/promises";
import type { Loaded } from "./closed-loop.ts";
import { Latencies } from "./latencies.ts";

export interface Stream {
  perSecond: number;
  /** Resolves to false when the answer was not the expected one. */
  turn: () => Promise<boolean>;
}

/**
 * Sends each call when it is due, even if earlier calls have no answer yet, and times it from the moment when
 * it was due. Therefore a server that stalls is charged for every call that was due during the stall.
 */
export async function openLoop({ perSecond, turn }: Stream, seconds: number): Promise<Loaded> {
  const latencies = new Latencies();
  let errors = 0;
  const started = performance.now();
  const running: Promise<void>[] = [];
  const total = Math.round(perSecond * seconds);
  for (let sent = 0; sent < total;) {
    const now = performance.now();
    for (; sent < total; sent += 1) {
      const dueMs = started + (sent * 1_000) / perSecond;
      if (dueMs > now) break;
      running.push(
        turn().then((isGood) => {
          if (isGood) latencies.add(performance.now() - dueMs);
          else errors += 1;
        }),
      );
    }
    await setTimeout(1);
  }
  await Promise.all(running);
  return { turns: latencies.count, errors, seconds: (performance.now() - started) / 1_000, latencies };
}
