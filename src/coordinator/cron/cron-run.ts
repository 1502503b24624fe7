import type { Limits } from "../../common/limits.ts";
import type { Envelope } from "../kernel/messages.ts";
import type { KnownPlacement } from "../isolate/known-placement.ts";
import type { Objects } from "../objects/objects.ts";
import type { Runtime } from "../runtime.ts";
import type { Database } from "../d1/database.ts";

/** The state of one run of the cron. */
export interface CronRun {
  /** What the run knows. It learns from the directory, and from every object that refuses a message. */
  placement: KnownPlacement;
  /** The fields that all messages have. */
  readonly envelope: Envelope;
  limits: Limits;
  objects: Objects;
  database: Database;
  runtime: Runtime;
  /** The time for which the platform has planned the run. */
  scheduledAtMs: number;
  /** After this time, no page is requested. The next run continues. */
  deadlineMs: number;
  /** The statements that the run keeps for its end. */
  reservedStatements: number;
}

/** They are enough for the marks of the cells, the run's own row, and second attempts. */
export const END_STATEMENTS = 100;

/** The most statements of a page of a pull: one reads what D1 has, the others write. */
const PAGE_STATEMENTS = 4;

/** Whether the run may still request a page, and write it after all those that are under way. */
export const hasRoom = ({ database, deadlineMs, limits, reservedStatements, runtime }: CronRun): boolean =>
  database.statementsLeft > reservedStatements + PAGE_STATEMENTS * limits.fanOut &&
  runtime.clock.now() < deadlineMs;

/**
 * How long a run waits for one answer of an object. The object's work continues after that. The functions
 * passed to `ask` are async, so that an error while the stub is made counts as a failed call.
 */
export const CALL_TIMEOUT_MS = 10_000;
