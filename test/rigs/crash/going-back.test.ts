/**
 * Tests of ledgers and shards whose files went back in time, under the real server: an earlier copy, deleted
 * and damaged files. Each time the coordinator notices it, and gives no name to a second cell.
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
import { freePort } from "../../../scripts/free-port.ts";
import { killAll, Server } from "./server.ts";
import { objectFile } from "./state-files.ts";

const folder = mkdtempSync(join(tmpdir(), "going-back-"));
const port = await freePort();
const lateNames = Array.from({ length: 20 }, (_, n) => `late-${n}`);

afterAll(() => {
  killAll();
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});

const serverIn = (here: string): Server =>
  new Server({ kind: "production", port, folder: here, variables: { LEASEHOLD_SHARDS: "1" } });

async function startIn(here: string): Promise<Server> {
  const server = serverIn(here);
  expect(await server.ready(), server.output).toBe(true);
  return server;
}

interface Answer {
  status: number;
  reason: string | undefined;
  body: { lease?: { uuid: string }; failed?: string[] };
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
        subject: { type: "GROUP", id: "1" },
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

/** What happens to the files of a part while no process runs. */
const losses: Record<string, (file: string, copies: string) => void> = {
  "an earlier copy": restore,
  "deleted files": (file) => filesOf(file).forEach((path) => rmSync(path, { force: true })),
  "files of 0 bytes": (file) =>
    filesOf(file)
      .filter(existsSync)
      .forEach((path) => truncateSync(path)),
  "a deleted WAL": (file) => [`${file}-wal`, `${file}-shm`].forEach((path) => rmSync(path, { force: true })),
  "half of the WAL": (file) => truncateSync(`${file}-wal`, Math.floor(statSync(`${file}-wal`).size / 2)),
  "flipped bytes in the WAL": (file) => flipBytes(`${file}-wal`, 0.5),
};

const objects = ["shard-0", "cell-1"] as const;
const early = (object: string): string => join(folder, `early-${object}`);

/** Owns names, keeps copies of the files, owns more names, and kills everything. */
beforeAll(async () => {
  const here = join(folder, "template");
  mkdirSync(here);
  let server = await startIn(here);
  await own(server, "1", "early");
  await own(server, "2", "other");
  await server.kill("group");
  for (const object of objects) keep(objectFile(server.stateFolder, object), early(object));
  server = await startIn(here);
  for (const name of lateNames) await own(server, "1", name);
  await server.kill("group");
});

/** Makes a state in which an object has lost its files, or a part of them. */
function lossyState(object: (typeof objects)[number], loss: string): string {
  const here = mkdtempSync(join(folder, "run-"));
  cpSync(join(folder, "template"), here, { recursive: true });
  losses[loss]?.(objectFile(join(here, "state"), object), early(object));
  return here;
}

const lose = (object: (typeof objects)[number], loss: string): Promise<Server> =>
  startIn(lossyState(object, loss));

const lost = { status: 503, reason: "HISTORY_LOST" };

describe.each(Object.keys(losses))("a shard with %s", (loss) => {
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
  const server = serverIn(lossyState("shard-0", "an earlier copy"));
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
