import type { Answer, Clock } from "./ports.ts";
import type { Result } from "./refusal.ts";

/**
 * Calls a peer and waits for its answer for at most `timeoutMs`. A timeout or an error gives `unknown` (M2),
 * because the peer may still carry out the call, now or much later.
 */
export function ask<T>(
  clock: Pick<Clock, "after">,
  timeoutMs: number,
  call: () => Promise<Result<T>>,
): Promise<Answer<T>> {
  return new Promise((resolve) => {
    const cancel = clock.after(timeoutMs, () =>
      resolve({ kind: "unknown", cause: "the peer did not answer in time", timedOut: true }),
    );
    const resolveOnce = (answer: Answer<T>): void => {
      cancel();
      resolve(answer);
    };
    // The `async` function also turns a call that throws synchronously into a rejected promise.
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
