import { closedLoop, type Loaded } from "../client/closed-loop.ts";
import { CONTESTED, HELD } from "../client/cycles.ts";
import { Latencies } from "../client/latencies.ts";
import { countFsyncs } from "./fsyncs.ts";
import type { Part } from "../options.ts";
import type { PeerName } from "../peers.ts";
import type { Bench } from "./bench.ts";
import { knee, load } from "./load.ts";

const CLAIMS = [1, 4, 16];
const CLIENTS = [1, 8, 32, 128];
/** The concurrency of every comparison that is made at only one. */
const USUAL_CLIENTS = 32;

async function cycles(bench: Bench): Promise<void> {
  for (const claims of CLAIMS) {
    for (const clients of CLIENTS) {
      const isForTarget = clients === USUAL_CLIENTS || (claims === 1 && clients === 1);
      const seconds = isForTarget ? bench.scale.targetSeconds : bench.scale.seconds;
      await bench.rounds("cycles", claimsText(claims), clients, (peer) =>
        cyclesOf(bench, peer, claims, clients, seconds),
      );
    }
  }
}

export const claimsText = (claims: number): string => (claims === 1 ? "1 claim" : `${claims} claims`);

async function cyclesOf(
  bench: Bench,
  peer: PeerName,
  claims: number,
  clients: number,
  seconds: number,
): Promise<Loaded> {
  const client = bench.cycles(peer, clients, claims);
  const loaded = await closedLoop({ clients, seconds, turn: (index) => client.turn(index) });
  client.close();
  return loaded;
}

/** Looks up names that exist, names that do not, and names that are only held. */
async function lookups(bench: Bench): Promise<void> {
  const misses = Array.from({ length: 100 }, (_, index) => `nobody-has-${index}`);
  for (const [what, names, status] of [
    ["hits", CONTESTED, 200],
    ["misses", misses, 404],
    ["held", HELD, 200],
  ] as const) {
    await bench.rounds("lookups", what, USUAL_CLIENTS, async (peer) => {
      const client = bench.lookups(peer, USUAL_CLIENTS);
      let turns = 0;
      const expected = client.isCeiling ? 200 : status;
      const turn = async (): Promise<boolean> =>
        (await client.lookup(names[turns++ % names.length] ?? "")) === expected;
      const seconds = what === "hits" ? bench.scale.targetSeconds : bench.scale.seconds;
      const loaded = await closedLoop({ clients: USUAL_CLIENTS, seconds, turn });
      client.close();
      return loaded;
    });
  }
}

/** Sends only begins, either for taken names or for new ones, which are granted. */
async function refusals(bench: Bench): Promise<void> {
  for (const [what, status] of [
    ["begins refused", 409],
    ["begins granted", 201],
  ] as const) {
    await bench.rounds("refusals", what, USUAL_CLIENTS, async (peer) => {
      const client = bench.cycles(peer, USUAL_CLIENTS, 1);
      const expected = client.isCeiling ? 201 : status;
      const turn = async (index: number): Promise<boolean> => {
        const names = status === 409 ? [CONTESTED[index % CONTESTED.length] ?? ""] : client.freshNames();
        return (await client.begin("2", names)) === expected;
      };
      const loaded = await closedLoop({ clients: USUAL_CLIENTS, seconds: bench.scale.seconds / 2, turn });
      client.close();
      return loaded;
    });
  }
}

async function fsyncs(bench: Bench): Promise<void> {
  for (const claims of [1, 4]) {
    const what = claimsText(claims);
    for (const peer of bench.names) {
      const key = { part: "fsyncs" as const, peer, what, clients: USUAL_CLIENTS, round: 0 };
      if (bench.results.has(key)) continue;
      const counted = await countFsyncs(bench.peer(peer).pid, () =>
        cyclesOf(bench, peer, claims, USUAL_CLIENTS, bench.scale.seconds),
      );
      // The report leaves out this part if `perf` could not count.
      if (counted === undefined) continue;
      const { turns, errors, seconds } = counted.value;
      const none = new Latencies();
      const figures = {
        turns,
        errors,
        seconds,
        p50Ms: none.percentile(0.5),
        p99Ms: none.percentile(0.99),
        cpuMs: Number.NaN,
      };
      bench.add({ ...key, ...figures, fsyncs: counted.fsyncs });
    }
  }
}

export const measures: Record<Part, (bench: Bench) => Promise<void>> = {
  cycles,
  lookups,
  refusals,
  load,
  knee,
  fsyncs,
};
