import type { Cell, Client } from "../../users/client/index.ts";
import { CommandError, exitCodes } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import type { Io } from "../framework/io.ts";
import { fields } from "../output/table.ts";
import type { Result } from "../output/result.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";
import { countOf } from "../../common/text/count-of.ts";
import { escapeControls } from "../../common/text/escape.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { addCell, cellsOf, untilAnswered } from "./deployment-cells.ts";
import { compare, RANGES_PER_CALL, type Comparison } from "./compare.ts";
import { endRestore, startRestore } from "../operations/operations.ts";
import { leaseIdOf } from "./lease-id.ts";
import { leastPositionOf, protectShards, readShards } from "./protect-shards.ts";
import { readBackup, type Backup } from "./read-backup.ts";
import { CLAIMS_PER_LEASE, restoreClaims, type RestoredClaims } from "./restore-claims.ts";
import { exitCodeOf } from "./verify-backup.ts";
import { approveRemoval } from "../cells/remove-cell.ts";
import { callRoute } from "../connection/call-route.ts";

const PAGE_SIZE = 1_000;

interface RestoreOptions extends ChangeOptions {
  lowerEpochs?: boolean;
}

/**
 * Restores a backup into a deployment that was never used. A run that was interrupted is repeated: each step
 * first looks at what is done.
 */
export async function restore(context: Context, path: string, options: RestoreOptions): Promise<Result> {
  const reason = reasonOf(options);
  const { io } = context;
  const client = await context.client();
  const backup = await readBackup(path);
  await backup.check();
  const present = await cellsOf(io, client);
  await requireEmpty(context, backup, present);
  await requireLimits(io, client);
  const kept = backup.cells.filter(({ removed_at: removedAt }) => removedAt === null);
  if (kept.length === 0)
    throw new CommandError("the backup has no cells, so there is nothing to restore", exitCodes.conflict);
  const { found, end } = backup;
  const claims = (end?.claims ?? []).reduce((sum, { count }) => sum + count, 0);
  const contents: [string, string | number][] = [
    ["backup of", backup.header.created_at],
    ["cells", kept.length],
    ["claims", claims],
    ["revoked keys", backup.revokedKeys.length],
    ["open leases", found.leases],
  ];
  if (options.dryRun === true)
    return {
      document: { ...Object.fromEntries(contents), changed: false, dry_run: true },
      text: () => fields(contents),
      notes: [EFFECT, "Nothing was changed."],
    };
  const { url } = await context.target();
  await confirm(context, options, {
    name: "restore",
    effect:
      `This restores ${countOf(claims, "claim")} of ${countOf(kept.length, "cell")} into ${url}, because: ` +
      `${reason}\n${EFFECT}`,
  });
  // The same backup has the same id, so a run that repeats another one finds its operation.
  const operation = leaseIdOf(["restore", backup.header]);
  await untilAnswered(io, () => startRestore(context, operation, reason));

  await restoreTypes(context, client, backup, reason);
  const missing = kept.filter(({ cell_id: id }) => !present.some(({ cell_id: known }) => known === id));
  const [first, ...others] = missing;
  // The shards exist once a cell is registered. They are protected before any other cell can begin a lease.
  if (first !== undefined) await addCell(context, client, first, reason);
  await freezeAll(context, client, reason);
  // Until it was frozen, that cell could begin one, if its processes run and have the deployment's address.
  const used = await usedShard(context);
  if (used !== undefined)
    throw new CommandError(
      `a cell has begun a lease before it was frozen: ${used} has changes. Stop the processes of all ` +
        "cells, make an empty deployment, and repeat the restore",
      exitCodes.conflict,
    );
  const least = options.lowerEpochs === true ? 0 : leastPositionOf(found.checkpoint);
  await io.err.write("Protecting the names: only verifications may take names from now on.\n");
  await protectShards(context, least, reason);
  for (const cell of others) {
    await addCell(context, client, cell, reason);
    await freezeAll(context, client, reason);
  }
  await restoreRevocations(context, client, backup, reason);
  const restored = await restoreClaims(io, client, backup, reason);
  const comparison = await compare(io, client, backup);
  for (const cell of backup.cells)
    if (cell.removed_at !== null) await restoreRemoved(context, client, cell, backup, reason);
  await restoreStates(context, client, kept, reason);
  await restoreIdentities(context, client, backup, reason);
  await untilAnswered(io, () => endRestore(context, operation, reason));
  return resultOf(backup, kept, restored, comparison);
}

