/**
 * Tests of parts whose files went back in time, under the real server: an earlier copy, deleted and damaged
 * files. Each time the coordinator notices it, and gives no name to a second cell.
 */
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { inSlice } from "../../support/slice.ts";
import { hostKinds, killAll, Server } from "./server.ts";
import { fileOf, losePart } from "./state-files.ts";

const port = await freePort();

interface Answer {
  status: number;
  reason: string | undefined;
  body: {
    lease?: { uuid: string };
    failed?: string[];
    id?: string;
    key?: string;
    cells?: { cell_id: string }[];
    restored?: { cells: string[]; keys: number; revocations: number };
  };
}

describe.each(inSlice(hostKinds, hostKinds.length))("npm run %s", (host) => {
  const folder = mkdtempSync(join(tmpdir(), "going-back-"));
  const lateNames = Array.from({ length: 20 }, (_, n) => `late-${n}`);

  afterAll(() => {
    killAll();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });

  const serverIn = (here: string): Server =>
    new Server({
      host,
      kind: "production",
      port,
      folder: here,
      variables: { LEASEHOLD_SHARDS: "1" },
      // The states are copies of one that was killed.
      args: host === "standalone" ? ["--trust-copy"] : [],
    });

  async function startIn(here: string): Promise<Server> {
    const server = serverIn(here);
    expect(await server.ready(), server.output).toBe(true);
    return server;
  }

  async function call(
    server: Server,
    key: string,
    method: string,
    path: string,
    body?: object,
  ): Promise<Answer> {
    const answer = await fetch(server.url + path, {
      method,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const json = (await answer.json()) as Answer["body"] & { reason?: string };
    return { status: answer.status, reason: json.reason, body: json };
  }

  const keyOf = (server: Server, cell: string): string => server.keys.cells[cell] ?? "";

  const begin = (server: Server, cell: string, name: string): Promise<Answer> =>
    call(server, keyOf(server, cell), "POST", `/v1/cells/${cell}/leases`, {
      creates: [
        {
          bucket: { type: "ROUTES", value: name },
          subject: { type: "NAMESPACE", id: "1" },
          source: { type: "RAILS_TABLE_ROUTES", id: name },
        },
      ],
    });

  async function own(server: Server, cell: string, name: string): Promise<void> {
    const { status, body } = await begin(server, cell, name);
    expect(status).toBe(201);
    const path = `/v1/cells/${cell}/leases/${body.lease?.uuid}/commit`;
    expect((await call(server, keyOf(server, cell), "POST", path)).status).toBe(200);
  }

  /** The files of one object: its database, and what belongs to it. */
  const filesOf = (file: string): string[] => [file, `${file}-wal`, `${file}-shm`];

  /** Replaces the files of an object by copies, or removes them where there is no copy. */
  function restore(file: string, copies: string): void {
    for (const [index, path] of filesOf(file).entries()) {
      rmSync(path, { force: true });
      const copy = join(copies, String(index));
      if (existsSync(copy)) cpSync(copy, path);
    }
  }

  function keep(file: string, copies: string): void {
    for (const [index, path] of filesOf(file).entries())
      if (existsSync(path)) cpSync(path, join(copies, String(index)));
  }

  /** Flips four bytes at a share of the file's length. */
  function flipBytes(path: string, share: number): void {
    const bytes = readFileSync(path);
    const at = Math.floor(bytes.length * share);
    for (let index = at; index < at + 4; index += 1) bytes[index] = (bytes[index] ?? 0) ^ 0xff;
    writeFileSync(path, bytes);
  }

  /** What happens to the files of a part while no process runs. A start moves the log into its file. */
  const losses: Record<string, (file: string, early: string, unmoved: string) => void> = {
    "an earlier copy": restore,
    "deleted files": (file) => filesOf(file).forEach((path) => rmSync(path, { force: true })),
    "files of 0 bytes": (file) =>
      filesOf(file)
        .filter(existsSync)
        .forEach((path) => truncateSync(path)),
    "a deleted WAL": (file, _, unmoved) => {
      restore(file, unmoved);
      for (const path of [`${file}-wal`, `${file}-shm`]) rmSync(path, { force: true });
    },
    "half of the WAL": (file, _, unmoved) => {
      restore(file, unmoved);
      truncateSync(`${file}-wal`, Math.floor(statSync(`${file}-wal`).size / 2));
    },
    "flipped bytes in the WAL": (file, _, unmoved) => {
      restore(file, unmoved);
      flipBytes(`${file}-wal`, 0.5);
    },
  };

  // Three parts and two hosts: six consecutive slices have every loss on both.
  const lossesHere = inSlice(Object.keys(losses), 3);

  const objects = ["shard-0", "cell-1", "directory"] as const;
  const early = (object: string): string => join(folder, `early-${object}`);
  const unmoved = (object: string): string => join(folder, `unmoved-${object}`);

  const lateCell = { cell_id: "9", name: "Cell 9", address: "https://cell-9.example" };
  /** A router's key that is revoked after the copies were made. */
  let revokedKey: string;

  /** Owns names, keeps copies of the files, owns more names, changes the directory, and kills everything. */
  beforeAll(async () => {
    const here = join(folder, "template");
    mkdirSync(here);
    let server = await startIn(here);
    await own(server, "1", "early");
    await own(server, "2", "other");
    const { operator } = server.keys;
    const minted = await call(server, operator, "POST", "/v1/admin/keys", { role: "router" });
    revokedKey = minted.body.key ?? "";
    await server.kill("group");
    for (const object of objects) keep(fileOf(server.stateFolder, object), early(object));
    server = await startIn(here);
    for (const name of lateNames) await own(server, "1", name);
    const added = await call(server, operator, "POST", "/v1/admin/cells", lateCell);
    const revoked = await call(server, operator, "POST", `/v1/admin/keys/${minted.body.id}/revoke`, {});
    expect([added.status, revoked.status]).toEqual([201, 200]);
    await server.kill("group");
    for (const object of objects) keep(fileOf(server.stateFolder, object), unmoved(object));
    // The cron at the start tells the ledgers and D1 how far the directory has got.
    server = await startIn(here);
    await server.kill("group");
  });

  /** Makes a state in which an object has lost its files, or a part of them. */
  async function lossyState(object: (typeof objects)[number], loss: string): Promise<string> {
    const here = mkdtempSync(join(folder, "run-"));
    cpSync(join(folder, "template"), here, { recursive: true });
    await losePart(join(here, "state"), object, (file) =>
      losses[loss]?.(file, early(object), unmoved(object)),
    );
    return here;
  }

  const lose = async (object: (typeof objects)[number], loss: string): Promise<Server> =>
    startIn(await lossyState(object, loss));

  const lost = { status: 503, reason: "HISTORY_LOST" };

  describe.each(lossesHere)("a shard with %s", (loss) => {
    test("[H2] [H4] gives no name to a second cell, and says so", async () => {
      const server = await lose("shard-0", loss);
      // The ledger of cell 2 has never seen what was lost. The cron of the start has told the shard.
      for (const name of lateNames) expect(await begin(server, "2", name)).toMatchObject(lost);
      expect(await begin(server, "1", "more")).toMatchObject(lost);
      expect(await call(server, server.keys.router, "GET", "/v1/records/ROUTES/early")).toMatchObject(lost);
      expect(await call(server, server.keys.operator, "GET", "/readyz")).toMatchObject({
        ...lost,
        body: { failed: ["shard 0"] },
      });
      expect(server.output).toContain('"event":"history_lost"');
      await server.kill("group");
    });
  });

  test("[H2] [H4] no call is answered before the cron of the start has told the shards", async () => {
    const server = serverIn(await lossyState("shard-0", "an earlier copy"));
    const isReady = server.ready();
    let answer: Answer | undefined;
    while (answer === undefined && server.isRunning) {
      answer = await begin(server, "2", "late-0").catch(() => undefined);
      await new Promise((resume) => setImmediate(resume));
    }
    expect(answer).toMatchObject(lost);
    expect(await isReady).toBe(true);
    await server.kill("group");
  });

  describe.each(["an earlier copy", "deleted files"])("a ledger with %s", (loss) => {
    test("[H2] [H4] grants and decides nothing, and says so", async () => {
      const server = await lose("cell-1", loss);
      expect(await begin(server, "1", "more")).toMatchObject(lost);
      expect(await begin(server, "1", "late-0")).toMatchObject(lost);
      for (const name of lateNames) expect((await begin(server, "2", name)).status).toBe(409);
      expect((await begin(server, "2", "free")).status).toBe(201);
      expect(server.output).toContain('"event":"history_lost"');
      await server.kill("group");
    });
  });

  describe.each(lossesHere)("a directory with %s", (loss) => {
    test("[H2] [H4] [H8] lets no revoked key in, says so, and is reconciled from D1", async () => {
      const here = await lossyState("directory", loss);
      let server = await startIn(here);
      expect(server.output).toContain('"event":"history_lost"');
      // It stays like this over another start.
      await server.kill("group");
      server = await startIn(here);
      const { operator, router } = server.keys;
      for (const key of [revokedKey, router])
        expect(await call(server, key, "GET", "/v1/records/ROUTES/early")).toMatchObject(lost);
      expect(await call(server, operator, "POST", "/v1/admin/cells", lateCell)).toMatchObject(lost);
      expect(await call(server, operator, "GET", "/readyz")).toMatchObject({
        ...lost,
        body: { failed: ["directory"] },
      });
      // Cells don't need it.
      expect((await begin(server, "1", "more")).status).toBe(201);
      const body = { dry_run: false, reason: "restored from a backup" };
      const path = "/v1/admin/parts/directory/reconcile";
      const { body: done } = await call(server, operator, "POST", path, body);
      expect(done.restored?.cells).toContain("9");
      const { body: listed } = await call(server, operator, "GET", "/v1/admin/cells");
      expect(listed.cells?.map(({ cell_id: id }) => id)).toEqual(["1", "2", "3", "4", "9"]);
      expect((await call(server, revokedKey, "GET", "/v1/records/ROUTES/early")).status).toBe(401);
      expect((await call(server, router, "GET", "/v1/records/ROUTES/early")).status).toBe(200);
      await server.kill("group");
    });
  });

  test("[H2] [H3] the ledgers notice a directory with an earlier copy if D1 is lost as well", async () => {
    const here = await lossyState("directory", "an earlier copy");
    await losePart(join(here, "state"), "projection", (file) => losses["deleted files"]?.(file, "", ""));
    const server = await startIn(here);
    const part = await call(server, server.keys.operator, "GET", "/v1/admin/parts/directory");
    expect(JSON.stringify(part.body)).toMatch(/"noticed_by":"the ledger of cell \d"/);
    await server.kill("group");
  });
});
