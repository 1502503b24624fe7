import { sentence, type Answer } from "./answer.ts";
import { listOf, numberOf, objectOf, stringOf, type Connection } from "./connection.ts";
import type { LeaseState, RemoteLeasePage, RemoteLeases, RemotePageRequest } from "./reconcile.ts";

export interface Bucket {
  type: string;
  value: string;
}

/** Whom a claim is about, or which row it came from. */
export interface Reference {
  type: string;
  id: string;
}

export interface Claim {
  bucket: Bucket;
  subject: Reference;
  source: Reference;
}

/** What one lease asks for: all of it or nothing. The fields are those of the wire. */
export interface Batch {
  creates?: Claim[];
  destroys?: (Pick<Claim, "bucket"> & Partial<Claim>)[];
  replaces?: Claim[];
  allow_missing?: boolean;
}

const states: readonly string[] = ["GRANTED", "COMMITTED", "ROLLED_BACK"] satisfies LeaseState[];

/** A cell's own leases at the coordinator, over HTTP. Every call may be repeated, and is while its outcome is unknown. */
export class HttpLeases implements RemoteLeases {
  readonly #connection: Connection;
  readonly #leases: string;

  constructor(connection: Connection, cell: string) {
    this.#connection = connection;
    this.#leases = `/v1/cells/${encodeURIComponent(cell)}/leases`;
  }

  /** After an unknown outcome: call it again with the same UUID, or close it with `rollback` (rules B2, C7). */
  begin(uuid: string, batch: Batch): Promise<Answer<LeaseState>> {
    return this.#connection.call({ method: "PUT", path: this.#path(uuid), body: batch, read: readState });
  }

  commit(uuid: string): Promise<Answer<LeaseState>> {
    return this.#connection.call({ method: "POST", path: `${this.#path(uuid)}/commit`, read: readState });
  }

  rollback(uuid: string): Promise<Answer<LeaseState>> {
    return this.#connection.call({ method: "POST", path: `${this.#path(uuid)}/rollback`, read: readState });
  }

  get(uuid: string): Promise<Answer<LeaseState>> {
    return this.#connection.call({ method: "GET", path: this.#path(uuid), read: readState });
  }

  async list({ pageToken, pageSize, createdAfterMs }: RemotePageRequest): Promise<RemoteLeasePage> {
    const query = new URLSearchParams({ page_size: String(pageSize) });
    if (pageToken !== "") query.set("page_token", pageToken);
    if (createdAfterMs !== undefined) query.set("created_after", new Date(createdAfterMs).toISOString());
    const answer = await this.#connection.call({ method: "GET", path: `${this.#leases}?${query.toString()}`, read: readPage });
    if (answer.kind !== "ok") throw new Error(`the leases of the cell cannot be listed: ${sentence(answer)}`);
    return answer.value;
  }

  #path(uuid: string): string {
    return `${this.#leases}/${encodeURIComponent(uuid)}`;
  }
}

function readState(json: unknown): LeaseState {
  const { state } = objectOf(objectOf(json)["lease"]);
  if (!isState(state)) throw new TypeError("the lease has no known state");
  return state;
}

const isState = (state: unknown): state is LeaseState => typeof state === "string" && states.includes(state);

function readPage(json: unknown): RemoteLeasePage {
  const page = objectOf(json);
  const leases = listOf(page["leases"], "leases").map((entry) => {
    const lease = objectOf(entry);
    return { uuid: stringOf(lease["uuid"], "uuid"), ageMs: numberOf(lease["age_ms"], "age_ms") };
  });
  return { leases, nextPageToken: stringOf(page["next_page_token"], "next_page_token") };
}
