import type { Limits } from "../core/limits.ts";
import type { Envelope } from "../core/messages.ts";
import type { Objects } from "../objects/objects.ts";
import type { Runtime } from "../runtime.ts";
import type { Database } from "./database.ts";

/** What one run of the cron has to work with. */
export interface CronRun {
  envelope: Envelope;
  limits: Limits;
  objects: Objects;
  database: Database;
  runtime: Runtime;
  /** No page is asked for after this; the next run goes on. */
  deadlineMs: number;
  /** Pages that the run may still write. */
  pagesLeft: number;
}

/**
 * How long a run waits for one answer of an object; the work behind it goes on when nobody waits any more. The functions that call are async,
 * so that a stub which cannot even be made counts as a failed call.
 */
export const CALL_TIMEOUT_MS = 10_000;
