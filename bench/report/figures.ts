import type { Part } from "../options.ts";
import type { PeerName } from "../peers.ts";
import type { Result } from "../results.ts";

export interface Figures {
  perSecond: number;
  p50Ms: number;
  p99Ms: number;
  cpuMs: number;
  errors: number;
  rounds: number;
}

/** NaN for an empty list. */
export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)] ?? Number.NaN;

/** What was measured of each peer, in the same rounds. */
export interface Measurement {
  part: Part;
  what: string;
  clients: number;
}

const resultsOf = (results: readonly Result[], { part, what, clients }: Measurement, peer: PeerName) =>
  results.filter(
    (result) =>
      result.part === part && result.what === what && result.clients === clients && result.peer === peer,
  );

const rateOf = ({ turns, seconds }: Result): number => turns / seconds;

/** Medians over the rounds; undefined when nothing was measured. */
export function figuresOf(
  results: readonly Result[],
  measurement: Measurement,
  peer: PeerName,
): Figures | undefined {
  const found = resultsOf(results, measurement, peer);
  if (found.length === 0) return undefined;
  return {
    perSecond: median(found.map(rateOf)),
    p50Ms: median(found.map(({ p50Ms }) => p50Ms)),
    p99Ms: median(found.map(({ p99Ms }) => p99Ms)),
    cpuMs: median(found.map(({ cpuMs, turns }) => cpuMs / turns)),
    errors: found.reduce((sum, { errors }) => sum + errors, 0),
    rounds: found.length,
  };
}

/**
 * The ratio of two peers in each round. Other load on the machine affects both peers of a round, so the
 * median of these is more reliable than a ratio of medians. Empty when one of them was not measured.
 */
export function ratiosOf(
  results: readonly Result[],
  measurement: Measurement,
  peer: PeerName,
  other: PeerName,
  figure: (result: Result) => number = rateOf,
): number[] {
  const theirs = resultsOf(results, measurement, other);
  return resultsOf(results, measurement, peer).flatMap((ours) => {
    const their = theirs.find(({ round }) => round === ours.round);
    return their === undefined ? [] : [figure(ours) / figure(their)];
  });
}
