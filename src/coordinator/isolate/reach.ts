import { ask } from "../kernel/ask.ts";
import type { Limits } from "../../common/limits.ts";
import { refused, type Result } from "../kernel/refusal.ts";
import { wallClock } from "../runtime.ts";
import type { Failure } from "../api/problem.ts";

/**
 * Whom a call asks, for the answer if its outcome is unknown (M2). `name` completes "... cannot be reached"
 * and "... did not answer in time".
 */
interface Target {
  name: string;
  /** What the caller should do then. */
  advice?: string;
}

export const LEDGER = "the cell's ledger";
export const DIRECTORY = "the directory";

/**
 * The timeout of a read. Before an object answers, it may have to ask a ledger, after the question that it
 * has just sent there is answered (B8).
 */
export const readTimeoutMs = ({ inquiryTimeoutMs, exchangeTimeoutMs }: Limits): number =>
  2 * inquiryTimeoutMs + exchangeTimeoutMs;

/** Calls an object. An unknown answer becomes 503, or 504 after the timeout. */
export async function reach<T>(
  timeoutMs: number,
  { name, advice }: Target,
  work: () => Promise<Result<T>>,
): Promise<Result<T>> {
  const answer = await ask(wallClock, timeoutMs, work);
  if (answer.kind === "ok") return { ok: true, value: answer.value };
  if (answer.kind === "refused") return { ok: false, refusal: answer.refusal };
  const more = advice === undefined ? "" : `: ${advice}`;
  return answer.timedOut === true
    ? refused("DEADLINE_EXCEEDED", `${name} did not answer in time${more}`)
    : refused("UNAVAILABLE", `${name} cannot be reached${more}`, { retryAfterMs: 1_000 });
}

/** Adds fields to the refusal of a result. */
/** The error of D1 is only for the log, so this replaces it. */
export const UNREADABLE_PROJECTION = {
  detail: "the projection in D1 cannot be read; try again later",
} as const;

export function withFailure<T>(result: Result<T>, more: Partial<Failure>): Result<T> {
  return result.ok ? result : { ok: false, refusal: { ...result.refusal, ...more } };
}