const EFFECT =
  "Every shard is declared lost, so that only verifications may take names until you finish the shards.";

/** Returns a shard that has a history and was not declared lost. */
const usedShard = async (context: Context): Promise<string | undefined> =>
  (await readShards(context)).find(({ state, point }) => state === "complete" && point !== null)?.id;

/** @throws unless the deployment was never used, or has only what an interrupted restore has left */
async function requireEmpty(context: Context, backup: Backup, present: readonly Cell[]): Promise<void> {
  if (present.length === 0) return;
  const known = new Map(backup.cells.map((cell) => [cell.cell_id, cell]));
  const foreign = present.find(({ cell_id: id, name, removed_at: removedAt }) => {
    const cell = known.get(id);
    return cell?.name !== name || (removedAt !== null && cell.removed_at === null);
  });
  if (foreign !== undefined)
    throw new CommandError(
      `the deployment has cell ${foreign.cell_id} (${escapeControls(foreign.name)}), which is not as in ` +
        "the backup: a backup can only be restored beside no other cells. Nothing was changed",
      exitCodes.conflict,
    );
  const used = await usedShard(context);
  if (used !== undefined)
    throw new CommandError(
      `the deployment is in use: ${used} has changes, and is not being reconciled. A backup can only be ` +
        "restored into a deployment that was never used. Nothing was changed",
      exitCodes.conflict,
    );
  const times = new Map(backup.header.cells.map(({ cell_id: id, created_at: at }) => [id, at]));
  const source = present.find(({ cell_id: id, created_at: at }) => times.get(id) === at);
  if (source !== undefined)
    throw new CommandError(
      `the backup is of this deployment: cell ${source.cell_id} was registered at the same time. A backup ` +
        "can only be restored into another one. Nothing was changed",
      exitCodes.conflict,
    );
}

/** @throws if the deployment would refuse the batches, before anything is changed */
async function requireLimits(io: Io, client: Client): Promise<void> {
  const least = { batch_ops: CLAIMS_PER_LEASE, digest_ranges: RANGES_PER_CALL };
  const limits = await untilAnswered(io, () => client.limits());
  for (const { name, value, variable } of limits) {
    const needed = (least as Record<string, number>)[name];
    if (needed !== undefined && value < needed)
      throw new CommandError(
        `a restore needs ${variable} of at least ${needed}, and it is ${value}. Nothing was changed`,
        exitCodes.conflict,
      );
  }
}

async function restoreTypes({ io }: Context, client: Client, backup: Backup, reason: string): Promise<void> {
  await untilAnswered(io, async () => {
    const { version, types } = await client.types.get();
    if (JSON.stringify(types) === JSON.stringify(backup.typeSet)) return;
    await client.types.change({ version, types: backup.typeSet, reason });
  });
}

async function restoreRevocations(
  { io }: Context,
  client: Client,
  { revokedKeys, cells }: Backup,
  reason: string,
): Promise<void> {
  const listed = await untilAnswered(io, () => client.keys.list({ pageSize: PAGE_SIZE }).all());
  const done = new Set(listed.filter(({ revoked_at: at }) => at !== null).map(({ id }) => id));
  const removed = new Set(cells.filter(({ removed_at: at }) => at !== null).map(({ cell_id: id }) => id));
  for (const { id, cell_id: cell, expires_at: expiresAt } of revokedKeys) {
    // Keys that have expired are refused anyway. Those of removed cells follow with their cells.
    if (done.has(id) || Date.parse(expiresAt) <= io.now() || removed.has(cell ?? "")) continue;
    const owner = cell === null ? {} : { cell_id: cell };
    await untilAnswered(io, () => client.keys.revoke(id, { ...owner, reason }));
  }
}

