import { unread } from "./answer.ts";
import type { Caller } from "./caller.ts";
import type { CallOptions } from "./connection.ts";
import { errorOf, valueOf, type LeaseholdError } from "./errors.ts";
import { checkShape } from "./problem.ts";
import {
  operations,
  type Bucket,
  type OwnerCell,
  type RouteFacts,
  type RouteResult,
  type UnavailableRoute,
} from "./api-types.ts";

/** Positions of shards, by the number of the shard, such as the `positions` of a lease. */
export type ShardPositions = Readonly<Record<number, number>>;

export interface FindRouteOptions extends CallOptions {
  /**
   * Positions that the shard of the name must have reached. If it has not, the client tries again, and throws
   * `UnavailableError` in the end.
   */
  minPositions?: ShardPositions | undefined;
}

/** Where requests for a name go, and what a cache needs to know about the answer. */
export interface RouteAnswer {
  /** Undefined if no cell has the name. */
  cell: OwnerCell | undefined;
  /** The epoch of the claim. Undefined without a cell, and for a cell that asks about another cell's name. */
  epoch: number | undefined;
  /** A hash of the name, by which reports refer to it. Different names may have the same key. */
  key: string;
  shard: number;
  /** The shard's position when the name was read. */
  position: number;
  /** False: a lease holds the name, so the answer may change at any time. Don't keep it. */
  settled: boolean;
  /** The age of the answer when it was sent. A cache adds the time since it sent its question. */
  ageMs: number;
}

/** A name whose answer is not known. Don't treat it like a name that doesn't exist. */
export interface UnknownRoute {
  /** An `UnavailableError` or a `TimeoutError`, with the time after which to ask again. */
  error: LeaseholdError;
}

export interface ReportOptions extends CallOptions {
  /** The report begins after this position. Left out: it is empty, and tells the newest position. */
  after?: number | undefined;
}

/** The keys of the names that leases have put on hold on a shard in (`after`, `through`]. */
export interface Report {
  shard: number;
  after: number;
  through: number;
  /** In the order of the positions. */
  held: { position: number; keys: readonly string[] }[];
  /** True: the page is full and never changes. Continue with `after` set to `through`. */
  hasMore: boolean;
  ageMs: number;
}

/** What GitLab's router asks: claims, the first of which that exists decides, or a type with a value. */
export interface ClassifyOptions extends CallOptions {
  /** `FIRST_CELL`, `SESSION_PREFIX` or `CELL_ID`. Left out with `claims`. */
  type?: string | undefined;
  /** The session prefix, or the id of the cell. */
  value?: string | undefined;
  /** Names in the order in which they are tried, at most 100. */
  claims?: readonly Bucket[] | undefined;
}

/** The cell that `POST /v1/classify` has chosen. */
export interface Classified {
  /** The host of the cell's address, without a scheme. */
  address: string;
  /** The claim that decided. Undefined if a type did. */
  matchedClaim: Bucket | undefined;
}

/** The coordinator's limit per call. */
const LOOKUP_NAMES = 100;

