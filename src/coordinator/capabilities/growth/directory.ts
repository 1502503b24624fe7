import {
  hasCopied,
  type AbortGrowth,
  type ConfirmCut,
  type CutGrowth,
  type FinishGrowth,
  type Growth,
  type GrowthCopy,
  type StartGrowth,
} from "./messages.ts";
import { operationRunning } from "../operations/messages.ts";
import { inTheWayOf, type Operation } from "../operations/operations.ts";
import { MAX_SHARDS, placementOf, shardsOf } from "../../kernel/placement.ts";
import { ok, refused, type Result } from "../../kernel/refusal.ts";
import { operationsIn, runningOperations } from "../operations/directory.ts";
import type { DirectoryPart } from "../../kernel/directory/part.ts";
import { MAX_BELIEVED } from "../../kernel/instances.ts";

declare module "../../kernel/audit-trail.ts" {
  interface AuditedActions {
    start_growth: true;
    cut_growth: true;
    abort_growth: true;
  }
}

// How the directory gets a deployment from one number of shards to a larger one (G1, G2). Runs inside a
// transaction.

type Stored = Pick<DirectoryPart, "store">;
type Audited = Pick<DirectoryPart, "store" | "audit">;

interface GrowthRecord {
  /** The position of the last change of a growth. */
  position: number;
  /** The growth that runs. Null: none. */
  growth: Growth | null;
}

const NONE: GrowthRecord = { position: 0, growth: null };

export const growthIn = ({ store }: Stored): GrowthRecord => store.setting("growth", NONE);

function setGrowth({ store }: Stored, growth: Omit<Growth, "position">): Growth {
  const changed = { ...growth, position: store.position + 1 };
  store.putSetting("growth", { growth: changed });
  return changed;
}

const endGrowth = ({ store }: Stored): unknown => store.putSetting("growth", { growth: null });

/** What an audit entry calls the growth. */
const TARGET = "shards";

/** Starts a growth, unless an operation is in its way (A5). A repeated call answers the same growth. */
export function startGrowth(
  part: Pick<DirectoryPart, "store" | "audit" | "hooks">,
  { to: shards, operator, placement }: StartGrowth,
  id: string,
  startedAtMs: number,
): Result<Growth> {
  const { store } = part;
  const { growth } = growthIn(part);
  const from = shardsOf(store.placement ?? placement);
  if (growth?.to === shards && growth.phase === "copying") return ok(growth);
  const other = inTheWayOf({ kind: "growth", id }, runningOperations(part));
  if (other !== undefined) return operationRunning(other);
  if (store.placement === undefined)
    return refused("UNAVAILABLE", "no cell is registered yet; an operator must register the first one", {
      reason: "NO_CELLS",
    });
  if (!Number.isInteger(shards) || shards <= from || shards > MAX_SHARDS)
    return refused(
      "INVALID_ARGUMENT",
      `\`shards\` must be a whole number from ${from + 1} to ${MAX_SHARDS}: the deployment has ${from}`,
      { field: "shards" },
    );
  const started = setGrowth(part, {
    id,
    from,
    to: shards,
    phase: "copying",
    startedAtMs,
    startedBy: operator.keyId,
    cutAtMs: null,
  });
  part.audit.current.append(operator, {
    action: "start_growth",
    cell: null,
    target: TARGET,
    before: { shards: from },
    after: { shards: from, growing_to: shards },
  });
  return ok(started);
}

/**
 * Orders the cut, if each shard of before has said that it has copied its names, and none is reconciled (G1).
 * From here on, the growth cannot be aborted, because D1 may have a copy of it (G2).
 */
