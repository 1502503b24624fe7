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

/** Runs `work` on every item, at most `width` at a time; results in the order of the items. */
export async function fanOut<Item, T>(
  items: readonly Item[],
  width: number,
  work: (item: Item) => Promise<T>,
): Promise<T[]> {
  const results: T[] = [];
  const queue = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of queue) results[index] = await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, worker));
  return results;
}

/** Lets at most `width` pass at a time; the others wait in order. */
export class Gate {
  readonly #waiting: (() => void)[] = [];
  #room: number;

  constructor(width: number) {
    this.#room = width;
  }

  async pass<T>(work: () => Promise<T>): Promise<T> {
    if (this.#room > 0) this.#room -= 1;
    else await new Promise<void>((enter) => this.#waiting.push(enter));
    try {
      return await work();
    } finally {
      // The room goes straight to the next in line.
      const next = this.#waiting.shift();
      if (next === undefined) this.#room += 1;
      else next();
    }
  }
}
