import type { RouterHooks } from "../hooks.ts";
import { CachedRoutes } from "./cached-routes.ts";
import { platformClock, type RouterClock } from "./clock.ts";
import { HttpSource, isKey, type RouterFetch } from "./http-source.ts";
import type { Routes } from "./routes.ts";
import type { SharedCache } from "./shared-cache.ts";

export interface RoutesOptions {
  /** The coordinator's URL, without a path. */
  url: string;
  /**
   * A key of the role `router`, or a function that returns it. The function is called before every request,
   * so a running process can change its key.
   */
  key: string | (() => string | Promise<string>);
  /** The platform's `fetch` by default. */
  fetch?: RouterFetch | undefined;
  /** How long an answer is used without a report (T), in milliseconds: 5,000 by default. 0: never. */
  maxAgeMs?: number | undefined;
  /**
   * Whether to read the reports of shards: true by default. They let answers live for minutes, and still make
   * changes visible within `boundMs`.
   */
  reports?: boolean | undefined;
  /** How long an answer is used with reports (W), in milliseconds: 300,000 by default. */
  reportedMaxAgeMs?: number | undefined;
  /** How old a report may be to be used (B), in milliseconds: 2,000 by default. */
  boundMs?: number | undefined;
  /** How long it is remembered that a name does not exist, without a report: 1,000 ms by default. */
  negativeMaxAgeMs?: number | undefined;
  /** How long an answer is used during an outage (G), in milliseconds: 600,000 by default. 0: never. */
  graceMs?: number | undefined;
  /** The most memory for what is remembered, in bytes: 16 MiB by default, at least 64 KiB. */
  memoryBytes?: number | undefined;
  /** The time for one request to the coordinator, in milliseconds: 2,000 by default. */
  timeoutMs?: number | undefined;
  /** A cache that routers share, such as `workersCache()`. None by default. */
  sharedCache?: SharedCache | undefined;
  /** The time, for tests. */
  clock?: RouterClock | undefined;
  /** Callbacks for telemetry, such as `new RouterMetrics().hooks`. */
  hooks?: RouterHooks | undefined;
}

const DAY_MS = 86_400_000;

/** The options in milliseconds and bytes: the default, the smallest and the largest value. */
const numbers = {
  maxAgeMs: [5_000, 0, DAY_MS],
  reportedMaxAgeMs: [300_000, 0, DAY_MS],
  boundMs: [2_000, 0, DAY_MS],
  negativeMaxAgeMs: [1_000, 0, DAY_MS],
  graceMs: [600_000, 0, 7 * DAY_MS],
  memoryBytes: [16 * 2 ** 20, 2 ** 16, 2 ** 32],
  timeoutMs: [2_000, 1, 60_000],
} as const;

/**
 * Makes the lookups of a router: which cell owns a name. It asks the coordinator, and remembers the answers.
 * Every answer was true at some moment no longer ago than `boundMs`, or during the call if the coordinator
 * was asked. Without reports, `maxAgeMs` is the bound.
 *
 * Make one for each process or isolate, and keep it: it remembers nothing from another one.
 *
 * @throws A `TypeError` or `RangeError` that names the option that is wrong.
 * @example
 * ```ts
 * import { createRoutes } from "leasehold/router";
 *
 * const routes = createRoutes({ url: "https://leasehold.example.com", key: "the key of the router" });
 * const answer = await routes.find({ type: "ROUTES", value: "gitlab-org" });
 * if (answer.kind === "found") console.log(answer.cell.address);
 * ```
 */
export function createRoutes(options: RoutesOptions): Routes {
  const { key, reports = true, sharedCache, hooks = {} } = options;
  const url = coordinatorOf(options.url);
  if (typeof key !== "function" && !isKey(key))
    throw new TypeError("`key` must be one line of visible ASCII, or a function that returns it");
  if (typeof reports !== "boolean") throw new TypeError("`reports` must be true or false");
  const given = Object.fromEntries(
    Object.entries(numbers).map(([name, range]) => [
      name,
      numberOf(name, options[name as keyof typeof numbers], range),
    ]),
  ) as Record<keyof typeof numbers, number>;
  const clock = options.clock ?? platformClock;
  // The platform's `fetch` must not be called as a method of another object.
  const send: RouterFetch = options.fetch ?? ((to, init) => fetch(to, init));
  const { timeoutMs } = given;
  return new CachedRoutes({
    ...given,
    reports,
    source: new HttpSource({ url, key, fetch: send, clock, timeoutMs }),
    clock,
    hooks,
    ...(sharedCache === undefined ? {} : { sharedCache: { cache: sharedCache, coordinator: url } }),
  });
}

function coordinatorOf(url: unknown): string {
  const parsed = typeof url === "string" && URL.canParse(url) ? new URL(url) : undefined;
  const isUsable =
    parsed !== undefined &&
    /^https?:$/.test(parsed.protocol) &&
    `${parsed.username}${parsed.password}${parsed.search}${parsed.hash}` === "" &&
    parsed.pathname === "/";
  if (!isUsable) throw new TypeError("`url` must be the coordinator's http or https URL, without a path");
  return parsed.origin;
}

function numberOf(
  name: string,
  given: unknown,
  [fallback, min, max]: readonly [number, number, number],
): number {
  if (given === undefined) return fallback;
  if (typeof given === "number" && given >= min && given <= max) return given;
  throw new RangeError(`\`${name}\` must be a number from ${min} to ${max}`);
}
