import { idFault } from "../../../../common/ids.ts";
import { ok, refused, type Result } from "../../../kernel/refusal.ts";
import type { TransferParty, TransferRange } from "../range.ts";
import { invalid } from "../../../api/batch.ts";
import type { Call } from "../../../api/handler.ts";
import type { transferRoutes } from "./routes.ts";
import { authorize } from "../../../api/handlers/ledger-access.ts";

interface MovedClaims extends TransferRange {
  to: string;
  party: TransferParty;
}

type MovingCall = Call<(typeof transferRoutes)["planTransfer" | "prepareTransfer"]>;

/** What a call says that it moves. The source is the caller's cell, unless an operator calls. */
export function movedClaimsOf({ deployment, principal, body }: MovingCall): Result<MovedClaims> {
  const { to, scope } = body;
  const from = body.from ?? principal.cell;
  if (from === null) return invalid("from", "is required of operators; say which cell has the claims");
  if (principal.cell !== null && from !== principal.cell)
    return refused(
      "PERMISSION_DENIED",
      `a key of cell ${principal.cell} may not move the claims of another cell`,
    );
  if (from === to) return invalid("to", "must be another cell than `from`");
  const fault = idFault(scope, deployment.config.limits);
  if (fault !== undefined) return invalid("scope", fault);
  return ok({ from, to, scope, party: principal.cell === null ? "operator" : "from" });
}

/** Checks that both cells are registered, and with the source's ledger that a key of the source is valid. */
export async function authorizeMove(
  { deployment, waitUntil, principal }: MovingCall,
  { from, to }: MovedClaims,
): Promise<Result<unknown>> {
  for (const cell of [from, to]) {
    const registered = await deployment.directory.cell(cell, waitUntil);
    if (!registered.ok) return registered;
  }
  // The ledger of the destination doesn't know the keys of the source (Y7).
  return principal.cell === null ? ok(null) : authorize(deployment, principal, from);
}
