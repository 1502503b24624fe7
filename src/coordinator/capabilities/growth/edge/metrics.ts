import { askParts } from "../../../isolate/reach.ts";
import { familiesOf, gauge } from "../../metrics/edge/family.ts";
import type { Growth, GrowthProgress } from "../messages.ts";
import { askProgress } from "./cron.ts";
import type { GrowthDriver } from "./growth-driver.ts";

declare module "../../metrics/edge/family.ts" {
  interface Sources {
    growth: readonly GrowthProgress[];
  }
}

const ofShards = (value: (of: GrowthProgress) => number) => (all: readonly GrowthProgress[]) =>
  all.map((of) => [{ shard: String(of.shard) }, value(of)] as const);

export const families = [
  familiesOf("deployment", "leasehold_up", {
    leasehold_growth: gauge(
      "The number of shards to which the deployment grows. Left out while it does not grow.",
      ({ view: { growth } }) => (growth === null ? [] : [[{ phase: growth.phase }, growth.to]]),
      "phase",
    ),
  }),
  familiesOf("growth", "leasehold_up", {
    leasehold_growth_copied_names: gauge(
      "The names that a shard has sent to new shards in this growth.",
      ofShards(({ copied }) => copied),
      "shard",
    ),
    leasehold_growth_waiting_changes: gauge(
      "The changes of copied names that a shard must send again, at most 10,000.",
      ofShards(({ waiting }) => waiting),
      "shard",
    ),
    leasehold_growth_deleted_names: gauge(
      "The names that have moved and that their old shard has deleted.",
      ofShards(({ cleaned }) => cleaned),
      "shard",
    ),
  }),
];

/** Asks the shards that give names away. Whether they answer is said by their own metrics. */
export async function readGrowth(
  { objects, envelope, limits }: Pick<GrowthDriver, "objects" | "envelope" | "limits">,
  growth: Growth | null,
): Promise<readonly GrowthProgress[]> {
  const sources = [...Array(growth?.from ?? 0).keys()].map((shard) => ({
    name: `shard-${shard}`,
    ask: () => askProgress(objects, envelope, shard),
  }));
  const asked = await askParts(sources, limits);
  return asked.flatMap((each) => (each.ok ? [each.value] : []));
}
