/** A host over files behind the HTTP server of `npm run standalone`, in this process. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { configOf } from "../../../src/coordinator/env.ts";
import { Host } from "../../../src/hosts/node/host.ts";
import { realDisk, type Disk, type StorageFailure } from "../../../src/hosts/standalone/disk.ts";
import { HttpServer } from "../../../src/hosts/standalone/http-server.ts";
import { Storage } from "../../../src/hosts/standalone/storage.ts";
import { systemClock } from "../../../src/hosts/standalone/system-clock.ts";
import { makeKeys } from "../../../src/users/testing/coordinator.ts";
import type { TestKeys } from "../../../src/users/testing/index.ts";

export interface Served {
  host: Host;
  storage: Storage;
  folder: string;
  url: string;
  keys: TestKeys;
  /** Failures of the storage, which would have ended the process. */
  failures: StorageFailure[];
  close(): Promise<void>;
}

/** @param kept - a folder that stays, and its secret; without it, the folder is removed in the end */
export async function serveFiles(
  cells: readonly string[],
  variables: Readonly<Record<string, string>>,
  disk: Disk = realDisk,
  kept?: { folder: string; secret: string },
): Promise<Served> {
  const folder = kept?.folder ?? mkdtempSync(join(tmpdir(), "standalone-"));
  const failures: StorageFailure[] = [];
  const storage = new Storage({
    folder,
    onFailure: (failure) => failures.push(failure),
    disk,
  });
  const secret = kept?.secret ?? randomBytes(32).toString("hex");
  const host = new Host({
    clock: systemClock,
    log: () => {},
    variables: { LEASEHOLD_SHARDS: "4", ...variables, LEASEHOLD_SIGNING_SECRET: secret },
    store: (name) => storage.store(name),
    d1: storage.projection,
  });
  const { limits } = configOf(host.env);
  const keys = await makeKeys(secret, cells, Date.now(), limits.keyLifetimeS);
  const http = await HttpServer.listen(host, {
    host: "127.0.0.1",
    port: 0,
    bodyReadMs: limits.bodyReadMs,
  });
  return {
    host,
    storage,
    folder,
    url: http.url,
    keys,
    failures,
    close: async () => {
      await http.close(0);
      host.end();
      await storage.settle();
      host.close();
      await storage.close();
      if (kept === undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
}
