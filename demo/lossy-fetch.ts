import type { Fetch } from "../src/users/client/index.ts";
import { Random } from "./random.ts";

/**
 * A network that loses answers: the coordinator executes the request, but the caller only sees a broken
 * connection. The seed, the call, and the number of earlier identical calls decide whether an answer is lost.
 * Other traffic has no influence on it.
 */
export function lossyFetch(
  fetch: Fetch,
  { rate, seed }: { rate: number; seed: number },
  lost: (status: number) => void,
): Fetch {
  const made = new Map<string, number>();
  return async (url, init) => {
    const call = `${init.method} ${new URL(url).pathname}`;
    const time = made.get(call) ?? 0;
    made.set(call, time + 1);
    const response = await fetch(url, init);
    if (!new Random(seed, call, time).chance(rate)) return response;
    // Reading the whole body makes sure that the coordinator has finished the request.
    await response.text();
    lost(response.status);
    throw new TypeError("the connection broke before the answer arrived (simulated by the demo)");
  };
}
