import { isLeaseholdError, type Cell, type Client } from "../../users/client/index.ts";
import type { Io } from "../framework/io.ts";
import type { Header } from "./format.ts";
import type { Context } from "../framework/context.ts";
import { CommandError, messageOf, exitCodes } from "../framework/command-error.ts";
import { durationText } from "../../common/text/duration.ts";

const PAUSE_MS = 1_000;

/** All cells, with those that were removed. The state of each is known. */
export async function cellsOf(io: Io, client: Client): Promise<Cell[]> {
  for (;;) {
    const cells = await untilAnswered(io, () => client.cells.list({ includeRemoved: true }).all());
    const unknown = cells.filter(({ state, removed_at: removedAt }) => state === null && removedAt === null);
    if (unknown.length === 0) return cells;
    await io.err.write(
      `Waiting for the ledgers of cells ${unknown.map(({ cell_id: id }) => id).join(", ")}.\n`,
    );
    await io.wait(PAUSE_MS);
  }
}

/**
 * Returns a cell of the backup that the deployment does not have, or that was registered at another time.
 * Undefined: the backup is of this deployment.
 */
export async function otherCell(
  io: Io,
  client: Client,
  { cells }: Header,
): Promise<Header["cells"][number] | undefined> {
  const listed = await cellsOf(io, client);
  const times = new Map(listed.map(({ cell_id: id, created_at: at }) => [id, at]));
  return cells.find(({ cell_id: id, created_at: at }) => times.get(id) !== at);
}

/** The client never repeats this call by itself, so look before each attempt. */
export async function addCell(
  { io }: Context,
  client: Client,
  { cell_id: id, name, address, location_hint: hint }: Cell,
  reason: string,
): Promise<void> {
  await untilAnswered(io, async () => {
    try {
      const location = hint === null ? {} : { location_hint: hint as never };
      await client.cells.add({ cell_id: id, name, address, ...location, reason });
    } catch (error) {
      // The answer to an earlier attempt was lost. The cell is as this one: the others were refused.
      if (!(isLeaseholdError(error) && error.code === "ALREADY_EXISTS")) throw error;
    }
  });
}

const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 30_000;
/** The longest outage that is waited for. */
const OUTAGE_MS = 900_000;

/** What passes by itself: an outage, a limit that is reached, or a lease in the way. */
const PASSING: ReadonlySet<string> = new Set([
  "UNAVAILABLE",
  "DEADLINE_EXCEEDED",
  "RESOURCE_EXHAUSTED",
  "ABORTED",
]);

const mayPass = (error: unknown): boolean =>
  isLeaseholdError(error)
    ? PASSING.has(error.code)
    : error instanceof CommandError && error.exitCode === exitCodes.unavailable;

/** Repeats work through outages of up to a quarter of an hour. The work must be safe to repeat. */
export async function untilAnswered<T>(
  { signal, err, wait }: Pick<Io, "signal" | "err" | "wait">,
  work: () => Promise<T>,
): Promise<T> {
  let waitedMs = 0;
  for (let backoffMs = FIRST_BACKOFF_MS; ; backoffMs = Math.min(MAX_BACKOFF_MS, backoffMs * 2)) {
    signal.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      if (signal.aborted || !mayPass(error) || waitedMs >= OUTAGE_MS) throw error;
      const why = messageOf(error);
      await err.write(`Not now: ${why} Trying again in ${durationText(backoffMs)}.\n`);
      await wait(backoffMs);
      waitedMs += backoffMs;
    }
  }
}
