import type { Answer, Refused } from "../../client/answer.ts";
import type { LeaseState, RemoteLeasePage, RemoteLeases, RemotePageRequest } from "../remote-leases.ts";

interface MemoryLease {
  uuid: string;
  createdAtMs: number;
  renewedAtMs?: number;
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
    const leases = page.map(({ uuid, createdAtMs, renewedAtMs }) => ({
      uuid,
      ageMs: this.#now() - createdAtMs,
      idleMs: this.#now() - (renewedAtMs ?? createdAtMs),
    }));
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
