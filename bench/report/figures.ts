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

/** Medians over the rounds; undefined when nothing was measured. */
export function figuresOf(
  results: readonly Result[],
  part: Part,
  what: string,
  clients: number,
  peer: PeerName,
): Figures | undefined {
  const found = results.filter(
    (result) =>
      result.part === part && result.what === what && result.clients === clients && result.peer === peer,
  );
  if (found.length === 0) return undefined;
  return {
    perSecond: median(found.map(({ turns, seconds }) => turns / seconds)),
    p50Ms: median(found.map(({ p50Ms }) => p50Ms)),
    p99Ms: median(found.map(({ p99Ms }) => p99Ms)),
    cpuMs: median(found.map(({ cpuMs, turns }) => cpuMs / turns)),
    errors: found.reduce((sum, { errors }) => sum + errors, 0),
    rounds: found.length,
  };
}

/**
 * The median over the rounds of the ratio in each round. Other load on the machine affects both peers of a
 * round, so the ratio within a round is more reliable than a ratio of medians.
 */
export function ratioOf(
  results: readonly Result[],
  part: Part,
  what: string,
  clients: number,
  peer: PeerName,
  other: PeerName,
): number | undefined {
  const rates = (name: PeerName): Map<number, number> =>
    new Map(
      results
        .filter(
          (result) =>
            result.part === part &&
            result.what === what &&
            result.clients === clients &&
            result.peer === name,
        )
        .map(({ round, turns, seconds }) => [round, turns / seconds]),
    );
  const [ours, theirs] = [rates(peer), rates(other)];
  const ratios = [...ours].flatMap(([round, rate]) => {
    const theirRate = theirs.get(round);
    return theirRate === undefined ? [] : [rate / theirRate];
  });
  return ratios.length === 0 ? undefined : median(ratios);
}
