import type { Principal } from "../../../auth/principal.ts";
import { HISTORY_HEADER } from "../history.ts";
import type { HistoryPoint, Told } from "../../../kernel/messages.ts";
import { ok, refused, type Result } from "../../../kernel/refusal.ts";
import { reach } from "../../../isolate/reach.ts";

/**
 * The form of the header with which a ledger tells its cell how far it has got, and the cell sends it back
 * (L7). Callers compare and store it, so the form must not change.
 */
export const HISTORY_FORM = /^([1-9]\d{0,15})\.(0|[1-9]\d{0,15})$/;

export const historyHeaderOf = ({ incarnation, position }: HistoryPoint): string =>
  `${incarnation}.${position}`;

/** Reads the header of a request. Undefined if it has none. */
export function readHistoryHeader(given: string | undefined): Result<HistoryPoint | undefined> {
  if (given === undefined) return ok(undefined);
  const [, incarnation = NaN, position = NaN] = (HISTORY_FORM.exec(given) ?? []).map(Number);
  return Number.isSafeInteger(incarnation) && Number.isSafeInteger(position)
    ? ok({ incarnation, position })
    : refused(
        "INVALID_ARGUMENT",
        `\`${HISTORY_HEADER}\` must be a value that this API answered, such as 16777217.42; or leave it out`,
        { field: HISTORY_HEADER },
      );
}

/**
 * What a call tells the ledger. Only a cell's own calls count: an operator is not the cell, and a wrong point
 * makes the ledger refuse everything (H4).
 */
export const seenBy = ({ role }: Principal, seen: HistoryPoint | undefined): { seen?: HistoryPoint } =>
  role === "cell" && seen !== undefined ? { seen } : {};

interface Pointed<T> {
  value: T;
  headers: Record<string, string>;
}

/** Calls a ledger as `reach` does. The answer to a cell has the header of the ledger's newest point. */
export async function reachLedger<T>(
  { role }: Principal,
  ...[timeoutMs, target, work]: Parameters<typeof reach<T>>
): Promise<Result<Pointed<T>>> {
  let headers: Record<string, string> = {};
  const result = await reach<T>(timeoutMs, target, async (): Promise<Result<T>> => {
    const reply: Result<T> & Told = await work();
    const { point } = reply;
    // A refusal may come before the caller's point was compared.
    if (reply.ok && role === "cell" && point !== undefined)
      headers = { [HISTORY_HEADER]: historyHeaderOf(point) };
    return reply;
  });
  return result.ok ? ok({ value: result.value, headers }) : result;
}
