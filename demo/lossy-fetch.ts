import type { Fetch } from "../src/client/index.ts";
import { Random } from "./random.ts";

/**
 * A network that loses answers: the request is executed, and the caller hears of nothing but a broken
 * connection. Whether an answer is lost follows from the seed, the call and how often it was made, whatever
 * else is under way.
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
    // The whole answer: the coordinator is done with the request.
    await response.text();
    lost(response.status);
    throw new TypeError("the connection broke before the answer arrived (the demo's doing)");
  };
}
