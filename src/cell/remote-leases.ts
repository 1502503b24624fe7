import type { Answer } from "../client/answer.ts";
import type { Client } from "../client/client.ts";
import type { CallOptions } from "../client/connection.ts";
import type { Batch, Lease } from "../client/api-types.ts";
import type { RemoteLeasePage, RemoteLeases, RemotePageRequest } from "./reconcile.ts";

export type LeaseState = Lease["state"];

/** A cell's own leases at the coordinator, with three-valued answers: what must not take an unknown outcome for a no works with these. */
export class ClientLeases implements RemoteLeases {
  readonly #leases: Client["leases"];

  /** `client` must have a cell. */
  constructor(client: Pick<Client, "leases">) {
    this.#leases = client.leases;
  }

  /** After an unknown outcome: call it again with the same UUID, or close it with `rollback` (rules B2, C7). */
  begin(uuid: string, batch: Batch, options: CallOptions = {}): Promise<Answer<LeaseState>> {
    return stateOf(this.#leases.answers.begin(uuid, batch, options));
  }

  commit(uuid: string, options: CallOptions = {}): Promise<Answer<LeaseState>> {
    return stateOf(this.#leases.answers.commit(uuid, options));
  }

  rollback(uuid: string, options: CallOptions = {}): Promise<Answer<LeaseState>> {
    return stateOf(this.#leases.answers.rollback(uuid, options));
  }

  get(uuid: string): Promise<Answer<LeaseState>> {
    return stateOf(this.#leases.answers.get(uuid));
  }

  /** Throws rather than leave anything out. */
  async list({ pageToken, pageSize, createdAfterMs }: RemotePageRequest): Promise<RemoteLeasePage> {
    const createdAfter = createdAfterMs === undefined ? undefined : new Date(createdAfterMs);
    const { value } = await this.#leases.list({ pageToken, pageSize, createdAfter }).pages().next();
    if (value === undefined) throw new Error("a listing without a page");
    return {
      leases: value.items.map(({ uuid, age_ms: ageMs }) => ({ uuid, ageMs })),
      nextPageToken: value.nextPageToken,
    };
  }
}

async function stateOf(call: Promise<Answer<Lease>>): Promise<Answer<LeaseState>> {
  const answer = await call;
  return answer.kind === "ok" ? { kind: "ok", value: answer.value.state } : answer;
}

/** The coordinator does not know the lease. That it does not know the route, or the cell, has a reason, and says nothing about a lease. */
export const isUnknownLease = (answer: Answer<unknown>): boolean =>
  answer.kind === "refused" && answer.code === "NOT_FOUND" && answer.reason === undefined;
