import type { Principal } from "../auth/principal.ts";
import { keyExpired } from "../auth/verifier.ts";
import { FORMAT } from "../kernel/formats.ts";
import { callOfRemovedCell } from "../kernel/cell-removed.ts";
import { refused, type Refusal } from "../kernel/refusal.ts";
import { DirectoryCopies } from "../d1/directory-copies.ts";
import type { WaitUntil } from "../runtime.ts";
import type { Route } from "./contract/route.ts";
import type { Deployment } from "../isolate/deployment.ts";
import { DIRECTORY, reach, readTimeoutMs } from "../isolate/reach.ts";

/**
 * Refuses a revoked key, and a cell that is not registered. It reads nothing for a cell's own key on the
 * cell's own paths, because the cell's ledger checks that key itself (A1). Such a key is only refused for
 * what the copy of the directory has: that the cell was removed, for a ledger that went back in time (X5), or
 * that the key was revoked, for a revocation that was sent to no ledger or to that of another cell (A4). All
 * other keys are checked against the directory. An operator may name any cell, and the first call of an
 * object creates it, so no ledger is called for a cell that is not registered.
 *
 * @param isAboutParts the call is one that operators need to reconcile parts
 */
export async function accessRefusal(
  deployment: Deployment,
  principal: Principal | null,
  cell: string | undefined,
  isAboutParts: boolean,
  waitUntil: WaitUntil,
): Promise<Refusal | undefined> {
  if (principal === null) return undefined;
  if (principal.role === "cell" && cell !== undefined) {
    if (deployment.directory.isKnownAsRemoved(cell)) return callOfRemovedCell;
    return deployment.directory.isKnownAsRevoked(principal.keyId) ? keyRevoked() : undefined;
  }
  const view = await deployment.directory.view(waitUntil);
  if (!view.ok)
    return isAboutParts && view.refusal.reason === "HISTORY_LOST"
      ? lostRevocationRefusal(deployment, principal)
      : view.refusal;
  if (view.value.revokedKeys.has(principal.keyId)) return keyRevoked();
  if (principal.cell !== null && view.value.removedCells.has(principal.cell)) return callOfRemovedCell;
  // Such a key may have been revoked and forgotten, whatever this isolate's clock says (A1).
  if (principal.expiresAtMs <= view.value.revokedThroughMs) return keyExpired.refusal;
  if (cell === undefined) return undefined;
  const registered = await deployment.directory.cell(cell, waitUntil);
  return registered.ok ? undefined : registered.refusal;
}

/** Refuses a route whose format is not in force, and everything if this code does not speak that (M9). */
export async function formatRefusal(
  { directory, format: known }: Deployment,
  { format = 0, roles }: Route,
  waitUntil: WaitUntil,
): Promise<Refusal | undefined> {
  if (roles === "anyone") return undefined;
  if (known.format > FORMAT)
    return refused(
      "UNAVAILABLE",
      `this Worker runs an older version, which does not speak format ${known.format}; repeat the call`,
      { reason: "FORMAT_UNKNOWN", retryAfterMs: 1_000 },
    ).refusal;
  if (format <= known.format) return undefined;
  // Another isolate may have finished the upgrade, which the directory tells with its answer.
  const read = await directory.recentView(waitUntil);
  if (!read.ok) return read.refusal;
  if (format <= known.format) return undefined;
  return refused(
    "FAILED_PRECONDITION",
    "this works once operators have finished the upgrade of the deployment (`leasehold upgrade finish`)",
    { reason: "UPGRADE_UNFINISHED" },
  ).refusal;
}

/**
 * Lets operators reconcile a directory that has gone back in time. It may have lost revocations, so the key
 * must not be revoked according to the rows that are left, nor according to the copies in D1 (H8).
 */
async function lostRevocationRefusal(
  { objects, envelope, config, env }: Deployment,
  { keyId, expiresAtMs }: Principal,
): Promise<Refusal | undefined> {
  const [left, copied] = await Promise.all([
    reach(readTimeoutMs(config.limits), { name: DIRECTORY }, () =>
      objects.directory().isRevoked({ ...envelope, keyId, expiresAtMs }),
    ),
    new DirectoryCopies(env).isRevoked(keyId),
  ]);
  if (!left.ok) return left.refusal;
  if (!copied.ok) return copied.refusal;
  return left.value || copied.value ? keyRevoked() : undefined;
}

const keyRevoked = (): Refusal =>
  refused("UNAUTHENTICATED", "the key was revoked; use another key", { reason: "KEY_REVOKED" }).refusal;

export const notAllowed = ({ role, cell }: Principal): string =>
  role === "cell"
    ? `a key of cell ${cell} may not call this route`
    : `a key of the role ${role} may not call this route`;
