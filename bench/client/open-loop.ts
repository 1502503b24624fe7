import { setTimeout } from "node:timers/promises";
import { Latencies } from "./latencies.ts";

export interface Stream {
  perSecond: number;
  /** False: it did not end as it should. */
  turn: () => Promise<boolean>;
}

export interface Streamed {
  sent: number;
  errors: number;
  latencies: Latencies;
}

/**
 * Calls leave at their time, whether the ones before were answered or not, and each is timed from when it should have left: a server that
 * stalls is charged for all that would have come meanwhile.
 */
export async function openLoop({ perSecond, turn }: Stream, seconds: number): Promise<Streamed> {
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
          latencies.add(performance.now() - dueMs);
          if (!isGood) errors += 1;
        }),
      );
    }
    await setTimeout(1);
  }
  await Promise.all(running);
  return { sent: total, errors, latencies };
}
