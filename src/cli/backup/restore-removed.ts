import type { Cell, Client } from "../../users/client/index.ts";
import { approveRemoval } from "../cells/remove-cell.ts";
import { callRoute } from "../connection/call-route.ts";
import { CommandError } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { exitCodes } from "../framework/exit-codes.ts";
import { addCell } from "./add-cell.ts";
import { cellsOf } from "./deployment-cells.ts";
import type { Backup } from "./read-backup.ts";
import { untilAnswered } from "./until-answered.ts";

/** A cell without claims needs one step for each shard, and each of them may fail for a while. */
const MAX_STEPS = 2_000;
const PAUSE_MS = 100;

/**
 * Registers a cell and removes it, so that its id is never used again (X5). It has no claims. Called when the
 * claims of all others are there, because whoever has one of its keys could take names until it is removed.
 */
export async function restoreRemoved(
  context: Context,
  client: Client,
  cell: Cell,
  { revokedKeys }: Backup,
  reason: string,
): Promise<void> {
  const { io } = context;
  const { cell_id: id } = cell;
  const stateNow = async (): Promise<Cell | undefined> =>
    (await cellsOf(io, client)).find(({ cell_id: known }) => known === id);
  const before = await stateNow();
  if (before === undefined) await addCell(context, client, cell, reason);
  else if (before.removed_at !== null) return;
  if (before === undefined || before.state === "ACTIVE")
    await untilAnswered(io, () => client.cells.freeze(id, { reason }));
  for (const key of revokedKeys)
    if (key.cell_id === id && Date.parse(key.expires_at) > io.now())
      await untilAnswered(io, () => client.keys.revoke(key.id, { cell_id: id, reason }));
  const state = (await stateNow())?.state;
  if (state === "FROZEN") await untilAnswered(io, () => client.cells.drain(id, { reason }));
  if (state === "FROZEN" || state === "DRAINING")
    await untilAnswered(io, () => approveRemoval(context, id, []));
  for (let step = 0; step < MAX_STEPS; step += 1) {
    const path = `/v1/admin/cells/${encodeURIComponent(id)}/removal/steps`;
    await untilAnswered(io, () =>
      callRoute(context, { method: "POST", path, body: JSON.stringify({ reason }) }),
    );
    if ((await stateNow())?.removed_at !== null) return;
    await io.wait(PAUSE_MS);
  }
  throw new CommandError(
    `the removal of cell ${id} does not end: look at its state, and repeat the restore`,
    exitCodes.unavailable,
    [`leasehold cells show ${id}`],
  );
}
