import type { AuditState } from "../../kernel/audit-trail.ts";
import { cellUnknown, operate } from "../../kernel/directory/checks.ts";
import type { Cell } from "../../kernel/directory/messages.ts";
import type { DirectoryPart } from "../../kernel/directory/part.ts";
import { method, type Handlers } from "../../kernel/method.ts";
import { changedMeanwhile, ok, refused, type Refusal } from "../../kernel/refusal.ts";
import { cellRemoved } from "../../kernel/cell-removed.ts";
import type { CellChange, NewCell } from "./messages.ts";

export const methods = {
  addCell: method<NewCell, Cell>("peer"),
  changeCell: method<CellChange, Cell>("peer"),
};

/** What carries out the methods, after their checks. */
export const handlersOf = (part: DirectoryPart): Handlers<typeof methods> => ({
  addCell: (message) =>
    operate(part, "add_cell", message, () => {
      const known = part.store.cell(message.cell);
      if (known !== undefined) return known.removedAtMs === null ? cellExists(known) : idOfRemovedCell(known);
      const full = refuseOneMoreCell(part);
      if (full !== undefined) return { ok: false, refusal: full };
      const { cell, name, address, locationHint } = message;
      const now = part.ports.clock.now();
      if (part.store.placement === undefined) {
        part.store.setPlacement(message.placement);
        // A new deployment has nothing of an older format (M9).
        part.tables.raise(part.tables.stamp.speaks);
      }
      const added = {
        cell,
        name,
        address,
        locationHint,
        createdAtMs: now,
        updatedAtMs: now,
        removedAtMs: null,
      };
      part.store.putCell(added);
      part.audit.current.append(message.operator, {
        action: "add_cell",
        cell,
        target: cell,
        before: null,
        after: cellState(added),
      });
      return ok(added);
    }),
  /**
   * Changes a cell, based on the version with `updatedAtMs`. If the cell has changed since, the change is
   * refused (A2).
   */
  changeCell: (message) =>
    operate(part, "change_cell", message, () => {
      const before = part.store.cell(message.cell);
      if (before === undefined) return cellUnknown(message.cell);
      if (before.removedAtMs !== null) return cellRemoved(message.cell);
      const { name = before.name, address = before.address } = message;
      const isSame = name === before.name && address === before.address;
      if (before.updatedAtMs !== message.updatedAtMs && !isSame)
        return changedMeanwhile(`cell ${message.cell}`);
      // A change that changes nothing also makes a new version, so that messages sent before it are refused
      // afterwards (A2).
      const after: Cell = {
        ...before,
        name,
        address,
        updatedAtMs: Math.max(part.ports.clock.now(), before.updatedAtMs + 1),
      };
      part.store.putCell(after);
      if (!isSame)
        part.audit.current.append(message.operator, {
          action: "change_cell",
          cell: after.cell,
          target: after.cell,
          before: cellState(before),
          after: cellState(after),
        });
      return ok(after);
    }),
});

export function countCells(part: DirectoryPart): number {
  const { ids, removed } = part.store.countCells();
  return ids - removed;
}

/** Returns why a cell has no room. A removed cell only takes up its id, which is never used again (X5). */
function refuseOneMoreCell(part: DirectoryPart): Refusal | undefined {
  const { maxCells, maxCellIds } = part.limits;
  if (countCells(part) >= maxCells)
    return refused(
      "RESOURCE_EXHAUSTED",
      `the deployment has reached its limit of ${maxCells} cells (LEASEHOLD_MAX_CELLS)`,
    ).refusal;
  if (part.store.countCells().ids < maxCellIds) return undefined;
  return refused(
    "RESOURCE_EXHAUSTED",
    `${maxCellIds} cells were registered, removed ones included, which is the limit ` +
      "(LEASEHOLD_MAX_CELL_IDS)",
  ).refusal;
}

const cellExists = ({ cell }: Cell): { ok: false; refusal: Refusal } =>
  refused("ALREADY_EXISTS", `cell ${cell} is already registered`, { reason: "CELL_EXISTS" });

const idOfRemovedCell = ({ cell }: Cell): { ok: false; refusal: Refusal } =>
  refused(
    "FAILED_PRECONDITION",
    `cell ${cell} was removed, and its id is never used again; register the new cell with another id`,
    { reason: "CELL_REMOVED", field: "cell_id" },
  );

/** What an audit entry says of a cell (O1). */
const cellState = ({ name, address, locationHint }: Cell): AuditState => ({
  name,
  address,
  location_hint: locationHint,
});
