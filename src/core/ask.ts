import type { Answer, Clock } from "./ports.ts";
import type { Reply } from "./messages.ts";

/**
 * Waits for a peer, but no longer than `timeoutMs`. Whatever is not a clear answer is `unknown` (rule M2): the call may still be
 * carried out, now or much later.
 */
export function ask<T>(
  clock: Pick<Clock, "after">,
  timeoutMs: number,
  call: () => Promise<Reply<T>>,
): Promise<Answer<T>> {
  return new Promise((resolve) => {
    const cancel = clock.after(timeoutMs, () =>
      resolve({ kind: "unknown", cause: "no answer in time", timedOut: true }),
    );
    const resolveOnce = (answer: Answer<T>): void => {
      cancel();
      resolve(answer);
    };
    // `async`: a call that throws before it returns a promise is no different from one that fails later.
    (async () => call())().then(
      (reply) =>
        resolveOnce(
          reply.ok ? { kind: "ok", value: reply.value } : { kind: "refused", refusal: reply.refusal },
        ),
      (error: unknown) =>
        resolveOnce({ kind: "unknown", cause: error instanceof Error ? error.message : String(error) }),
    );
  });
}
