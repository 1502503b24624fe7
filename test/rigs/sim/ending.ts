import { Random } from "./random.ts";
import type { SimulationSettings } from "./simulation-settings.ts";

/** What the last phase of a run is about. */
export type Ending =
  | "lost transfers"
  | "scrubs"
  | "removal"
  | "removal that goes back"
  | "sources"
  | "directory"
  | "parts";

export function endingOf(
  seed: number,
  { losesTransfers, scrubMs, sourceGoesBack }: SimulationSettings,
): Ending {
  const isDrawn = (name: string, chance: number): boolean => Random.of(seed, name).chance(chance);
  if (losesTransfers === true) return "lost transfers";
  if (scrubMs !== undefined && isDrawn("ends with scrubs", 0.6)) return "scrubs";
  if (isDrawn("removes a cell", 0.15)) return "removal";
  if (isDrawn("removal goes back", 0.1)) return "removal that goes back";
  if (sourceGoesBack !== undefined) return "sources";
  return isDrawn("what goes back", 0.2) ? "directory" : "parts";
}
