import type { Cell, Client } from "../../users/client/index.ts";
import type { Context } from "../framework/context.ts";
import { pageSizeFor, type LimitOption } from "../framework/arguments.ts";
import { listResult, take, type Result } from "../output/result.ts";
import { cellLimitsOf, cellStatusOf, keyedCellsOf, type CellLimits } from "../../common/status/observed.ts";
import { cellReasons } from "../../common/status/reasons.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { fields } from "../output/table.ts";
import { allKeys } from "../status/observe.ts";
import { reportFields } from "../verify/verify.ts";
import { CommandError, usageError, exitCodes } from "../framework/command-error.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";
import { escapeControls } from "../../common/text/escape.ts";

interface ListOptions extends LimitOption {
  removed?: boolean;
}

export async function listCells(context: Context, { limit, removed }: ListOptions): Promise<Result> {
  const client = await context.client();
  const { items, isCut } = await take(
    client.cells.list({ pageSize: pageSizeFor(limit), includeRemoved: removed }),
    limit,
  );
  return listResult<Cell>({
    name: "cells",
    items,
    isCut,
    columns: [
      { title: "CELL", value: ({ cell_id: id }) => id },
      { title: "NAME", value: ({ name }) => name },
      { title: "STATE", value: ({ state }) => state ?? "UNREACHABLE" },
      { title: "ADDRESS", value: ({ address }) => address },
      { title: "OPEN LEASES", value: ({ outstanding_leases: count }) => count, isNumber: true },
      { title: "UNAPPLIED", value: ({ unapplied_decisions: count }) => count, isNumber: true },
      { title: "BYTES", value: ({ stored_bytes: bytes }) => bytes, isNumber: true },
    ],
    empty: "There are no cells.",
    nextSteps: items.length === 0 ? ["leasehold cells add --help"] : [],
  });
}

/** Stale leases are left out: they are in D1, and a cell is shown without it. */
export async function showCell(context: Context, id: string): Promise<Result> {
  const client = await context.client();
  const cell = await findCell(client, id);
  const [limits, keys] = await Promise.all([client.limits().then(cellLimitsOf), allKeys(client)]);
  const keyed = keys && keyedCellsOf(keys, context.io.now());
  const status = cellStatusOf(cell, [], keyed);
  const show = commandLine("cells", "show", id);
  const reasons = (cell.state === "REMOVED" ? [] : cellReasons(status, limits)).map(({ problem, next }) => ({
    problem,
    ...(next !== undefined && next !== show && { next }),
  }));
  return {
    document: { cell, limits, has_valid_key: status.has_valid_key, reasons },
    text: () => [cellText(cell, limits), fields(reportFields(cell.status))].join("\n\n"),
    notes: reasons.map(({ problem }) => problem),
    nextSteps: [
      ...new Set([
        ...reasons.flatMap(({ next }) => next ?? []),
        ...((cell.outstanding_leases ?? 0) > 0 ? [commandLine("leases", "ls", "--cell", id)] : []),
        commandLine("claims", "ls", "--cell", id),
      ]),
    ],
  };
}

export const cellText = (cell: Cell, limits: CellLimits | null = null): string =>
  fields([
    ["cell", cell.cell_id],
    ["name", cell.name],
    ["state", cell.state ?? "its ledger can't be reached"],
    ["removed", cell.removed_at],
    ["address", cell.address],
    ["location hint", cell.location_hint],
    ["open leases", useText(cell.outstanding_leases, limits?.outstanding_leases)],
    ["unapplied", cell.unapplied_decisions],
    ["bytes", useText(cell.stored_bytes, limits?.ledger_bytes)],
    ["created", cell.created_at],
    ["changed", cell.updated_at],
  ]);

/** Such as `9 of 10 (90 %)`. */
function useText(value: number | null, limit: number | undefined): string | number | null {
  if (value === null || limit === undefined || limit === 0) return value;
  return `${value} of ${limit} (${Math.floor((100 * value) / limit)} %)`;
}

interface SetOptions extends ChangeOptions {
  name?: string;
  address?: string;
}

export async function setCell(context: Context, id: string, options: SetOptions): Promise<Result> {
  const { name, address, dryRun } = options;
  if (name === undefined && address === undefined) throw usageError("give --name, --address, or both");
  const reason = reasonOf(options);
  const client = await context.client();
  const before = await findCell(client, id);
  if (before.removed_at !== null)
    throw new CommandError(
      `cell ${id} was removed at ${before.removed_at}: nothing was changed`,
      exitCodes.conflict,
    );
  const changes = [
    ...(name === undefined || name === before.name ? [] : [`name ${before.name} -> ${name}`]),
    ...(address === undefined || address === before.address
      ? []
      : [`address ${before.address} -> ${address}`]),
  ].map(escapeControls);
  if (changes.length === 0)
    return {
      document: { cell: before, changed: false, dry_run: dryRun === true },
      text: () => `Cell ${id} has these values already. Nothing was changed.`,
    };
  const summary = changes.join(", ");
  if (dryRun === true)
    return {
      document: { cell: before, changes, changed: false, dry_run: true },
      text: () => `Would change cell ${id}: ${summary}`,
      notes: ["Nothing was changed."],
    };
  const effect = `This changes cell ${id}: ${summary}, because: ${reason}`;
  await confirm(context, options, { name: id, effect });
  const cell = await client.cells.change(id, { name, address, reason });
  const undo = `${commandLine("cells", "set", id, ...undoOf(options, before))} --reason TEXT`;
  return {
    document: { cell, changes, changed: true, dry_run: false, undo },
    text: () => `Changed cell ${id}: ${summary}`,
    notes: [`To undo it: ${undo}`],
  };
}

const undoOf = (
  { name, address }: SetOptions,
  before: { name: string; address: string },
): (string | undefined)[] => [
  ...(name === undefined ? [] : ["--name", before.name]),
  ...(address === undefined ? [] : ["--address", before.address]),
];

/**
 * Finds a cell, also a removed one.
 *
 * @throws an error with the exit code 4 if there is no such cell
 */
export async function findCell(client: Client, id: string): Promise<Cell> {
  for await (const cell of client.cells.list({ includeRemoved: true })) if (cell.cell_id === id) return cell;
  throw new CommandError(`there is no cell ${id}`, exitCodes.notFound, ["leasehold cells ls"]);
}
