import { unknownFrom, type Answer, type Refused, type Unknown } from "../client/answer.ts";
import { pause } from "../client/attempt-abort.ts";
import type { Client } from "../client/client.ts";
import type { CallOptions } from "../client/connection.ts";
import type { Batch, Lease } from "../client/api-types.ts";
import type { BeginCallOptions, PlacedLease } from "../client/leases.ts";
import type { ShardPositions } from "../client/routing.ts";
import type { Positions } from "../router/positions.ts";

export type LeaseState = Lease["state"];

/** The outcome of a call about one lease. */
export type LeaseAnswer =
  | {
      kind: "ok";
      value: LeaseState;
      /**
       * Positions of the lease's shards, from which on routers show the lease. Undefined once it was decided
       * some time ago, and for `get`.
       */
      positions?: Positions;
    }
  | Refused
  | Unknown;

export interface RemoteLease {
  uuid: string;
  /** By the coordinator's clock, so the cell's clock does not matter. */
  ageMs: number;
  /** The time since the lease was granted, or renewed last (C8). */
  idleMs: number;
}

export interface RemotePageRequest {
  /** "" for the first page. */
  pageToken: string;
  pageSize: number;
  createdAfterMs?: number;
}

export interface RemoteLeasePage {
  leases: RemoteLease[];
  /** "" on the last page. */
  nextPageToken: string;
}

/** The cell's leases at the coordinator. */
export interface RemoteLeases {
  /** Answers only GRANTED leases. Throws if the list is incomplete. */
  list(page: RemotePageRequest): Promise<RemoteLeasePage>;
  get(uuid: string): Promise<Answer<LeaseState>>;
  commit(uuid: string): Promise<Answer<LeaseState>>;
  rollback(uuid: string): Promise<Answer<LeaseState>>;
}

/** A cell's leases at the coordinator. Answers distinguish an unknown outcome from a refusal. */
export class ClientLeases implements RemoteLeases {
  readonly #leases: Client["leases"];

  /** `client` must have a cell. */
  constructor(client: Pick<Client, "leases">) {
    this.#leases = client.leases;
  }

  /**
   * After an unknown outcome, call it again with the same UUID, or close the lease with `rollback` (B2, C7).
   */
  begin(uuid: string, batch: Batch, options: BeginCallOptions = {}): Promise<LeaseAnswer> {
    return stateOf(() => this.#leases.answers.begin(uuid, batch, options));
  }

  commit(uuid: string, options: CallOptions = {}): Promise<LeaseAnswer> {
    return stateOf(() => this.#leases.answers.commit(uuid, options));
  }

  rollback(uuid: string, options: CallOptions = {}): Promise<LeaseAnswer> {
    return stateOf(() => this.#leases.answers.rollback(uuid, options));
  }

  get(uuid: string): Promise<LeaseAnswer> {
    return stateOf(() => this.#leases.answers.get(uuid));
  }

  /** Throws if the list is incomplete. */
  async list({ pageToken, pageSize, createdAfterMs }: RemotePageRequest): Promise<RemoteLeasePage> {
    const createdAfter = createdAfterMs === undefined ? undefined : new Date(createdAfterMs);
    const { value } = await this.#leases.list({ pageToken, pageSize, createdAfter }).pages().next();
    if (value === undefined) throw new Error("the client answered a listing without a page");
    return {
      leases: value.items.map(({ uuid, age_ms: ageMs, idle_ms: idleMs = ageMs }) => ({
        uuid,
        ageMs,
        idleMs,
      })),
      nextPageToken: value.nextPageToken,
    };
  }
}

const PATIENCE_MS = 10_000;
const PAUSE_MS = 500;

/**
 * Rolls a lease back while no caller waits. It keeps trying for 10 s, because a coordinator that restarts
 * refuses connections, and then the client's own retries are over within a second.
 */
export async function rollBackPatiently(
  leases: Pick<ClientLeases, "rollback">,
  uuid: string,
  givesUp: AbortSignal,
): Promise<Answer<LeaseState>> {
  const endMs = performance.now() + PATIENCE_MS;
  for (;;) {
    const deadlineMs = Math.max(1, endMs - performance.now());
    const answer = await leases.rollback(uuid, { deadlineMs, signal: givesUp });
    if (answer.kind !== "unknown" || givesUp.aborted || performance.now() + PAUSE_MS >= endMs) return answer;
    await pause(PAUSE_MS, [givesUp]);
  }
}

/**
 * Never rejects. Callers decide about saved rows by the answer (L4), and an exception does not tell what was
 * carried out (M2).
 */
async function stateOf(call: () => Promise<Answer<PlacedLease>>): Promise<LeaseAnswer> {
  try {
    const answer = await call();
    if (answer.kind !== "ok") return answer;
    const { state, positions } = answer.value;
    return { kind: "ok", value: state, ...(positions === undefined ? {} : { positions: mapOf(positions) }) };
  } catch (error) {
    return unknownFrom(error);
  }
}

const mapOf = (positions: ShardPositions): Positions =>
  new Map(Object.entries(positions).map(([shard, position]) => [Number(shard), position]));

/**
 * Whether the coordinator does not know the lease. An unknown route or cell has a `reason`, and proves
 * nothing.
 */
export const isUnknownLease = (answer: Answer<unknown>): boolean =>
  answer.kind === "refused" && answer.code === "NOT_FOUND" && answer.reason === undefined;
