import type { Positions } from "../positions.ts";

/** A name as a router sees it, in any spelling: a bucket type and a value, such as `ROUTES` `gitlab-org`. */
export interface Name {
  type: string;
  value: string;
}

export interface CellAddress {
  id: string;
  /** An https origin without a path, such as `https://cell-7.example.com`, or http on this machine. */
  address: string;
}

/**
 * The layer that had the answer: this router's memory, a cache that it shares with other routers, or the
 * coordinator.
 */
export type RouteLayer = "memory" | "shared_cache" | "coordinator";

/** What the layers tell about every answer of a shard. */
export interface AnswerOrigin {
  shard: number;
  /** The shard's position when it read the name (Q2). */
  position: number;
  /** False while a lease holds the name. Such an answer is used once, and no layer keeps it (Q2). */
  settled: boolean;
  /** How old the answer is at most, in milliseconds, over all layers (Q4). */
  ageMs: number;
  layer: RouteLayer;
}

export interface FoundRoute extends AnswerOrigin {
  kind: "found";
  /** The cell that owns the name. */
  cell: CellAddress;
  /** The epoch of the claim. It grows whenever the name gets another owner. */
  epoch: number;
  /**
   * True when the coordinator could not be asked, and the answer is older than the bound. It is never older
   * than `graceMs` (Q8).
   */
  isStale: boolean;
}

/** No cell owns the name. */
export interface NoRoute extends AnswerOrigin {
  kind: "none";
}

/** The name cannot exist. */
export interface InvalidName {
  kind: "invalid";
  detail: string;
  /** `bucket_type` when the type is not declared, `value` when no name of the type can have this value. */
  field?: string;
}

/** Nobody could say who owns the name. It must never be treated like a name that doesn't exist (Q8). */
export interface RouteUnavailable {
  kind: "unavailable";
  detail: string;
  /** When it makes sense to ask again, in milliseconds. */
  retryAfterMs: number;
}

export type RouteAnswer = FoundRoute | NoRoute | InvalidName | RouteUnavailable;

export interface FindOptions {
  /** The answer is at least as new as these positions of the shards, or `unavailable` (Q9). */
  minPositions?: Positions | undefined;
  /** Ends the wait of this call, which then throws the signal's reason. Other calls keep waiting. */
  signal?: AbortSignal | undefined;
  /**
   * Keeps work alive after the response, such as `ctx.waitUntil` of a Worker. Without it, a Worker may cancel
   * what is stored or refreshed in the background.
   */
  waitUntil?: ((work: Promise<unknown>) => void) | undefined;
  /**
   * The `traceparent` (W3C Trace Context) of the request. It is sent with the question to the coordinator, if
   * this call causes one. Calls that share a question send that of the first. Ignored if it is not valid.
   */
  traceparent?: string | undefined;
}

/** The answer that sent a request to a cell that does not have the name. */
export interface WrongRoute {
  shard: number;
  position: number;
}

export interface CellsOptions extends Omit<FindOptions, "minPositions" | "traceparent"> {
  /**
   * The list was asked for at most 15 s ago, of a coordinator that can read its directory, so that a cell
   * that is not in it does not exist. False by default.
   */
  mustBeNew?: boolean | undefined;
}

/** Who owns which name. `createRoutes` makes one. */
export interface Routes {
  /**
   * Finds the cell that owns a name. During an outage it answers `unavailable` or a stale route, and does not
   * throw.
   */
  find(name: Name, options?: FindOptions): Promise<RouteAnswer>;
  /** Finds many names with few requests. The answers have the order of the names. */
  findMany(names: readonly Name[], options?: FindOptions): Promise<RouteAnswer[]>;
  /**
   * Asks the coordinator again after a cell has answered 421: forgets the answer that named the cell, and
   * returns one that is at least as new.
   */
  refresh(name: Name, wrong: WrongRoute, options?: FindOptions): Promise<RouteAnswer>;
  /**
   * The addresses of all cells by id. The copy is refreshed after 15 s, and used up to `graceMs` during an
   * outage.
   *
   * @throws `RoutesUnavailableError` when there is no copy that may be used.
   */
  cells(options?: CellsOptions): Promise<ReadonlyMap<string, CellAddress>>;
  /**
   * Reads the addresses of the cells again, in the background and at most once a second. Call it after the
   * connection to a cell has failed: the cell may have another address.
   */
  refreshCells(options?: Pick<FindOptions, "waitUntil">): void;
  /** Ends all requests and drops everything remembered. Later calls answer `unavailable`. */
  close(): void;
}

/** The coordinator could not be asked, and nothing that may be used is remembered. */
export class RoutesUnavailableError extends Error {
  override readonly name = "RoutesUnavailableError";
  readonly retryAfterMs: number;

  constructor(detail: string, retryAfterMs: number) {
    super(detail);
    this.retryAfterMs = retryAfterMs;
  }
}

const MAX_TYPE_LENGTH = 256;
/** No name that a coordinator accepts is longer. */
const MAX_VALUE_BYTES = 1_024;
const encoder = new TextEncoder();

/** Why no name can be like this, or undefined. The coordinator checks all the rest. */
export function faultOf({ type, value }: Name): InvalidName | undefined {
  if (type === "" || type.length > MAX_TYPE_LENGTH || !type.isWellFormed())
    return invalid("bucket_type", "`type` must be the name of a bucket type");
  if (!value.isWellFormed()) return invalid("value", "`value` must be well-formed Unicode");
  if (value.length > MAX_VALUE_BYTES || encoder.encode(value).length > MAX_VALUE_BYTES)
    return invalid("value", `\`value\` must be at most ${MAX_VALUE_BYTES} bytes of UTF-8`);
  return undefined;
}

const invalid = (field: string, detail: string): InvalidName => ({ kind: "invalid", field, detail });

/** The names of this machine, to which a router may speak http. */
const LOCAL = new Set(["localhost", "127.0.0.1", "[::1]"]);
const MAX_LENGTH = 2_048;
const BARE = /^https?:\/\/[^\s\\/?#@]+\/?$/i;

/**
 * The origin that an address names, or undefined if a router must not use the address: it is an https origin
 * without a path, a query or credentials, or an http origin on this machine.
 */
export function originOf(address: string): string | undefined {
  if (address.length > MAX_LENGTH || !BARE.test(address) || !URL.canParse(address)) return undefined;
  const { protocol, hostname, origin } = new URL(address);
  return protocol === "https:" || LOCAL.has(hostname) ? origin : undefined;
}
