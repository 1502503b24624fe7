import { Random } from "../../../demo/random.ts";
import { failpoints, type Failpoint, type Side } from "./failpoints.ts";
import type { Plan } from "./round.ts";
import type { Victim } from "./server.ts";

/** A round follows from the seed and its number alone, so that it can be run again by itself. */

const sides: readonly Side[] = ["before", "after"];

export const matrix: readonly { failpoint: Failpoint; side: Side }[] = failpoints.flatMap((failpoint) =>
  sides.map((side) => ({ failpoint, side })),
);

/** Numbers from 1: each failpoint on each side first, then random moments without end. */
export function planOf(seed: number, number: number): Plan {
  const random = new Random(seed, "plan", number);
  const place = matrix[number - 1];
  const death: Plan["death"] =
    place === undefined
      ? { kind: "random", victims: Array.from({ length: random.between(1, 3) }, () => victimOf(random)) }
      : { kind: "failpoint", ...place, hit: random.between(1, place.failpoint.hits) };
  return {
    number,
    seed,
    death,
    rides: random.chance(0.5),
    killsClient: random.chance(0.4),
    isPatient: number % 8 === 0,
  };
}

function victimOf(random: Random): Victim {
  if (random.chance(0.6)) return "group";
  return random.chance(0.5) ? "node" : "workerd";
}

export const describe = ({ death }: Plan): { kill: string; place: string } =>
  death.kind === "random"
    ? { kill: death.victims.join(", "), place: "any moment" }
    : { kill: "group", place: `${death.side} ${death.failpoint.name}, hit ${death.hit}` };
