import { v7 as uuidv7 } from "uuid";
import { reasonOf } from "../causes.ts";
import { settingsOf, limitedTo, type VerifyOptions } from "./options.ts";
import { initialCursor, readCursor } from "./cursor.ts";
import type { VerificationPorts } from "./ports.ts";
import type { VerificationReport } from "./report.ts";
import { VerificationRun } from "./run.ts";
import { HeldSlot } from "./held-slot.ts";

/** A run failed. Its repairs so far are kept, and the next run continues from the saved cursor. */
export class VerificationAborted extends Error {
  readonly report: VerificationReport;

  constructor(cause: unknown, report: VerificationReport) {
    super(`verification failed: ${reasonOf(cause)}`, {
      cause,
    });
    this.name = "VerificationAborted";
    this.report = report;
  }
}

/**
 * Checks that the cell's rows and claims agree, and repairs drift. The first pass over all tables creates and
 * replaces the claims that rows lack. Only then does the second pass destroy claims that no row needs (V3),
 * so a name that moves from one row to another is never free in between. The first verification of a cell is
 * its backfill.
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
    // Reads the cursor only once the slot is held, because the previous holder may have moved it until then.
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
    // If the database is what failed, this fails too, and the first error is the one to report.
    await run.abandon(error).catch(() => {});
    throw new VerificationAborted(error, run.report("stopped"));
  } finally {
    await slot.release();
  }
}
