import { setTimeout } from "node:timers/promises";
import type { Loaded } from "./closed-loop.ts";
import { Latencies } from "./latencies.ts";

export interface Stream {
  perSecond: number;
  /** False: it did not end as it should. */
  turn: () => Promise<boolean>;
}

/**
 * Calls leave at their time, whether the ones before were answered or not, and each is timed from when it
 * should have left: a server that stalls is charged for all that would have come meanwhile.
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