/** Where requests go. `leasehold/router` adds caches to these calls. */
export class Routing {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** Finds the cell of a name. Throws `UnavailableError` when the answer is not known. */
  async find(name: Bucket, { minPositions, ...options }: FindRouteOptions = {}): Promise<RouteAnswer> {
    const answer = await this.#caller.call("getRoute", {
      ...options,
      params: { bucket_type: name.type, value: name.value },
      query: { min_position: textOf(minPositions) },
    });
    const isFree = answer.kind === "refused" && answer.code === "NOT_FOUND" && answer.reason === undefined;
    if (!isFree) return toRoute(valueOf(answer));
    checked(answer.route, FACTS);
    return toRoute(answer.route as RouteFacts);
  }

  /**
   * Finds the cells of many names, with one call per 100. Results are in the order of `names`. A name whose
   * answer is not known has an `error`, while others are answered. Throws `UnavailableError` if that is so
   * for all names of a call.
   */
  async findMany(
    names: readonly Bucket[],
    { minPositions, ...options }: FindRouteOptions = {},
  ): Promise<(RouteAnswer | UnknownRoute)[]> {
    const routes: (RouteAnswer | UnknownRoute)[] = [];
    for (let at = 0; at < names.length; at += LOOKUP_NAMES) {
      const body = { names: names.slice(at, at + LOOKUP_NAMES), min_position: textOf(minPositions) };
      const found = valueOf(await this.#caller.call("lookupRoutes", { ...options, body })).results;
      // With a result missing, every later name would get the result of another one.
      if (found.length !== body.names.length)
        throw errorOf(
          unread(`the coordinator returned ${found.length} results for ${body.names.length} names`),
        );
      routes.push(...found.map(toResult));
    }
    return routes;
  }

  /**
   * Reads which names were put on hold on a shard, for routers and operators. Throws `ReportPrunedError` if
   * the shard no longer knows all changes after `after`, and `NotFoundError` if there is no such shard.
   */
  async report(shard: number, { after, ...options }: ReportOptions = {}): Promise<Report> {
    const answer = await this.#caller.call("getReport", {
      ...options,
      params: { shard: String(shard) },
      query: { after },
    });
    const { has_more: hasMore, age_ms: ageMs, held, ...report } = valueOf(answer);
    checked(held, [["any"]]);
    const rows = held.map(([distance, keys]) => ({ position: report.after + distance, keys }));
    for (const row of rows) checked(row, ROW);
    return { ...report, held: rows, hasMore, ageMs };
  }

  /**
   * Classifies a request as GitLab's router does. Undefined if no claim exists, or
   * if there is no such cell. Throws `UnavailableError` when the answer is not known.
   */
  async classify({ type, value, claims, ...options }: ClassifyOptions): Promise<Classified | undefined> {
    const answer = await this.#caller.call("classify", {
      ...options,
      body: { type, value, claims: claims && [...claims] },
    });
    if (answer.kind === "refused" && answer.code === "NOT_FOUND" && answer.reason === undefined)
      return undefined;
    const { proxy, matched_claim: matched } = valueOf(answer);
    return {
      address: proxy.address,
      matchedClaim: claims?.find((claim) => claim.type === matched?.type && claim.value === matched.value),
    };
  }

  /** Lists all cells with their addresses, in the order of their ids. */
  async cells(options: CallOptions = {}): Promise<readonly OwnerCell[]> {
    return valueOf(await this.#caller.call("listCellAddresses", options)).cells;
  }
}

const { cell: _, ...FACTS } = operations.getRoute.shape;

const ROW = { position: "number", keys: ["string"] } as const;

const toRoute = ({
  cell,
  epoch,
  key,
  shard,
  position,
  settled,
  age_ms: ageMs,
}: RouteFacts & { cell?: OwnerCell | undefined; epoch?: number | undefined }): RouteAnswer => ({
  cell,
  epoch,
  key,
  shard,
  position,
  settled,
  ageMs,
});

function toResult(result: RouteResult | UnavailableRoute): RouteAnswer | UnknownRoute {
  checked(result, {});
  if ("unavailable" in result) return toUnknown(result);
  checked(result, { found: "boolean", ...FACTS });
  return toRoute(result);
}

function toUnknown({ unavailable }: UnavailableRoute): UnknownRoute {
  checked(unavailable, { code: "string", detail: "string" });
  const { code, detail, retry_after_ms: retryAfterMs } = unavailable;
  const why = code === "DEADLINE_EXCEEDED" ? "timeout" : "unavailable";
  return { error: errorOf(unread(detail, { why, retryAfterMs })) };
}

const textOf = (positions: ShardPositions = {}): string | undefined =>
  Object.entries(positions)
    .map(([shard, position]) => `${shard}:${position}`)
    .join(",") || undefined;

/** A part of an answer that has another shape leaves the outcome unknown, like an answer that has. */
function checked(part: unknown, shape: Parameters<typeof checkShape>[1]): void {
  try {
    checkShape(part, shape);
  } catch (error) {
    throw errorOf(unread(error instanceof Error ? error.message : "the answer is malformed"));
  }
}