export function orderCut(
  part: Audited,
  { id, sources, operator }: CutGrowth,
  cutAtMs: number,
): Result<Growth> {
  const { growth } = growthIn(part);
  if (growth?.id !== id) return growthUnknown();
  if (growth.phase !== "copying") return ok(growth);
  const reconciled = operationsIn(part).operations.find(({ kind }) => kind === "reconciliation");
  if (reconciled !== undefined) return operationRunning(reconciled);
  for (let shard = 0; shard < growth.from; shard += 1)
    if (!sources.some((source) => source.shard === shard && hasCopied(growth, source)))
      return refused("FAILED_PRECONDITION", `shard ${shard} has not said that it has copied its names`, {
        reason: "GROWTH_NOT_COPIED",
      });
  const cut = setGrowth(part, { ...growth, phase: "cutting", cutAtMs });
  part.audit.current.append(operator, {
    action: "cut_growth",
    cell: null,
    target: TARGET,
    before: { shards: growth.from, growing_to: growth.to },
    after: { shards: growth.to },
  });
  return ok(cut);
}

/** Puts the new placement in force, once D1 has a copy of the growth. Nobody was told of it before (G2). */
export function confirmCut(part: Stored, { id, growthCopiedAt }: ConfirmCut): Result<Growth> {
  const { growth } = growthIn(part);
  if (growth?.id !== id) return growthUnknown();
  if (growth.phase === "cut") return ok(growth);
  if (growth.phase === "copying" || growthCopiedAt < growth.position)
    return refused("UNAVAILABLE", "the growth was changed a moment ago; copy it to D1, and repeat the call", {
      retryAfterMs: 1_000,
    });
  part.store.setPlacement(placementOf(growth.to));
  return ok(setGrowth(part, { ...growth, phase: "cut" }));
}

/** Ends a growth that was not cut. A repeated call has no effect. */
export function abortGrowth(part: Audited, { id, operator }: AbortGrowth): Result<null> {
  const { growth } = growthIn(part);
  if (growth === null) return ok(null);
  if (growth.id !== id) return growthUnknown();
  if (growth.phase !== "copying")
    return refused("FAILED_PRECONDITION", "the growth was cut, so it goes on to its end", {
      reason: "GROWTH_CUT",
    });
  endGrowth(part);
  part.audit.current.append(operator, {
    action: "abort_growth",
    cell: null,
    target: TARGET,
    before: { shards: growth.from, growing_to: growth.to },
    after: { shards: growth.from },
  });
  return ok(null);
}

/** Ends a growth that all shards have carried out. */
export function finishGrowth(part: Stored, { id }: FinishGrowth): Result<null> {
  const { growth } = growthIn(part);
  if (growth?.id !== id) return ok(null);
  if (growth.phase !== "cut")
    return refused("FAILED_PRECONDITION", "the growth was not cut, so it has not ended");
  endGrowth(part);
  return ok(null);
}

const growthUnknown = (): Result<never> =>
  refused("FAILED_PRECONDITION", "this growth does not run any more; read which one does", {
    reason: "GROWTH_UNKNOWN",
  });

/** The growth as an operation (A5). */
export function growthOperation(part: Stored): Operation[] {
  const { growth } = growthIn(part);
  if (growth === null) return [];
  const { id, startedAtMs, startedBy, position } = growth;
  return [{ id, kind: "growth", about: "shards", startedAtMs, startedBy, position }];
}

/**
 * Takes over a growth from D1 that is newer than the one that is left. Once the cut was ordered, it may have
 * been told, because D1 has a copy (G2). One that was aborted stays so.
 */
export function restoreGrowth(part: Stored, copy: GrowthCopy): void {
  const { store } = part;
  const { isAborted = false, isDropped: _, ...growth } = copy;
  const own = growthIn(part);
  if (isAborted && own.growth?.id === growth.id) {
    endGrowth(part);
    return;
  }
  if (growth.position <= own.position) return;
  store.raiseTo(Math.min(growth.position, MAX_BELIEVED));
  const isCut = growth.phase !== "copying";
  store.setPlacement(placementOf(isCut ? growth.to : growth.from));
  if (isAborted) endGrowth(part);
  else setGrowth(part, { ...growth, phase: isCut ? "cut" : "copying" });
}
