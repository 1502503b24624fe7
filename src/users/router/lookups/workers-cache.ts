import { secondsOf } from "./read-body.ts";
import type { SharedCache, SharedHit } from "./shared-cache.ts";

/** The part of a `Cache` of the Cache API that `workersCache` needs. */
export interface RouteCache {
  match(url: string): Promise<Response | undefined>;
  put(url: string, response: Response): Promise<void>;
  delete(url: string): Promise<boolean>;
}

export interface WorkersCacheOptions {
  /** Where the cache is: `caches.default` by default. It is read with the first lookup. */
  cache?: RouteCache | (() => RouteCache | Promise<RouteCache>) | undefined;
  /**
   * The longest time that the cache keeps an entry, in seconds: 120 by default. A hit whose response has no
   * `Age` header counts as that old.
   */
  maxAgeS?: number | undefined;
}

/** Storing takes no longer, or the entry is deleted: its age in the cache counts from the end of it. */
const PUT_MS = 1_000;
const MAX_AGE_S = 86_400;

/**
 * Makes a cache that the isolates of a Worker in one data center share, over the Cache API. It also works in
 * Deno, with `cache: () => caches.open("routes")`.
 *
 * @throws A `TypeError` or `RangeError` that names the option that is wrong.
 * @example
 * ```ts
 * import { createRoutes, workersCache } from "leasehold/router";
 *
 * const routes = createRoutes({
 *   url: "https://leasehold.example.com",
 *   key: "the key of the router",
 *   sharedCache: workersCache(),
 * });
 * ```
 */
export function workersCache({ cache, maxAgeS = 120 }: WorkersCacheOptions = {}): SharedCache {
  if (!Number.isInteger(maxAgeS) || maxAgeS < 1 || maxAgeS > MAX_AGE_S)
    throw new RangeError(`\`maxAgeS\` must be a whole number of seconds from 1 to ${MAX_AGE_S}`);
  const open = async (): Promise<RouteCache> =>
    typeof cache === "function" ? cache() : (cache ?? platform());
  return {
    get: async (key) => readHit(await (await open()).match(key), maxAgeS),
    put: async (key, value, ttlMs) => {
      const opened = await open();
      const startedMs = performance.now();
      const seconds = Math.min(maxAgeS, Math.floor(ttlMs / 1_000));
      if (seconds < 1) return;
      const headers = { "cache-control": `max-age=${seconds}`, "content-type": "application/json" };
      await opened.put(key, new Response(value, { headers }));
      if (performance.now() - startedMs > PUT_MS) await opened.delete(key);
    },
  };
}

async function readHit(response: Response | undefined, maxAgeS: number): Promise<SharedHit | undefined> {
  if (response === undefined) return undefined;
  const ageS = secondsOf(response.headers.get("age"));
  // `Age` has whole seconds, so up to one more may have passed.
  const inCacheMs = ageS === undefined ? maxAgeS * 1_000 : (ageS + 1) * 1_000;
  return { value: await response.text(), ageMs: inCacheMs + PUT_MS };
}

function platform(): RouteCache {
  const { caches } = globalThis as { caches?: { default?: RouteCache } };
  if (caches?.default === undefined) throw new TypeError("this platform has no `caches.default`");
  return caches.default;
}
