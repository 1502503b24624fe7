import type { LocalLease, LocalLeases } from "../../src/cell/reconcile.ts";
import type {
  LeaseState,
  RemoteLeasePage,
  RemoteLeases,
  RemotePageRequest,
} from "../../src/cell/remote-leases.ts";
import type { Answer, Refused } from "../../src/client/answer.ts";

interface MemoryRow {
  uuid: string;
  createdAtMs: number;
}

type LocalCall = "list" | "has" | "remove" | "fence" | "removeFences" | "queueForVerification";

/** A cell's table of outstanding leases, in memory. */
export class MemoryLocal implements LocalLeases {
  readonly rows = new Map<string, MemoryRow>();
  /** The times at which fences were written, by UUID. */
  readonly fences = new Map<string, number>();
  readonly queued: string[] = [];
  /** Leases that an open local transaction is about to save. */
  readonly inFlight = new Set<string>();
  /** Runs before each call. It may throw to fail the call. */
  before: (call: LocalCall, uuids: readonly string[]) => void = () => {};
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  async list({ afterUuid, limit }: { afterUuid: string; limit: number }): Promise<LocalLease[]> {
    this.before("list", []);
    const uuids = [...this.rows.keys()].toSorted().filter((uuid) => uuid > afterUuid);
    return uuids.slice(0, limit).flatMap((uuid) => this.#lease(uuid));
  }

  async has(uuids: readonly string[]): Promise<LocalLease[]> {
    this.before("has", uuids);
    return uuids.flatMap((uuid) => this.#lease(uuid));
  }

  async remove(uuid: string): Promise<void> {
    this.before("remove", [uuid]);
    this.rows.delete(uuid);
  }

  async fence(uuid: string): Promise<"fenced" | "saved" | "in_flight"> {
    this.before("fence", [uuid]);
    if (this.inFlight.has(uuid)) return "in_flight";
    if (this.rows.has(uuid)) return "saved";
    this.fences.set(uuid, this.fences.get(uuid) ?? this.#now());
    return "fenced";
  }

  async removeFences(olderThanMs: number): Promise<number> {
    this.before("removeFences", []);
    const old = [...this.fences].filter(([, writtenMs]) => this.#now() - writtenMs >= olderThanMs);
    for (const [uuid] of old) this.fences.delete(uuid);
    return old.length;
  }

  async queueForVerification(uuid: string): Promise<void> {
    this.before("queueForVerification", [uuid]);
    if (this.rows.delete(uuid)) this.queued.push(uuid);
  }

  #lease(uuid: string): LocalLease[] {
    const row = this.rows.get(uuid);
    return row === undefined ? [] : [{ uuid, ageMs: this.#now() - row.createdAtMs }];
  }
}

interface MemoryLease {
  uuid: string;
  createdAtMs: number;
  state: LeaseState;
}

type RemoteCall = "list" | "get" | "commit" | "rollback";

/**
 * One cell's leases in memory, like at the coordinator: the first decision is final, and repeating it
 * succeeds.
 */
export class MemoryRemote implements RemoteLeases {
  readonly leases = new Map<string, MemoryLease>();
  readonly calls: { call: RemoteCall; uuid: string }[] = [];
  readonly pages: RemotePageRequest[] = [];
  /**
   * Runs before a call takes effect. It may throw to fail the call, change the leases as another process
   * would, or answer in its place.
   */
  before: (call: RemoteCall, uuid: string) => Answer<LeaseState> | void = () => {};
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  async list(request: RemotePageRequest): Promise<RemoteLeasePage> {
    this.before("list", request.pageToken);
    this.pages.push(request);
    const { pageToken, pageSize, createdAfterMs = 0 } = request;
    const granted = [...this.leases.values()]
      .filter(
        ({ uuid, state, createdAtMs }) =>
          state === "GRANTED" && createdAtMs >= createdAfterMs && uuid > pageToken,
      )
      .toSorted((a, b) => (a.uuid < b.uuid ? -1 : 1));
    const page = granted.slice(0, pageSize);
    const leases = page.map(({ uuid, createdAtMs }) => ({ uuid, ageMs: this.#now() - createdAtMs }));
    return { leases, nextPageToken: granted.length > page.length ? (page.at(-1)?.uuid ?? "") : "" };
  }

  async get(uuid: string): Promise<Answer<LeaseState>> {
    return this.#answer("get", uuid, (lease) => ({ kind: "ok", value: lease.state }));
  }

  async commit(uuid: string): Promise<Answer<LeaseState>> {
    return this.#answer("commit", uuid, (lease) => decide(lease, "COMMITTED"));
  }

  async rollback(uuid: string): Promise<Answer<LeaseState>> {
    return this.#answer("rollback", uuid, (lease) => decide(lease, "ROLLED_BACK"));
  }

  #answer(
    call: RemoteCall,
    uuid: string,
    act: (lease: MemoryLease) => Answer<LeaseState>,
  ): Answer<LeaseState> {
    this.calls.push({ call, uuid });
    const instead = this.before(call, uuid);
    if (instead !== undefined) return instead;
    const lease = this.leases.get(uuid);
    return lease === undefined
      ? refusal({ status: 404, code: "NOT_FOUND", detail: "no such lease" })
      : act(lease);
  }
}

function decide(lease: MemoryLease, outcome: "COMMITTED" | "ROLLED_BACK"): Answer<LeaseState> {
  if (lease.state === "GRANTED") lease.state = outcome;
  if (lease.state === outcome) return { kind: "ok", value: outcome };
  return refusal({
    status: 409,
    code: "FAILED_PRECONDITION",
    reason: `LEASE_${lease.state}`,
    detail: "decided otherwise",
  });
}

export const refusal = (said: Pick<Refused, "status" | "code" | "reason" | "detail">): Refused => ({
  kind: "refused",
  conflicts: [],
  retryable: false,
  outcomeKnown: true,
  ...said,
});
