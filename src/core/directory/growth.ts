import type { Audit } from "../audit.ts";
import type { ChangeGrowth, ConfirmCut, FinishGrowth, Growth, StartGrowth } from "../growth/messages.ts";
import type { Reply } from "../messages.ts";
import { MAX_SHARDS, placementOf, shardsOf } from "../placement.ts";
import { ok, refused } from "../refusal.ts";
import type { DirectoryStore } from "./store.ts";

// How the directory gets a deployment from one number of shards to a larger one (G1, G2). Runs inside a
// transaction.

/** What an audit entry calls the growth. */
const TARGET = "shards";

/** Starts a growth, unless another one runs. A repeated call answers the one that it has started. */
export function startGrowth(
  store: DirectoryStore,
  audit: Audit,
  { to: shards, operator, placement }: StartGrowth,
  id: string,
  startedAtMs: number,
): Reply<Growth> {
  const { growth } = store;
  const from = shardsOf(store.placement ?? placement);
  if (growth !== null) {
    if (growth.to === shards && growth.phase === "copying") return ok(growth);
    return refused(
      "FAILED_PRECONDITION",
      `the deployment is growing to ${growth.to} shards; wait for it, or abort it before the cut`,
      { reason: "GROWTH_RUNNING" },
    );
  }
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
  const started = store.setGrowth({ id, from, to: shards, phase: "copying", startedAtMs, cutAtMs: null });
  audit.append(operator, {
    action: "start_growth",
    cell: null,
    target: TARGET,
    before: { shards: from },
    after: { shards: from, growing_to: shards },
  });
  return ok(started);
}

/** Orders the cut. From here on, the growth cannot be aborted, because D1 may have a copy of it (G2). */
export function orderCut(
  store: DirectoryStore,
  audit: Audit,
  { id, operator }: ChangeGrowth,
  cutAtMs: number,
): Reply<Growth> {
  const { growth } = store;
  if (growth?.id !== id) return growthUnknown();
  if (growth.phase !== "copying") return ok(growth);
  const cut = store.setGrowth({ ...growth, phase: "cutting", cutAtMs });
  audit.append(operator, {
    action: "cut_growth",
    cell: null,
    target: TARGET,
    before: { shards: growth.from, growing_to: growth.to },
    after: { shards: growth.to },
  });
  return ok(cut);
}

/** Puts the new placement in force, once D1 has a copy of the growth. Nobody was told of it before (G2). */
export function confirmCut(store: DirectoryStore, { id, growthCopiedAt }: ConfirmCut): Reply<Growth> {
  const { growth } = store;
  if (growth?.id !== id) return growthUnknown();
  if (growth.phase === "cut") return ok(growth);
  if (growth.phase === "copying" || growthCopiedAt < growth.position)
    return refused("UNAVAILABLE", "the growth was changed a moment ago; copy it to D1, and repeat the call", {
      retryAfterMs: 1_000,
    });
  store.setPlacement(placementOf(growth.to));
  return ok(store.setGrowth({ ...growth, phase: "cut" }));
}

/** Ends a growth that was not cut. A repeated call has no effect. */
export function abortGrowth(
  store: DirectoryStore,
  audit: Audit,
  { id, operator }: ChangeGrowth,
): Reply<null> {
  const { growth } = store;
  if (growth === null) return ok(null);
  if (growth.id !== id) return growthUnknown();
  if (growth.phase !== "copying")
    return refused("FAILED_PRECONDITION", "the growth was cut, so it goes on to its end", {
      reason: "GROWTH_CUT",
    });
  store.endGrowth();
  audit.append(operator, {
    action: "abort_growth",
    cell: null,
    target: TARGET,
    before: { shards: growth.from, growing_to: growth.to },
    after: { shards: growth.from },
  });
  return ok(null);
}

/** Ends a growth that all shards have carried out. */
export function finishGrowth(store: DirectoryStore, { id }: FinishGrowth): Reply<null> {
  const { growth } = store;
  if (growth?.id !== id) return ok(null);
  if (growth.phase !== "cut")
    return refused("FAILED_PRECONDITION", "the growth was not cut, so it has not ended", {
      reason: "GROWTH_RUNNING",
    });
  store.endGrowth();
  return ok(null);
}

const growthUnknown = (): Reply<never> =>
  refused("FAILED_PRECONDITION", "this growth does not run any more; read which one does", {
    reason: "GROWTH_UNKNOWN",
  });
