import { Random } from "../../../demo/random.ts";
import { failpoints, type Failpoint, type Side } from "./failpoints.ts";
import type { RoundSettings } from "./round.ts";
import type { HostKind, KillTarget } from "./server.ts";

/** A round depends only on the seed and its number, so that it can be repeated alone. */

const sides: readonly Side[] = ["before", "after"];

export const matrix: readonly { failpoint: Failpoint; side: Side }[] = failpoints.flatMap((failpoint) =>
  sides.map((side) => ({ failpoint, side })),
);

/** Numbers start at 1. First comes each failpoint on each side, then rounds with random moments. */
export function drawRoundSettings(seed: number, number: number, host: HostKind = "start"): RoundSettings {
  const random = new Random(seed, "settings", number);
  const entry = matrix[number - 1];
  const death: RoundSettings["death"] =
    entry === undefined
      ? {
          kind: "random",
          killTargets: Array.from({ length: random.between(1, 3) }, () => drawTarget(random, host)),
        }
      : { kind: "failpoint", ...entry, hit: random.between(1, entry.failpoint.hits) };
  return {
    host,
    number,
    seed,
    death,
    clientsSurvive: random.chance(0.5),
    killsClient: random.chance(0.4),
    isPatient: number % 8 === 0,
  };
}

function drawTarget(random: Random, host: HostKind): KillTarget {
  // The standalone server is one process.
  if (random.chance(0.6) || host === "standalone") return "group";
  return random.chance(0.5) ? "node" : "workerd";
}

export const describeRound = ({ death }: RoundSettings): { kill: string; moment: string } =>
  death.kind === "random"
    ? { kill: death.killTargets.join(", "), moment: "any moment" }
    : { kill: "group", moment: `${death.side} ${death.failpoint.name}, hit ${death.hit}` };
