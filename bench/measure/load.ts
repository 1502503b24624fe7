import type { Loaded } from "../client/closed-loop.ts";
import { CONTESTED } from "../client/cycles.ts";
import { openLoop } from "../client/open-loop.ts";
import type { PeerName } from "../peers.ts";
import type { Result } from "../results.ts";
import type { Bench } from "./bench.ts";

/** The claims of GitLab.com at its peak, and a number of lookups beside them. */
const CLAIMS_PER_SECOND = 300;
const LOOKUPS_PER_SECOND = 500;
const CLAIMS_OF_ONE = 3;
const CONNECTIONS = 256;

/** Multiples of that load, each 1.3 to 1.5 times the one before. */
const KNEE_STEPS = [1, 1.5, 2, 3, 4, 6, 8, 12, 16];
/** A load is not sustained when 1 call in 100 takes longer than this. */
const KNEE_P99_MS = 1_000;
/** A load is not sustained when a smaller share than this of the calls that are due completes in time. */
const KNEE_DONE_SHARE = 0.95;

const SHARES = [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 1];
const streams = ["cycles", "lookups"] as const;

/**
 * Measures every peer in an open loop, with batches of three claims at the peak rate and lookups beside them.
 */
export async function load(bench: Bench): Promise<void> {
  for (const peer of bench.names) {
    const keys = streams.map((stream) => ({
      part: "load" as const,
      peer,
      what: `${stream} under load`,
      clients: 0,
      round: 0,
    }));
    if (!keys.every((key) => bench.results.has(key)))
      await measure(bench, peer, 1, bench.scale.loadSeconds, keys);
  }
}

/**
 * Multiplies the load step by step until a peer does not sustain a step. The results of that step are stored
 * too.
 */
export async function knee(bench: Bench): Promise<void> {
  for (const peer of bench.names) {
    for (const step of KNEE_STEPS) {
      const keys = streams.map((stream) => ({
        part: "knee" as const,
        peer,
        what: `${stream} at ${step} x`,
        clients: 0,
        round: 0,
      }));
      const known = keys.map((key) => bench.results.get(key));
      const results = known.every((result) => result !== undefined)
        ? known
        : await measure(bench, peer, step, bench.scale.kneeSeconds, keys);
      const p99s = results.map(({ p99Ms }) => p99Ms.toFixed(0)).join(" and ");
      bench.print(`${step} times the load: ${peer} p99 ${p99s} ms`);
      if (!results.every((result) => isHeld(result, step))) break;
    }
  }
}

/** The largest multiple that a peer sustained (0 for none), and whether it is the largest that is tried. */
export function heldLoad(results: readonly Result[], peer: PeerName): { times: number; isLast: boolean } {
  const held = KNEE_STEPS.filter((step) => {
    const both = streams.map((stream) =>
      results.find(
        (result) =>
          result.part === "knee" && result.peer === peer && result.what === `${stream} at ${step} x`,
      ),
    );
    return both.every((result) => result !== undefined && isHeld(result, step));
  });
  const times = Math.max(0, ...held);
  return { times, isLast: times === KNEE_STEPS.at(-1) };
}

function isHeld({ what, turns, errors, seconds, p99Ms }: Figures, step: number): boolean {
  const perSecond =
    step * (what.startsWith("cycles") ? CLAIMS_PER_SECOND / CLAIMS_OF_ONE : LOOKUPS_PER_SECOND);
  // The last calls are allowed the p99 limit, so that time does not count against the rate.
  return (
    errors === 0 &&
    p99Ms <= KNEE_P99_MS &&
    turns / (seconds - KNEE_P99_MS / 1_000) >= KNEE_DONE_SHARE * perSecond
  );
}

type Key = Pick<Result, "part" | "peer" | "what" | "clients" | "round">;
type Figures = Omit<Result, "commit">;

async function measure(
  bench: Bench,
  peer: PeerName,
  factor: number,
  seconds: number,
  keys: readonly Key[],
): Promise<Figures[]> {
  const writer = bench.cycles(peer, CONNECTIONS, CLAIMS_OF_ONE);
  const reader = bench.lookups(peer, CONNECTIONS);
  const before = bench.peer(peer).cpuSeconds();
  let [begun, looked] = [0, 0];
  const lookUp = async (): Promise<boolean> =>
    (await reader.lookup(CONTESTED[looked++ % CONTESTED.length] ?? "")) === 200;
  const loaded = await Promise.all([
    openLoop(
      { perSecond: (factor * CLAIMS_PER_SECOND) / CLAIMS_OF_ONE, turn: () => writer.turn(begun++) },
      seconds,
    ),
    openLoop({ perSecond: factor * LOOKUPS_PER_SECOND, turn: lookUp }, seconds),
  ]);
  const cpuMs = (bench.peer(peer).cpuSeconds() - before) * 1_000;
  writer.close();
  reader.close();
  // The processor time of a peer cannot be divided between the two streams, so the first one gets all of it.
  return loaded.flatMap((each, index) => {
    const key = keys[index];
    if (key === undefined) return [];
    const result = { ...key, ...figuresOf(each), cpuMs: index === 0 ? cpuMs : 0 };
    bench.add(result);
    return [result];
  });
}

function figuresOf({ turns, errors, seconds, latencies }: Loaded): Omit<Figures, keyof Key | "cpuMs"> {
  const quantiles = SHARES.map((share): [number, number] => [share, latencies.percentile(share)]);
  return {
    turns,
    errors,
    seconds,
    p50Ms: latencies.percentile(0.5),
    p99Ms: latencies.percentile(0.99),
    quantiles,
  };
}
