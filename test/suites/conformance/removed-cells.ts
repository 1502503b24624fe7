import { v4 as newUuid } from "uuid";
import { expect } from "vitest";
import type * as z from "zod";
import type { removalRoutes } from "../../../src/coordinator/capabilities/removal/edge/routes.ts";
import type { Coordinator } from "./coordinator.ts";
import { claim, freshName } from "./leases.ts";

type Responses = (typeof removalRoutes)["getRemoval"]["responses"];
type Removal = z.infer<Responses[200]["schema"]>["removal"];

export const SOURCE = "RAILS_TABLE_ROUTES";
const MOST_READS = 2_000;

export const path = (cell: string, rest = ""): string => `/v1/admin/cells/${cell}/removal${rest}`;

/** Cells that get claims and are removed. */
export class RemovedCells {
  readonly #api: Coordinator;

  constructor(api: Coordinator) {
    this.#api = api;
  }

  async show(cell: string, cursor = ""): Promise<Removal> {
    const at = path(cell, cursor === "" ? "" : `?cursor=${cursor}`);
    return (await this.#api.json<{ removal: Removal }>(200, "GET", at, {})).removal;
  }

  /** Gives the cell so many claims, and returns their names. Their source ids are 1, 2, and so on. */
  async own(cell: string, count: number): Promise<string[]> {
    const values = Array.from({ length: count }, freshName);
    const [lease, key] = [`/v1/cells/${cell}/leases/${newUuid()}`, `cell ${cell}`] as const;
    const creates = values.map((value, index) => claim(value, index + 1));
    await this.#api.json(201, "PUT", lease, { key, body: { creates } });
    await this.#api.json(200, "POST", `${lease}/commit`, { key });
    return values;
  }

  async drain(cell: string): Promise<void> {
    await this.#api.json(200, "POST", `/v1/admin/cells/${cell}/drain`, {});
    await this.applied(cell);
  }

  /** Shards learn of decisions after the caller. */
  async applied(cell: string): Promise<void> {
    for (let reads = 0; (await this.show(cell)).unapplied_decisions > 0; reads += 1)
      expect(reads, "decisions are not applied").toBeLessThan(MOST_READS);
  }
}
