import type { Principal } from "../../auth/principal.ts";
import type { Caller } from "../../core/messages.ts";
import type { Result } from "../../core/refusal.ts";
import type { Deployment } from "../deployment.ts";
import { reach, readTimeoutMs, withFailure } from "../reach.ts";

export const LEDGER = "the cell's ledger";

/** How the core knows the caller. Routers are not let in here. */
export const callerOf = ({ role, keyId }: Principal): Caller => ({
  role: role === "operator" ? "operator" : "cell",
  keyId,
});

/** An operator may name any cell, so that one which is not registered is not found; a cell key was made for a cell that is. */
export function withCellNotFound<T>(result: Result<T>, { role }: Principal): Result<T> {
  if (result.ok || role !== "operator" || result.refusal.reason !== "CELL_UNKNOWN") return result;
  return withFailure(result, { code: "NOT_FOUND" });
}

/** Whether the caller's key still holds, for reads of a cell that its ledger does not answer itself. */
export async function authorize(
  deployment: Deployment,
  principal: Principal,
  cell: string,
): Promise<Result<null>> {
  const request = { ...deployment.envelope, caller: callerOf(principal) };
  const answer = await reach(readTimeoutMs(deployment.config.limits), { name: LEDGER }, () =>
    deployment.objects.ledger(cell).authorize(request),
  );
  return withCellNotFound(answer, principal);
}
