import { v4 as newUuid } from "uuid";
import type { Principal } from "../../auth/principal.ts";
import type { Caller, CellCall, HistoryPoint } from "../../kernel/messages.ts";
import { ok, type ErrorCode, type Result } from "../../kernel/refusal.ts";
import type { TransferParty } from "../../capabilities/transfer/range.ts";
import type { Deployment } from "../../isolate/deployment.ts";
import type { WaitUntil } from "../../runtime.ts";
import { reachLedger, seenBy } from "../../capabilities/loss/edge/history-header.ts";
import { LEDGER, reach, readTimeoutMs, withFailure } from "../../isolate/reach.ts";

/**
 * The caller in the core's terms. Routers never get here, because no route that calls a ledger allows them. A
 * viewer reads as an operator does, and no route that changes a ledger allows it.
 */
const callerOf = ({ role, keyId, expiresAtMs }: Principal): Caller => ({
  role: role === "cell" ? "cell" : "operator",
  keyId,
  expiresAtMs,
});

/** The fields of every call to a ledger. */
export const askerOf = (
  { envelope }: Deployment,
  principal: Principal,
  seen: HistoryPoint | undefined,
): CellCall => ({ ...envelope, ...seenBy(principal, seen), caller: callerOf(principal) });

/**
 * Turns an unknown cell into NOT_FOUND for operators and viewers, because they may name any cell. A cell's
 * own key keeps PERMISSION_DENIED.
 */
function withCellNotFound<T>(result: Result<T>, { role }: Principal): Result<T> {
  if (result.ok || role === "cell" || result.refusal.reason !== "CELL_UNKNOWN") return result;
  return withFailure(result, { code: "NOT_FOUND" });
}

/** Calls the cell's ledger about leases. `advice` is for a caller that does not learn the outcome. */
export async function askLedger<T>(
  principal: Principal,
  timeoutMs: number,
  work: () => Promise<Result<T>>,
  advice?: string,
): ReturnType<typeof reachLedger<T>> {
  const target = { name: LEDGER, ...(advice === undefined ? {} : { advice }) };
  return withCellNotFound(await reachLedger(principal, timeoutMs, target, work), principal);
}

/**
 * Calls the ledger of a transfer's destination. Its point is only for its own cell: another cell would take
 * it for a point of its own ledger (L7).
 */
export async function askDestination<T>(
  principal: Principal,
  party: TransferParty,
  ...[timeoutMs, target, work]: Parameters<typeof reach<T>>
): ReturnType<typeof reachLedger<T>> {
  if (party === "to") return reachLedger(principal, timeoutMs, target, work);
  const answer = await reach(timeoutMs, target, work);
  return answer.ok ? ok({ value: answer.value, headers: {} }) : answer;
}

/**
 * Asks the cell's ledger whether the caller's key is still valid, for calls that the ledger itself doesn't
 * serve (A1).
 */
export async function authorize(
  deployment: Deployment,
  principal: Principal,
  cell: string,
  read?: string,
): Promise<Result<null>> {
  const request = {
    ...deployment.envelope,
    caller: callerOf(principal),
    ...(read === undefined ? {} : { read }),
  };
  const answer = await reach(readTimeoutMs(deployment.config.limits), { name: LEDGER }, () =>
    deployment.objects.ledger(cell).authorize(request),
  );
  return withCellNotFound(answer, principal);
}

/** The messages to the ledger for one read: before it, and when it has ended. */
export const READ_CALLS = 2;

interface ReadCall {
  deployment: Deployment;
  waitUntil: WaitUntil;
  principal: Principal;
  params: { cell: string };
}

/**
 * Runs a read that the shards answer, if the caller's key is valid and not too many reads of the cell are
 * running. The ledger counts them, because isolates don't know of each other. The answer doesn't wait until
 * the ledger knows that the read has ended. The runtime keeps the work of a cancelled request, so that the
 * ledger is told in that case too.
 */
export function countedRead<T>(
  { deployment, waitUntil, principal, params: { cell } }: ReadCall,
  work: () => Promise<Result<T>>,
): Promise<Result<T>> {
  const read = newUuid();
  const end = (): Promise<unknown> =>
    reach(readTimeoutMs(deployment.config.limits), { name: LEDGER }, () =>
      deployment.objects.ledger(cell).endRead({ ...deployment.envelope, read }),
    );
  const run = async (): Promise<Result<T>> => {
    const authorized = await authorize(deployment, principal, cell, read);
    if (!authorized.ok) {
      // Without an answer, the ledger may have counted the read.
      if (UNSURE.has(authorized.refusal.code)) waitUntil(end());
      return authorized;
    }
    try {
      return await work();
    } finally {
      waitUntil(end());
    }
  };
  const running = run();
  waitUntil(running.catch(() => {}));
  return running;
}

const UNSURE: ReadonlySet<ErrorCode> = new Set(["UNAVAILABLE", "DEADLINE_EXCEEDED"]);
