import { Latencies } from "./latencies.ts";

export interface Load {
  clients: number;
  seconds: number;
  /** One turn of one client. Resolves to false when the answer was not the expected one. */
  turn: (client: number) => Promise<boolean>;
}

export interface Loaded {
  /** The number of turns with the expected answer. Only these are timed. */
  turns: number;
  errors: number;
  seconds: number;
  latencies: Latencies;
}

/**
 * Each client sends its next call when the last one is answered. Calls in flight at the end are awaited and
 * counted.
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
