import type { Limits } from "../core/limits.ts";
import type { Envelope } from "../core/messages.ts";
import type { Objects } from "../objects/objects.ts";
import type { Runtime } from "../runtime.ts";
import type { Database } from "./database.ts";

/** The state of one run of the cron. */
export interface CronRun {
  envelope: Envelope;
  limits: Limits;
  objects: Objects;
  database: Database;
  runtime: Runtime;
  /** After this time, no page is requested. The next run continues. */
  deadlineMs: number;
  /** The number of pages that this run may still write. */
  pagesLeft: number;
}

/**
 * How long a run waits for one answer of an object. The object's work continues after that. The functions
 * passed to `ask` are async, so that an error while the stub is made counts as a failed call.
 */
export const CALL_TIMEOUT_MS = 10_000;
