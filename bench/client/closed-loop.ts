import { Latencies } from "./latencies.ts";

export interface Load {
  clients: number;
  seconds: number;
  /** One turn of one client; false: it did not end as it should. */
  turn: (client: number) => Promise<boolean>;
}

export interface Loaded {
  /** Those that ended as they should; only they are timed. */
  turns: number;
  errors: number;
  seconds: number;
  latencies: Latencies;
}

/**
 * Each client sends its next call when the last one is answered. What is under way at the end is waited for,
 * and counted.
 */
export async function closedLoop({ clients, seconds, turn }: Load): Promise<Loaded> {
  const latencies = new Latencies();
  let errors = 0;
  const started = performance.now();
  const until = started + seconds * 1_000;
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      while (performance.now() < until) {
        const before = performance.now();
        const isGood = await turn(client);
        if (isGood) latencies.add(performance.now() - before);
        else errors += 1;
      }
    }),
  );
  return { turns: latencies.count, errors, seconds: (performance.now() - started) / 1_000, latencies };
}
