/** What waits for the disk: answers do, and messages between objects of one file don't need to. */
import { randomBytes } from "node:crypto";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { v4 as newUuid } from "uuid";
import { DATABASE } from "../../../src/hosts/standalone/database-file.ts";
import { realDisk, type Disk } from "../../../src/hosts/standalone/disk.ts";
import { serveFiles, type Served } from "./served.ts";

/** A disk whose syncs can be held. */
class HeldDisk implements Disk {
  syncs = 0;
  #held: Promise<void> | undefined;
  #end = (): void => {};

  async syncFile(fd: number): Promise<void> {
    this.syncs += 1;
    await realDisk.syncFile(fd);
    await this.#held;
  }

  syncFolder(path: string): Promise<void> {
    return realDisk.syncFolder(path);
  }

  hold(): void {
    this.#held = new Promise((end) => (this.#end = end));
  }

  release(): void {
    this.#end();
    this.#held = undefined;
  }
}

interface Answer {
  status: number;
  body: Record<string, unknown>;
}

async function call({ host, keys }: Served, method: string, path: string, body?: object): Promise<Answer> {
  const [, cell] = /^\/v1\/cells\/(\d+)/.exec(path) ?? [];
  const key =
    cell !== undefined ? keys.cell(cell) : path.startsWith("/v1/records") ? keys.router : keys.operator;
  const answer = await host.dispatch(
    new Request(`http://localhost${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }),
  );
  return { status: answer.status, body: (await answer.json()) as Answer["body"] };
}

async function addCells(served: Served): Promise<void> {
  for (const id of ["1", "2"]) {
    const cell = { cell_id: id, name: `cell-${id}`, address: `https://cell-${id}.test` };
    expect((await call(served, "POST", "/v1/admin/cells", cell)).status).toBe(201);
    // The first use of a ledger and of each shard reads the directory.
    const uuid = newUuid();
    const names = Array.from({ length: 8 }, (_, n) => `first-${id}-${n}`);
    expect((await begin(served, id, uuid, names)).status).toBe(201);
    expect((await call(served, "POST", `/v1/cells/${id}/leases/${uuid}/commit`)).status).toBe(200);
  }
}

const begin = (served: Served, cell: string, uuid: string, names: readonly string[]): Promise<Answer> =>
  call(served, "PUT", `/v1/cells/${cell}/leases/${uuid}`, {
    creates: names.map((value) => ({
      bucket: { type: "ROUTES", value },
      subject: { type: "USER", id: 1 },
      source: { type: "RAILS_TABLE_USERS", id: 1 },
    })),
  });

const granted = ({ storage }: Served): number =>
  ["cell-1", "cell-2"]
    .map((cell) => storage.store(cell).database)
    .flatMap((database) => database.all<{ n: number }>("SELECT count(*) AS n FROM lease WHERE decided = 0"))
    .reduce((sum, { n }) => sum + n, 0);

test("[B5] [C2] [H2] answers wait for one sync of all objects, and messages for none", async () => {
  const disk = new HeldDisk();
  const served = await serveFiles(["1", "2"], {}, disk);
  await addCells(served);
  await served.storage.settle();
  disk.hold();
  const left: number[] = [];
  const calls = Array.from({ length: 20 }, async (_, n) => {
    const names = [0, 1, 2, 3].map((k) => `n${n}-${k}`);
    const { status } = await begin(served, String((n % 2) + 1), newUuid(), names);
    left.push(status);
  });
  const before = disk.syncs;
  // Ledgers have asked shards and have granted, though no sync has ended.
  await expect.poll(() => granted(served)).toBe(20);
  for (let n = 0; n < 20; n += 1) await new Promise((resume) => void setImmediate(resume));
  expect([left, disk.syncs - before]).toEqual([[], 1]);
  disk.release();
  await Promise.all(calls);
  expect(left).toEqual(Array.from({ length: 20 }, () => 201));
  // Those that became ready while the first sync ran share the second one.
  expect(disk.syncs - before).toBeLessThanOrEqual(3);
  expect(served.failures).toEqual([]);
  await served.close();
});

/** SQLite's log has a header, and then a page with its own header for each change. */
const [HEADER_BYTES, FRAME_BYTES] = [32, 4_120];
/** Each cut is another start. */
const CUTS = 24;

const folder = mkdtempSync(join(tmpdir(), "standalone-prefix-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("[B5] [C2] [H2] each prefix of the log is a state whose parts agree", async () => {
  const secret = randomBytes(32).toString("hex");
  const original = join(folder, "original");
  mkdirSync(original);
  const served = await serveFiles(["1", "2"], { LEASEHOLD_SHARDS: "2" }, realDisk, {
    folder: original,
    secret,
  });
  await addCells(served);
  const log = join(original, `${DATABASE}-wal`);
  const from = readFileSync(log).length;
  const leases = Array.from({ length: 24 }, (_, n) => ({
    cell: String((n % 2) + 1),
    uuid: newUuid(),
    names: [0, 1, 2].map((k) => `n${n}-${k}`),
  }));
  const cycle = async ({ cell, uuid, names }: (typeof leases)[number], n: number): Promise<void> => {
    expect((await begin(served, cell, uuid, names)).status).toBe(201);
    if (n % 4 !== 3)
      expect((await call(served, "POST", `/v1/cells/${cell}/leases/${uuid}/commit`)).status).toBe(200);
  };
  for (let n = 0; n < leases.length; n += 6)
    await Promise.all(leases.slice(n, n + 6).map((lease, k) => cycle(lease, n + k)));
  await served.host.cron();
  const pages = readFileSync(log);
  const shown = new Set<string>();
  const frames = (pages.length - from) / FRAME_BYTES;
  expect([(from - HEADER_BYTES) % FRAME_BYTES, frames > CUTS]).toEqual([0, true]);
  for (let cut = 0; cut <= CUTS; cut += 1) {
    const copy = join(folder, `cut-${cut}`);
    mkdirSync(copy);
    copyFileSync(join(original, DATABASE), join(copy, DATABASE));
    const end = from + Math.floor((frames * cut) / CUTS) * FRAME_BYTES;
    writeFileSync(join(copy, `${DATABASE}-wal`), pages.subarray(0, end));
    const left = await serveFiles(["1", "2"], { LEASEHOLD_SHARDS: "2" }, realDisk, { folder: copy, secret });
    // It tells all parts how far the others have seen them.
    expect((await left.host.cron()).error).toBeNull();
    expect(await call(left, "GET", "/readyz"), `cut ${cut}`).toMatchObject({ status: 200 });
    for (const { cell, uuid, names } of leases) {
      const { status, body } = await call(left, "GET", `/v1/cells/${cell}/leases/${uuid}`);
      const { state = "NONE" } = (body["lease"] ?? {}) as { state?: string };
      expect([200, 404]).toContain(status);
      const looked = await call(left, "POST", "/v1/records/lookup", {
        buckets: names.map((value) => ({ type: "ROUTES", value })),
      });
      const found = (looked.body["results"] as { record?: { status: string } }[]).map(
        ({ record }) => record?.status ?? "NONE",
      );
      const expected = { COMMITTED: "ACTIVE", GRANTED: "LEASE_CREATING", NONE: "NONE" }[state];
      expect(found, `cut ${cut}: ${state}`).toEqual(names.map(() => expected));
      shown.add(state);
    }
    await left.close();
  }
  expect(shown).toEqual(new Set(["NONE", "GRANTED", "COMMITTED"]));
  await served.close();
});
