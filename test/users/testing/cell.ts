/** A minimal cell: its calls, and their outcomes. */
import { v4 as newUuid } from "uuid";
import type { TestCoordinator } from "../../../src/users/testing/index.ts";

export interface LeaseSeen {
  uuid: string;
  state: string;
  age_ms: number;
}

export class Cell {
  readonly #coordinator: TestCoordinator;
  readonly #id: string;

  constructor(coordinator: TestCoordinator, id = "1") {
    this.#coordinator = coordinator;
    this.#id = id;
  }

  call(method: string, path: string, body?: unknown, init: RequestInit = {}): Promise<Response> {
    const { url, fetch, keys } = this.#coordinator;
    const headers = {
      authorization: `Bearer ${keys.cell(this.#id)}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    };
    return fetch(`${url}/v1/cells/${this.#id}/leases${path}`, {
      ...init,
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  begin(name: string, uuid: string = newUuid(), init: RequestInit = {}): Promise<Response> {
    const create = {
      bucket: { type: "ROUTES", value: name },
      subject: { type: "NAMESPACE", id: 1 },
      source: { type: "RAILS_TABLE_ROUTES", id: 1 },
    };
    return this.call("PUT", `/${uuid}`, { creates: [create] }, init);
  }

  commit(uuid: string): Promise<Response> {
    return this.call("POST", `/${uuid}/commit`);
  }

  rollback(uuid: string): Promise<Response> {
    return this.call("POST", `/${uuid}/rollback`);
  }

  /** The lease, or undefined when the coordinator has none. */
  async lease(uuid: string): Promise<LeaseSeen | undefined> {
    const response = await this.call("GET", `/${uuid}`);
    const { lease } = (await response.json()) as { lease?: LeaseSeen };
    return lease;
  }
}
