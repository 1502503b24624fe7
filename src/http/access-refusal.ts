import type { Principal } from "../auth/principal.ts";
import { keyExpired } from "../auth/verifier.ts";
import { refused, type Refusal } from "../core/refusal.ts";
import type { WaitUntil } from "../runtime.ts";
import type { Deployment } from "./deployment.ts";

/**
 * Refuses a revoked key, and a cell that is not registered. It skips a cell's own key on the cell's own
 * paths, because the cell's ledger checks that key itself (A1). All other keys are checked against the
 * directory. An operator may name any cell, and the first call of an object creates it, so no ledger is
 * called for a cell that is not registered.
 */
export async function accessRefusal(
  deployment: Deployment,
  principal: Principal | null,
  cell: string | undefined,
  waitUntil: WaitUntil,
): Promise<Refusal | undefined> {
  if (principal === null || (principal.role === "cell" && cell !== undefined)) return undefined;
  const view = await deployment.directory.view(waitUntil);
  if (!view.ok) return view.refusal;
  if (view.value.revokedKeys.has(principal.keyId))
    return refused("UNAUTHENTICATED", "the key was revoked; use another key", { reason: "KEY_REVOKED" })
      .refusal;
  // Such a key may have been revoked and forgotten, whatever this isolate's clock says (A1).
  if (principal.expiresAtMs <= view.value.revokedThroughMs) return keyExpired.refusal;
  if (cell === undefined) return undefined;
  const registered = await deployment.directory.cell(cell, waitUntil);
  return registered.ok ? undefined : registered.refusal;
}
