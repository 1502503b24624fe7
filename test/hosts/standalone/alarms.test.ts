/** A start of `npm run standalone`: the alarms that became due while the server was down. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Ports } from "../../../src/coordinator/kernel/ports.ts";
import { DATABASE } from "../../../src/hosts/standalone/database-file.ts";
import { Host } from "../../../src/hosts/node/host.ts";
import { startStandalone, type Standalone } from "../../../src/hosts/standalone/server.ts";

let folder: string;
let server: Standalone | undefined;
/** The objects that have started, and those that had before alarms could ring. */
let started: string[];
let startedBefore: string[];
let portsOf: Map<string, Ports>;

class WatchedHost extends Host {
  override releaseAlarms(): void {
    startedBefore = [...started];
    super.releaseAlarms();
  }
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "standalone-alarms-"));
  started = [];
  portsOf = new Map();
});

afterEach(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Starts the server without the cron, which would wake every object as well. */
const start = (): Promise<Standalone> =>
  startStandalone({
    host: "127.0.0.1",
    port: 0,
    stateFolder: folder,
    variables: { LEASEHOLD_SHARDS: "2" },
    cells: ["1", "2"],
    log: () => {},
    onStorageFailure: (failure) => {
      throw failure;
    },
    makeHost: (options) =>
      new WatchedHost({
        ...options,
        portsOf: (name, ports) => {
          started.push(name);
          portsOf.set(name, ports);
          return ports;
        },
      }),
    cronAtStart: false,
  });

/** When the alarm that an object has stored rings; null if it has none. */
function storedAlarm(name: string): unknown {
  const database = new DatabaseSync(join(folder, "databases", DATABASE), { readOnly: true });
  try {
    return database.prepare(`SELECT at_ms FROM "${name}/host_alarm"`).get()?.["at_ms"] ?? null;
  } finally {
    database.close();
  }
}

function storeAlarm(name: string, atMs: number): void {
  const database = new DatabaseSync(join(folder, "databases", DATABASE));
  database.exec(`DELETE FROM "${name}/host_alarm"; INSERT INTO "${name}/host_alarm" VALUES (${atMs})`);
  database.close();
}

test("[M3] alarms ring once the server is ready, without a call and without the cron", async () => {
  server = await start();
  await server.dispatch(new Request("http://localhost/readyz"));
  await server.stop();
  const later = Date.now() + 86_400_000;
  storeAlarm("cell-2", 1);
  storeAlarm("shard-0", later);
  storeAlarm("shard-1", 1);
  started = [];
  server = await start();
  // The start's own request to the directory also asks the first cell.
  expect(startedBefore.toSorted()).toEqual(["cell-1", "directory"]);
  // The cron of the next minute may have woken others, too.
  await expect.poll(() => started).toEqual(expect.arrayContaining(["cell-2", "shard-1"]));
  await expect.poll(() => storedAlarm("shard-1")).toBeNull();
  expect(storedAlarm("cell-2")).not.toBe(1);
  expect(storedAlarm("shard-0")).toBe(later);
});

test("[M3] an alarm that the core sets between two milliseconds is stored", async () => {
  server = await start();
  portsOf.get("directory")?.alarm.set(2_000_000_000_000.25);
  expect(storedAlarm("directory")).toBe(2_000_000_000_001);
});
