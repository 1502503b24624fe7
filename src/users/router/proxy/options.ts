import type { ProxyHooks } from "../hooks.ts";
import { originOf, type Routes } from "../lookups/routes.ts";
import type { Ruleset } from "../rules/types.ts";
import type { ProxyFailure } from "./failure.ts";
import type { DiscardLimits } from "./upload.ts";

/** More addresses than this are read again and again. */
const MAX_KNOWN = 1_024;

/**
 * Returns a function that returns the origin to send requests to, or null if the address of a cell cannot be
 * used: it must be a bare `https` origin, without path, query, user or fragment. A wrong address must not
 * send the requests of users, with their cookies, to another host or without encryption.
 *
 * @param allowLocalHttp also accepts `http` for hosts of this machine
 */
function cellOrigins(allowLocalHttp: boolean): (address: string) => string | null {
  // Every request needs one, and reading an address takes longer than finding it here.
  const known = new Map<string, string | null>();
  return (address) => {
    let origin = known.get(address);
    if (origin !== undefined) return origin;
    origin = cellOrigin(address, allowLocalHttp);
    if (known.size >= MAX_KNOWN) known.clear();
    known.set(address, origin);
    return origin;
  };
}

function cellOrigin(address: string, allowLocalHttp: boolean): string | null {
  const origin = originOf(address);
  if (origin === undefined) return null;
  return allowLocalHttp || origin.startsWith("https:") ? origin : null;
}

/** Options of `createProxy`. */
export interface ProxyOptions {
  /** Says which cell owns a name. `createRoutes` makes it. */
  routes: Routes;
  /** Says which names a request is about. `compileRuleset` makes it. */
  ruleset: Ruleset;
  /** Sends the requests to the cells. Default: the global `fetch`. */
  fetch?: typeof fetch;
  /**
   * How old the answers of `routes` may be, in milliseconds: the `boundMs` of `createRoutes`, or its
   * `maxAgeMs` without reports. A client that must try again is told to wait this long. Default: 2000.
   */
  boundMs?: number;
  /**
   * How long a cell may take to begin its answer to a request without a body, in milliseconds. An answer that
   * has begun may take as long as it wants. Default: 100000.
   */
  answerTimeoutMs?: number;
  /** The same for requests with a body, with the time that the client needs to send it. Default: 900000. */
  uploadTimeoutMs?: number;
  /**
   * How many bytes of a body are read and thrown away when a cell answers before it has read them. Default:
   * 134217728 (128 MiB).
   */
  discardBytes?: number;
  /** How long that may take, in milliseconds. Default: 10000. */
  discardMs?: number;
  /** Also accepts `http` addresses of cells on this machine. Default: false. */
  allowLocalHttp?: boolean;
  /**
   * Believes the `X-Forwarded-*` headers of requests. Only set it if every request comes through a proxy of
   * yours that sets them. Default: false, which replaces them.
   */
  trustForwarded?: boolean;
  /**
   * Gives every request without a valid `traceparent` (W3C Trace Context) a new trace, which is sampled with
   * this probability, from 0 to 1. Cells and the coordinator then get the trace of each request. Default: the
   * headers of traces stay as they are, and the coordinator gets none.
   */
  traceShare?: number;
  /** Adds `Leasehold-Cell` and the other facts about the route to the answers for clients. Default: false. */
  showRoute?: boolean;
  /**
   * Makes a page for a failure. Default, and if it throws or returns undefined: `application/problem+json`.
   */
  failurePage?: (
    failure: ProxyFailure,
    request: Request,
  ) => Response | undefined | Promise<Response | undefined>;
  hooks?: ProxyHooks;
}

export interface ProxySettings extends Pick<ProxyOptions, "routes" | "ruleset" | "failurePage"> {
  readonly fetch: typeof fetch;
  readonly boundMs: number;
  readonly answerTimeoutMs: number;
  readonly uploadTimeoutMs: number;
  readonly discard: DiscardLimits;
  /** The origin of a cell's address, or null if no request may be sent to it. */
  readonly originOf: (address: string) => string | null;
  readonly trustForwarded: boolean;
  readonly traceShare: number | undefined;
  readonly showRoute: boolean;
  readonly hooks: ProxyHooks;
}

/** The longest delay of a timer. */
const MAX_MS = 2 ** 31 - 1;

const DEFAULTS = {
  boundMs: 2_000,
  answerTimeoutMs: 100_000,
  uploadTimeoutMs: 900_000,
  discardBytes: 128 * 2 ** 20,
  discardMs: 10_000,
};

/** Checks the options and fills in the defaults. Throws a `TypeError` that names a wrong option. */
export function settingsOf(options: ProxyOptions): ProxySettings {
  if (typeof options.routes?.find !== "function")
    throw new TypeError("`routes` must be an object that `createRoutes` has made");
  if (typeof options.ruleset?.matches !== "function")
    throw new TypeError("`ruleset` must be an object that `compileRuleset` has made");
  const numberOf = (option: keyof typeof DEFAULTS, max: number): number => {
    const value = options[option] ?? DEFAULTS[option];
    if (!Number.isInteger(value) || value < 0 || value > max)
      throw new TypeError(`\`${option}\` must be a whole number from 0 to ${max}; got ${String(value)}`);
    return value;
  };
  const { traceShare } = options;
  if (traceShare !== undefined && !(typeof traceShare === "number" && traceShare >= 0 && traceShare <= 1))
    throw new TypeError(`\`traceShare\` must be a number from 0 to 1; got ${String(traceShare)}`);
  return {
    routes: options.routes,
    ruleset: options.ruleset,
    // The global `fetch` of a Worker must be called without an object.
    fetch: options.fetch ?? ((input, init) => fetch(input, init)),
    boundMs: numberOf("boundMs", MAX_MS),
    answerTimeoutMs: numberOf("answerTimeoutMs", MAX_MS),
    uploadTimeoutMs: numberOf("uploadTimeoutMs", MAX_MS),
    discard: {
      bytes: numberOf("discardBytes", Number.MAX_SAFE_INTEGER),
      ms: numberOf("discardMs", MAX_MS),
    },
    originOf: cellOrigins(options.allowLocalHttp ?? false),
    trustForwarded: options.trustForwarded ?? false,
    traceShare,
    showRoute: options.showRoute ?? false,
    ...(options.failurePage === undefined ? {} : { failurePage: options.failurePage }),
    hooks: options.hooks ?? {},
  };
}