/**
 * Until its state is restored, a cell begins nothing: its keys may be those that were revoked. The claims of
 * a restore are an operator's (H9).
 */
async function freezeAll({ io }: Context, client: Client, reason: string): Promise<void> {
  for (const { cell_id: id, state } of await cellsOf(io, client))
    if (state === "ACTIVE") await untilAnswered(io, () => client.cells.freeze(id, { reason }));
}

/** A removal that had begun has to be started again, so its cell is draining. */
async function restoreStates(
  { io }: Context,
  client: Client,
  cells: readonly Cell[],
  reason: string,
): Promise<void> {
  for (const { cell_id: id, state } of cells) {
    if (state === "DRAINING" || state === "REMOVING")
      await untilAnswered(io, () => client.cells.drain(id, { reason }));
    else if (state !== "FROZEN") await untilAnswered(io, () => client.cells.unfreeze(id, { reason }));
  }
}

/** The last step, because cells may sign in with certificates and tokens from then on. */
async function restoreIdentities(
  { io }: Context,
  client: Client,
  { identities: { issuers, authorities } }: Backup,
  reason: string,
): Promise<void> {
  if (issuers.length + authorities.length === 0) return;
  await untilAnswered(io, async () => {
    const { version } = await client.identities.get();
    const plan = await client.identities.change({ version, issuers, authorities, dry_run: true });
    if (plan.changes.length > 0) await client.identities.change({ version, issuers, authorities, reason });
  });
}

function resultOf(
  backup: Backup,
  cells: readonly Cell[],
  claims: RestoredClaims,
  comparison: Comparison,
): Result {
  const removed = backup.cells.filter(({ removed_at: at }) => at !== null).map(({ cell_id: id }) => id);
  const leases = backup.leases.map(({ uuid, cell_id: cell }) => ({ uuid, cell_id: cell }));
  return {
    document: {
      cells: cells.map(({ cell_id: id }) => id),
      removed_cells: removed,
      claims,
      comparison,
      open_leases: backup.found.leases,
      leases,
      changed: true,
      dry_run: false,
    },
    text: () =>
      fields([
        ["cells", cells.length],
        ["claims restored", claims.restored],
        ["there before", claims.present],
        ["of other cells", claims.lost],
        ["ranges equal", comparison.verified + comparison.changed],
        ["ranges different", comparison.different.length],
        ["ranges with leases", comparison.held],
      ]),
    notes: [
      ...leases.map(
        ({ uuid, cell_id: cell }) =>
          `Lease ${uuid} of cell ${cell} was open. Its names are not claimed: its cell verifies them.`,
      ),
      ...(removed.length === 0
        ? []
        : [`Cells ${removed.join(", ")} are removed, as they were. Their ids are never used again.`]),
      "The shards are reconciling. Mint keys, let every cell reconcile and verify, then finish the shards.",
    ],
    nextSteps: [
      ...cells
        .slice(0, 10)
        .map(({ cell_id: id }) => commandLine("keys", "mint", "--role", "cell", "--cell", id)),
      "leasehold verify status",
      `${commandLine("parts", "finish", "shard-0")} --reason TEXT`,
    ],
    exitCode: claims.lost > 0 ? exitCodes.drift : exitCodeOf(comparison),
  };
}

/** A cell without claims needs one step for each shard, and each of them may fail for a while. */
const MAX_STEPS = 2_000;
const PAUSE_MS = 100;

/**
 * Registers a cell and removes it, so that its id is never used again (X5). It has no claims. Called when the
 * claims of all others are there, because whoever has one of its keys could take names until it is removed.
 */
async function restoreRemoved(
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
