import { startCoordinator, type Coordinator } from "../../scripts/coordinator.ts";
import { cellIds, type Variant } from "./variants.ts";

export interface Keys {
  /** By cell. */
  cells: Record<string, string>;
  router: string;
}

/**
 * Makes a new state with all its cells, shards and ledgers, each of them used once, and stops the coordinator
 * again.
 */
export async function setUp(stateFolder: string, { cells, shards }: Variant): Promise<Keys> {
  const variables = { LEASEHOLD_REQUEST_LOG: "errors", LEASEHOLD_SHARDS: String(shards) };
  const coordinator = await startCoordinator({ port: 0, stateFolder, variables });
  try {
    const keys: Keys = { cells: {}, router: coordinator.keys.router };
    for (const cell of cellIds(cells))
      keys.cells[cell] = coordinator.keys.cells[cell] ?? (await addCell(coordinator, cell));
    // It reads every ledger and pokes every shard, and writes the cells into the fleet record.
    await coordinator.cron();
    return keys;
  } finally {
    await coordinator.stop();
  }
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
  if (!answer.ok) throw new Error(`a new one of the ${what} was answered ${answer.status}`);
  return answer.json();
}
