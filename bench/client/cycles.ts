import { randomUUID } from "node:crypto";
import { CELLS } from "../peers/batch.ts";
import type { Serving } from "../peers/serve.ts";
import { HttpClient } from "./http-client.ts";
import { Names } from "./names.ts";

/** The share of batches in which one name is already taken. */
const CONTESTED_SHARE = 0.01;
export const CONTESTED = Names.kept("contested", 100);
/** Leases for these names are begun before a measurement, and never committed. */
export const HELD = Names.kept("held", 100);

const cellOf = (client: number): string => CELLS[client % CELLS.length] ?? "";

function bodyOf(names: readonly string[]): string {
  const creates = names.map((name, index) => ({
    bucket: { type: "ROUTES", value: name },
    subject: { type: "NAMESPACE", id: String(index + 1) },
    source: { type: "RAILS_TABLE_ROUTES", id: String(index + 1) },
  }));
  return JSON.stringify({ creates });
}

/** Sends begins and commits as cells do. A ceiling grants everything. */
export class Cycles {
  readonly #http: HttpClient;
  readonly #keys: Record<string, string>;
  readonly #names: Names;
  readonly #claims: number;
  readonly isCeiling: boolean;
  #turns = 0;

  constructor(serving: Serving, connections: number, claims: number, names: Names, isCeiling: boolean) {
    this.#http = new HttpClient(serving.url, connections);
    this.#keys = serving.keys;
    this.#claims = claims;
    this.#names = names;
    this.isCeiling = isCeiling;
  }

  async turn(client: number): Promise<boolean> {
    this.#turns += 1;
    const isContested = this.#turns % Math.round(1 / CONTESTED_SHARE) === 0;
    const names = this.freshNames();
    if (isContested) names[0] = CONTESTED[this.#turns % CONTESTED.length] ?? "";
    const status = await this.cycle(cellOf(client), names);
    return isContested && !this.isCeiling ? status === 409 : status === 200;
  }

  freshNames(): string[] {
    return this.#names.fresh(this.#claims);
  }

  /** Begins and commits. Returns the status of the last call, which is 200 on success. */
  async cycle(cell: string, names: readonly string[]): Promise<number> {
    const key = this.#keys[cell] ?? "";
    const path = `/v1/cells/${cell}/leases/${randomUUID()}`;
    const begun = await this.#http.send("PUT", path, key, bodyOf(names));
    return begun === 201 ? this.#http.send("POST", `${path}/commit`, key) : begun;
  }

  /** Only begins, for a hold that stays or for a refusal. */
  begin(cell: string, names: readonly string[]): Promise<number> {
    return this.#http.send(
      "PUT",
      `/v1/cells/${cell}/leases/${randomUUID()}`,
      this.#keys[cell] ?? "",
      bodyOf(names),
    );
  }

  close(): void {
    this.#http.close();
  }
}

export class Lookups {
  readonly #http: HttpClient;
  readonly #key: string;
  readonly isCeiling: boolean;

  constructor({ url, router }: Serving, connections: number, isCeiling: boolean) {
    this.isCeiling = isCeiling;
    this.#http = new HttpClient(url, connections);
    this.#key = router;
  }

  lookup(name: string): Promise<number> {
    return this.#http.send("GET", `/v1/records/ROUTES/${name}`, this.#key);
  }

  close(): void {
    this.#http.close();
  }
}
