import type { OperatorCall } from "../messages.ts";
import { type Envelope, type HistoryPoint } from "../messages.ts";
import { cellRemoved } from "../cell-removed.ts";
import { refused, type Refusal, type Result } from "../refusal.ts";
import { shardsOf } from "../placement.ts";
import { placementMismatch } from "../placement-guard.ts";
import { guarded } from "../half.ts";
import type { WritePoint } from "../write-points.ts";
import type { DirectoryPart } from "./part.ts";

/** Carries out an operator's change, if there is room for its audit entry (O3). */
export function operate<T>(
  part: DirectoryPart,
  point: WritePoint,
  message: OperatorCall,
  work: () => Result<T>,
): Promise<Result<T>> {
  return change(part, point, message, () => {
    const full = part.audit.current.refusal;
    return full === undefined ? work() : { ok: false, refusal: full };
  });
}

/** Carries out a change in a transaction. */
export function change<T>(
  part: DirectoryPart,
  point: WritePoint,
  message: Envelope,
  work: () => Result<T>,
): Promise<Result<T>> {
  return part.commits.submit(point, () => {
    // Another first cell may have been registered during the wait, with another placement (M1, P2).
    const refusal = refusePlacement(part, message);
    return refusal === undefined ? work() : { ok: false, refusal };
  });
}

/**
 * Returns why a message is refused that does not fit, or whose sender has seen more than this directory
 * has. A loss is durable before anybody is told of it (H4). It comes before a placement that does not fit,
 * because a directory that went back may have an older one than its callers (G2).
 */
export async function refusalOf(part: DirectoryPart, message: Envelope): Promise<Refusal | undefined> {
  const refusal =
    part.standing.current.admit(message.seen, "a caller") ??
    guarded(part.hooks.guardCopies, message) ??
    refusePlacement(part, message);
  if (part.standing.current.stopped !== undefined) await part.ports.sql.flush();
  return refusal;
}

/** Until the first cell is registered, no placement is fixed, and all fit (P2). */
export function refusePlacement(part: DirectoryPart, { placement }: Envelope): Refusal | undefined {
  const kept = part.store.placement;
  return kept === undefined || kept === placement ? undefined : placementMismatch(kept, placement);
}

export function hasFewerShards(part: DirectoryPart, { placement }: Envelope): boolean {
  const kept = part.store.placement;
  return kept !== undefined && shardsOf(kept) < shardsOf(placement);
}

export const pointOfRows = ({ instances, store }: DirectoryPart): HistoryPoint | null =>
  instances.pointOfRows(store.position) ?? null;

/** Returns why a call of or for a cell is refused: it is not registered, or removed. */
export function refuseWithoutCell(part: DirectoryPart, cell: string): Refusal | undefined {
  const known = part.store.cell(cell);
  if (known === undefined) return cellUnknown(cell).refusal;
  return known.removedAtMs === null ? undefined : cellRemoved(cell).refusal;
}

export const cellUnknown = (cell: string): { ok: false; refusal: Refusal } =>
  refused("NOT_FOUND", `cell ${cell} is not registered; an operator must add it`, { reason: "CELL_UNKNOWN" });
