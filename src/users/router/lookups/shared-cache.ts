import { callHook, type RouterHooks } from "../hooks.ts";
import type { RouterClock } from "./clock.ts";
import type { Entry, FoundEntry, NoneEntry } from "./entries.ts";
import { secondsOf } from "./http-source.ts";
import { originOf } from "./routes.ts";
import { describeError } from "./source.ts";

export interface SharedHit {
  value: string;
  /** How long the value has been in the cache, in milliseconds. It may be too large, but never too small. */
  ageMs: number;
}

/**
 * A cache that routers share, such as `workersCache()`. Only routers may write to it. When it fails or hangs,
 * lookups go on without it.
 */
export interface SharedCache {
  /** Returns undefined when the cache has nothing under the key. Keys are URLs without credentials. */
  get(key: string): Promise<SharedHit | undefined>;
  /** Keeps a value for `ttlMs` milliseconds at most. Its age counts from this call. */
  put(key: string, value: string, ttlMs: number): Promise<void>;
}

interface SharedEntriesOptions {
  cache: SharedCache;
  clock: RouterClock;
  /** Sets the entries of one coordinator apart from those of others in the same cache. */
  coordinator: string;
  ttlMs: number;
  hooks: RouterHooks;
}

/** Longer than a cache close by takes. A lookup then asks the coordinator instead. */
const TIMEOUT_MS = 250;
/** After a failure, the cache is left alone for a while. */
const PAUSE_MS = 1_000;
/** Raise it when the format of the values changes. */
const FORMAT = 1;

/** The entries in a shared cache. No method throws, and none takes longer than 250 ms. */
export class SharedEntries {
  readonly #options: SharedEntriesOptions;
  #pausedUntilMs = -Infinity;

  constructor(options: SharedEntriesOptions) {
    this.#options = options;
  }

  /** The entry of a name, or undefined. Its age counts from when it was asked of the coordinator (Q4). */
  async get(type: string, value: string): Promise<Entry | undefined> {
    const { cache, clock } = this.#options;
    const sentMs = clock.now();
    if (sentMs < this.#pausedUntilMs) return undefined;
    const hit = await this.#guard(() => cache.get(this.#keyOf(type, value)));
    if (hit === undefined) return undefined;
    const entry = decode(hit, sentMs);
    if (entry === undefined) this.#failed("the value of an entry is not valid");
    return entry;
  }

  async put(type: string, value: string, entry: Entry): Promise<void> {
    const { cache, clock, ttlMs } = this.#options;
    const nowMs = clock.now();
    if (nowMs < this.#pausedUntilMs) return;
    const text = encode(entry, nowMs);
    await this.#guard(() => cache.put(this.#keyOf(type, value), text, ttlMs));
  }

  /** Call this when the clock was set back: the end of a pause is then unknown. */
  endPause(): void {
    this.#pausedUntilMs = -Infinity;
  }

  /** The host cannot exist, so no request can ever be answered with an entry. */
  #keyOf(type: string, value: string): string {
    const parts = [this.#options.coordinator, type, value].map((part) => encodeURIComponent(part));
    return `https://routes.leasehold.invalid/${FORMAT}/${parts.join("/")}`;
  }

  #guard<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(TIMEOUT_MS, () => {
        this.#failed(`no answer within ${TIMEOUT_MS} ms`);
        resolve(undefined);
      });
      started(work).then(
        (result) => {
          cancel();
          resolve(result);
        },
        (error: unknown) => {
          cancel();
          this.#failed(describeError(error));
          resolve(undefined);
        },
      );
    });
  }

  #failed(detail: string): void {
    this.#pausedUntilMs = this.#options.clock.now() + PAUSE_MS;
    callHook(this.#options.hooks.onFailure, { operation: "shared_cache", detail });
  }
}

/** A promise in any case: a cache may also throw at once. */
const started = async <Result>(work: () => Promise<Result>): Promise<Result> => work();

type Stored = (Omit<FoundEntry, "sinceMs"> | Omit<NoneEntry, "sinceMs">) & { ageMs: number };

/** The value has the age at this moment, because the clock means nothing to other routers (Q4). */
function encode({ sinceMs, ...entry }: Entry, nowMs: number): string {
  return JSON.stringify({ ...entry, ageMs: nowMs - sinceMs });
}

function decode({ value, ageMs }: SharedHit, sentMs: number): Entry | undefined {
  try {
    const { ageMs: storedAgeMs, ...read } = JSON.parse(value) as Stored;
    const sinceMs = sentMs - storedAgeMs - ageMs;
    // Not even JSON's null for an infinite age passes.
    const isAged = Number.isFinite(storedAgeMs) && storedAgeMs >= 0 && ageMs >= 0;
    return isAged && isEntry(read) ? { ...read, sinceMs } : undefined;
  } catch {
    return undefined;
  }
}

function isEntry(read: Omit<Entry, "sinceMs">): boolean {
  const { kind, key, shard, position, settled } = read;
  if (typeof key !== "string" || !settled) return false;
  if (!Number.isSafeInteger(shard) || !Number.isSafeInteger(position)) return false;
  if (kind === "none") return true;
  const { cell, epoch } = read as Omit<FoundEntry, "sinceMs">;
  return Number.isSafeInteger(epoch) && typeof cell.id === "string" && originOf(cell.address) !== undefined;
}

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
