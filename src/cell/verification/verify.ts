import { v7 as uuidv7 } from "uuid";
import { settingsOf, limitedTo, type VerifyOptions } from "./options.ts";
import { initialCursor, readCursor } from "./cursor.ts";
import type { VerificationPorts } from "./ports.ts";
import type { VerificationReport } from "./report.ts";
import { VerificationRun } from "./run.ts";
import { HeldSlot } from "./held-slot.ts";

/** A run that could not go on. What it had done until then is done, and its cursor is stored. */
export class VerificationAborted extends Error {
  readonly report: VerificationReport;

  constructor(cause: unknown, report: VerificationReport) {
    super(`the verification could not go on: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    });
    this.name = "VerificationAborted";
    this.report = report;
  }
}

/**
 * Checks that the cell's rows and its claims agree, both ways, and mends what differs. In two passes over all tables: names that rows lack are taken
 * first, from rows of this cell that gave them up as well, and only then is given up what no row needs (rule V3): so a name that moves from
 * one row to another is never free. The first run of all is the backfill.
 */
export async function verify(
  ports: VerificationPorts,
  options: VerifyOptions = {},
): Promise<VerificationReport> {
  const settings = limitedTo(settingsOf(options), ports.limits);
  const slot = new HeldSlot(ports.slots, uuidv7());
  let run = new VerificationRun(ports, settings, slot, {
    cursor: initialCursor(ports, !settings.digests),
    isResumed: false,
    text: undefined,
  });
  try {
    const taken = await slot.take();
    if (!taken.isTaken) return { ...run.report("no_slot"), retryAfterMs: taken.retryAfterMs };
    // Only now: whoever had the slot until a moment ago has moved it on.
    const { text, cursor, changes, doneMs } = await readCursor(ports, !settings.digests);
    if (doneMs !== undefined && doneMs < settings.unlessDoneWithinMs) return run.report("not_due");
    if (settings.apply) {
      const isResumed = cursor !== undefined && !settings.startOver;
      const first = isResumed
        ? cursor
        : initialCursor(ports, !settings.digests, settings.startOver ? 0 : changes);
      run = new VerificationRun(ports, settings, slot, { cursor: first, isResumed, text });
    }
    return await run.run();
  } catch (error) {
    // Of little use without the database, which may be the cause.
    await run.abandon(error).catch(() => {});
    throw new VerificationAborted(error, run.report("stopped"));
  } finally {
    await slot.release();
  }
}
