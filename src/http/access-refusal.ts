import type { Principal } from "../auth/principal.ts";
import { refused, type Refusal } from "../core/refusal.ts";
import type { Deployment } from "./deployment.ts";

/**
 * A cell's ledger knows the cell's revoked keys and is asked anyway; all other uses of keys go by the directory. An operator may name any cell,
 * and a ledger is made by being asked: those of cells that nobody registered are not.
 */
export async function accessRefusal(
  deployment: Deployment,
  principal: Principal | null,
  cell: string | undefined,
): Promise<Refusal | undefined> {
  if (principal === null || (principal.role === "cell" && cell !== undefined)) return undefined;
  const view = await deployment.directory.view();
  if (!view.ok) return view.refusal;
  if (view.value.revokedKeys.has(principal.keyId))
    return refused("UNAUTHENTICATED", "the key was revoked", { reason: "KEY_REVOKED" }).refusal;
  if (cell === undefined) return undefined;
  const registered = await deployment.directory.cell(cell);
  return registered.ok ? undefined : registered.refusal;
}
