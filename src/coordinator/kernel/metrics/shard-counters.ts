import type { ShardMetrics } from "./messages.ts";

export type Counted = "exchanges" | "settles" | "inquiries" | "sweeps" | "lookups" | "recordReads";

/** What an instance of a shard has done since it started. */
export class ShardCounters {
  readonly #counts: Record<Counted, number> = {
    exchanges: 0,
    settles: 0,
    inquiries: 0,
    sweeps: 0,
    lookups: 0,
    recordReads: 0,
  };

  add(counted: Counted, by = 1): void {
    this.#counts[counted] += by;
  }

  counts(): Pick<ShardMetrics, Counted> {
    return { ...this.#counts };
  }
}
