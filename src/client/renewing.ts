import type { Answer } from "./answer.ts";
import { errorOf } from "./errors.ts";

export interface RenewingOptions {
  /** What the cell does, for operators. */
  reason: string | (() => string);
  /** The pause between two renewals: 2 min by default. */
  everyMs?: number | undefined;
}

const EVERY_MS = 120_000;

/** Renews until the work ends, or until a renewal is refused, which aborts the work. */
export async function whileRenewing<T>(
  renew: (reason: string) => Promise<Answer<unknown>>,
  { reason, everyMs = EVERY_MS }: RenewingOptions,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const inVain = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let hasEnded = false;
  const renewLater = (): void => {
    timer = setTimeout(() => void renewNow(), everyMs);
  };
  const renewNow = async (): Promise<void> => {
    const answer = await renew(typeof reason === "string" ? reason : reason());
    if (hasEnded) return;
    // After an unknown outcome, and a refusal for load, the next renewal is soon enough.
    if (answer.kind === "refused" && !answer.retryable) inVain.abort(errorOf(answer));
    else renewLater();
  };
  renewLater();
  try {
    return await work(inVain.signal);
  } finally {
    hasEnded = true;
    clearTimeout(timer);
  }
}
