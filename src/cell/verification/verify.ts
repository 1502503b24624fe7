import { v7 as uuidv7 } from "uuid";
import { settingsOf, within, type VerifyOptions } from "./options.ts";
import { firstPlace, readPlace } from "./cursor.ts";
import type { VerificationPorts } from "./ports.ts";
import type { VerificationReport } from "./report.ts";
import { Run } from "./run.ts";
import { Slot } from "./held-slot.ts";

/** A run that could not go on. What it had done until then is done, and its place is stored. */
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
  const settings = within(settingsOf(options), ports.limits);
  const slot = new Slot(ports.slots, uuidv7());
  let run = new Run(ports, settings, slot, {
    place: firstPlace(ports, !settings.digests),
    isResumed: false,
    text: undefined,
  });
  try {
    const taken = await slot.take();
    if (!taken.isTaken) return { ...run.report("no_slot"), retryAfterMs: taken.retryAfterMs };
    // Only now: whoever had the slot until a moment ago has moved it on.
    const { text, place, spent, doneMs } = await readPlace(ports, !settings.digests);
    if (doneMs !== undefined && doneMs < settings.unlessDoneWithinMs) return run.report("not_due");
    if (settings.apply) {
      const isResumed = place !== undefined && !settings.startOver;
      const first = isResumed ? place : firstPlace(ports, !settings.digests, settings.startOver ? 0 : spent);
      run = new Run(ports, settings, slot, { place: first, isResumed, text });
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
