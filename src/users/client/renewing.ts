import type { Answer, Refused } from "./answer.ts";
import { MAX_TIMER_MS } from "./attempt-abort.ts";
import { errorOf } from "./errors.ts";

export interface RenewingOptions {
  /** What the cell does, for operators. */
  reason: string | (() => string);
  /** The pause between two renewals: 2 min by default. */
  everyMs?: number | undefined;
}

const EVERY_MS = 120_000;

/** Renews until the work ends, or until further renewals would be in vain. */
export async function whileRenewing<T>(
  renew: (reason: string) => Promise<Answer<unknown>>,
  { reason, everyMs = EVERY_MS }: RenewingOptions,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const inVain = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let hasEnded = false;
  const renewLater = (): void => {
    timer = setTimeout(() => void renewNow(), Math.min(MAX_TIMER_MS, everyMs));
  };
  // Nobody waits for it, so whatever is thrown goes to the work.
  const renewNow = async (): Promise<void> => {
    try {
      const answer = await renew(typeof reason === "string" ? reason : reason());
      if (hasEnded || isCommitted(answer)) return;
      if (endsWork(answer)) inVain.abort(errorOf(answer));
      else renewLater();
    } catch (error) {
      inVain.abort(error);
    }
  };
  renewLater();
  try {
    return await work(inVain.signal);
  } finally {
    hasEnded = true;
    clearTimeout(timer);
  }
}

/** What the work has saved stays, so it may go on, but a decision is final. */
const isCommitted = (answer: Answer<unknown>): boolean =>
  answer.kind === "refused" && answer.reason === "LEASE_COMMITTED";

/**
 * Whether the lease is lost, or the reason is not valid. After any other refusal, and an unknown outcome, the
 * next renewal may succeed: the key may be replaced, or the ledger reconciled.
 */
const endsWork = (answer: Answer<unknown>): answer is Refused =>
  answer.kind === "refused" &&
  (answer.reason === "LEASE_ROLLED_BACK" ||
    (answer.code === "NOT_FOUND" && answer.reason === undefined) ||
    answer.code === "INVALID_ARGUMENT");
