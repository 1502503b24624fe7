import { startCoordinator, type Coordinator } from "../../src/hosts/workerd/coordinator.ts";
import { cellIds, type Variant } from "./variants.ts";

export interface Keys {
  /** The keys by cell id. */
  cells: Record<string, string>;
  router: string;
}

/** Creates a new state, uses each of its cells, shards and ledgers once, and stops the coordinator. */
export async function setUp(stateFolder: string, { cells, shards }: Variant): Promise<Keys> {
  const variables = { LEASEHOLD_REQUEST_LOG: "errors", LEASEHOLD_SHARDS: String(shards) };
  const coordinator = await startCoordinator({ port: 0, stateFolder, variables });
  try {
    const keys: Keys = { cells: {}, router: coordinator.keys.router };
    for (const cell of cellIds(cells))
      keys.cells[cell] = coordinator.keys.cells[cell] ?? (await addCell(coordinator, cell));
    await useTypes(coordinator);
    // The cron reads every ledger, wakes every shard, and writes the cells to D1.
    await coordinator.cron();
    return keys;
  } finally {
    await coordinator.stop();
  }
}

/**
 * Brings the types of the rows into use that `fill` writes (T2). Its name is not there to be destroyed, so
 * the begin is refused and writes nothing else.
 */
async function useTypes({ url, keys }: Coordinator): Promise<void> {
  const [[cell, key] = []] = Object.entries(keys.cells);
  const destroy = {
    bucket: { type: "ROUTES", value: "not-there" },
    subject: { type: "NAMESPACE", id: 1 },
    source: { type: "RAILS_TABLE_ROUTES", id: 1 },
  };
  const answer = await fetch(`${url}/v1/cells/${cell}/leases`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ destroys: [destroy] }),
  });
  const { conflicts } = (await answer.json()) as { conflicts?: { kind: string }[] };
  if (conflicts?.[0]?.kind !== "absent") throw new Error(`the begin was answered ${answer.status}`);
}

async function addCell(coordinator: Coordinator, cell: string): Promise<string> {
  await admin(coordinator, "cells", {
    cell_id: cell,
    name: `Cell ${cell}`,
    address: `https://cell-${cell}.example`,
  });
  return ((await admin(coordinator, "keys", { role: "cell", cell_id: cell })) as { key: string }).key;
}

async function admin({ url, keys }: Coordinator, what: "cells" | "keys", body: unknown): Promise<unknown> {
  const headers = { authorization: `Bearer ${keys.operator}`, "content-type": "application/json" };
  const answer = await fetch(`${url}/v1/admin/${what}`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`POST /v1/admin/${what} was answered ${answer.status}`);
  return answer.json();
}
