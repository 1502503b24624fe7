import { patientClient } from "../../src/users/cell/conformance/target.ts";
import { createClient, type Client } from "../../src/users/client/client.ts";
import type { TestCoordinator } from "../../src/users/testing/index.ts";

/** The client of a cell that calls a coordinator in memory. */
export const clientOf = (coordinator: TestCoordinator, cell = "1"): Client =>
  createClient({
    url: coordinator.url,
    key: coordinator.keys.cell(cell),
    cell,
    fetch: (to, init) => coordinator.fetch(to, init),
    ...patientClient,
  });
