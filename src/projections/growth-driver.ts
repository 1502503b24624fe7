import type { Limits } from "../core/limits.ts";
import type { Envelope } from "../core/messages.ts";
import type { Objects } from "../objects/objects.ts";
import type { WallClock } from "../runtime.ts";
import type { Database } from "./database.ts";

/** What carries out the steps of a growth: a request, or a run of the cron. */
export interface GrowthDriver {
  /** The fields that all messages have. They change when the new placement is in force. */
  readonly envelope: Envelope;
  objects: Objects;
  database: Database;
  limits: Limits;
  clock: WallClock;
}
