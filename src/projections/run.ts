import type { Limits } from "../core/limits.ts";
import type { Envelope } from "../core/messages.ts";
import { logEvent } from "../log.ts";
import { wallClock, type Objects, type WallClock } from "../objects/peers.ts";
import type { Database } from "./database.ts";

/** What a run needs from the world, besides the bindings. */
export interface Around {
  clock: WallClock;
  uuid: () => string;
  log: typeof logEvent;
}

export const platform: Around = { clock: wallClock, uuid: () => crypto.randomUUID(), log: logEvent };

/** What one run of the cron has to work with. */
export interface Run {
  envelope: Envelope;
  limits: Limits;
  objects: Objects;
  database: Database;
  around: Around;
  /** No page is asked for after this; the next run goes on. */
  deadlineMs: number;
  /** Pages that the run may still write. */
  pagesLeft: number;
}

/**
 * How long a run waits for one answer of an object; the work behind it goes on when nobody waits any more. The functions that call are async,
 * so that a stub which cannot even be made counts as a failed call.
 */
export const CALL_MS = 10_000;
