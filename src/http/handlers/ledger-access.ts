import type { Principal } from "../../auth/principal.ts";
import type { Caller } from "../../core/messages.ts";
import type { Result } from "../../core/refusal.ts";
import type { Deployment } from "../deployment.ts";
import { reach, readTimeoutMs, withFailure } from "../reach.ts";

export const LEDGER = "the cell's ledger";

/**
 * The caller in the core's terms. Routers never get here, because no route that calls a ledger allows them.
 */
export const callerOf = ({ role, keyId }: Principal): Caller => ({
  role: role === "operator" ? "operator" : "cell",
  keyId,
});

/**
 * Turns an unknown cell into NOT_FOUND for operators, because an operator may name any cell. A cell's own key
 * keeps PERMISSION_DENIED.
 */
export function withCellNotFound<T>(result: Result<T>, { role }: Principal): Result<T> {
  if (result.ok || role !== "operator" || result.refusal.reason !== "CELL_UNKNOWN") return result;
  return withFailure(result, { code: "NOT_FOUND" });
}

/**
 * Asks the cell's ledger whether the caller's key is still valid, for calls that the ledger itself doesn't
 * serve (A1).
 */
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
