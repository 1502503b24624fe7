import type { Cell, Client } from "../../users/client/index.ts";
import type { Io } from "../framework/io.ts";
import type { Header } from "./format.ts";
import { untilAnswered } from "./until-answered.ts";

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
