import type { Disk } from "../../src/hosts/standalone/disk.ts";
import { serveFiles } from "../../test/hosts/standalone/served.ts";
import { CELLS } from "../peers/batch.ts";
import { CountedCoordinator } from "./counted-coordinator.ts";
import { CountingClient } from "./counting-client.ts";
import { emptyCounts, type RawCounts } from "./raw-counts.ts";

/** Starts the standalone server in this process, with a disk that does nothing but count. */
export async function startStandalone(
  shards: number,
  variables: Record<string, string>,
): Promise<CountedCoordinator> {
  const counted = { syncs: 0 };
  const disk: Disk = {
    syncFile: () => Promise.resolve(void (counted.syncs += 1)),
    syncFolder: () => Promise.resolve(),
  };
  const served = await serveFiles(CELLS, variables, disk);
  // An alarm would fall into the count of other work.
  served.host.holdAlarms();
  const { operator, router } = served.keys;
  const client = new StandaloneClient(served.url, counted);
  for (const cell_id of CELLS)
    await client.send(201, "POST", "/v1/admin/cells", operator, {
      cell_id,
      name: `cell-${cell_id}`,
      address: `https://cell-${cell_id}.test`,
    });
  const cells = Object.fromEntries(CELLS.map((id) => [id, served.keys.cell(id)]));
  const running = { keys: { operator, router, cells }, stop: () => served.close() };
  return CountedCoordinator.start(shards, running, client);
}

/** Reads the counts in this process. */
class StandaloneClient extends CountingClient {
  readonly #disk: { syncs: number };

  constructor(url: string, disk: { syncs: number }) {
    super(url);
    this.#disk = disk;
  }

  protected override read(method: "GET" | "POST"): Promise<RawCounts> {
    const counts = { ...emptyCounts(), disk: { ...this.#disk } };
    if (method === "POST") this.#disk.syncs = 0;
    return Promise.resolve(counts);
  }
}
