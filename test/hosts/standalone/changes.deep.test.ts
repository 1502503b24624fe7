/** A consumer of the change feed follows a server that is killed again and again while cells work. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { v4 as newUuid } from "uuid";
import { afterAll, expect, test } from "vitest";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { createClient, isLeaseholdError, type Client } from "../../../src/users/client/index.ts";
import { seeded } from "../../support/seeded.ts";
import { Server } from "../workerd/server.ts";

const KILLS = 3;
const LEASES_PER_ROUND = 60;
const NAMES = 40;

const folder = mkdtempSync(join(tmpdir(), "leasehold-changes-"));
const servers: Server[] = [];

async function start(port: number): Promise<Server> {
  const server = new Server(port, join(folder, "state"), {}, [], "standalone");
  servers.push(server);
  return server.ready();
}

afterAll(async () => {
  await Promise.all(servers.map((server) => server.end("SIGKILL")));
  rmSync(folder, { recursive: true, force: true });
});

const bucketOf = (n: number) => ({ type: "ROUTES", value: `name-${n}` }) as const;

/** Begins a lease about a random name and decides it, however the calls end. */
async function work({ leases }: Client, random: () => number): Promise<void> {
  const bucket = bucketOf(Math.floor(random() * NAMES));
  const claim = {
    bucket,
    subject: { type: "NAMESPACE", id: "7" },
    source: { type: "RAILS_TABLE_ROUTES", id: String(Math.floor(random() * 1_000) + 1) },
  } as const;
  const kind = Math.floor(random() * 3);
  const batch = [{ creates: [claim] }, { destroys: [{ bucket }] }, { replaces: [claim] }][kind] ?? {};
  const uuid = newUuid();
  try {
    await leases.begin(batch, { uuid });
    await (random() < 0.8 ? leases.commit(uuid) : leases.rollback(uuid));
  } catch (error) {
    // The name is in use, or the server was killed. What it has granted is decided at the end.
    if (!isLeaseholdError(error)) throw error;
  }
}

test("[F4] [F6] has all claims of an export in the end, whatever it missed", async () => {
  const port = await freePort();
  let server = await start(port);
  const clientOf = (key: string, cell?: string): Client =>
    createClient({
      url: server.url,
      key,
      cell,
      retries: 1,
      attemptMs: 60_000,
      deadlineMs: 60_000,
      breaker: false,
    });
  const cells = ["1", "2"].map((cell) => clientOf(server.keys.cells[cell] ?? "", cell));
  const operator = clientOf(server.keys.operator);

  const copy = new Map<string, { epoch: number; text: string }>();
  const stop = new AbortController();
  const started = await operator.changes.page();
  let seen = started.checkpoint;
  const following = (async () => {
    const { signal } = stop;
    for await (const { changes, checkpoint } of operator.changes.follow({
      after: seen,
      intervalMs: 50,
      signal,
    })) {
      for (const { event, epoch, cell_id: cell, claim } of changes) {
        if (claim === undefined || (copy.get(claim.uuid)?.epoch ?? 0) > epoch) continue;
        if (event === "released") copy.delete(claim.uuid);
        else copy.set(claim.uuid, { epoch, text: `${claim.bucket?.value} of ${cell}: ${claim.source?.id}` });
      }
      seen = checkpoint;
    }
  })();

  const random = seeded(20_261_128);
  for (let round = 0; round <= KILLS; round += 1) {
    const working = cells.flatMap((client) =>
      Array.from({ length: LEASES_PER_ROUND / 2 }, () => work(client, random)),
    );
    if (round === KILLS) await Promise.all(working);
    else {
      // Some are done, some are under way.
      await Promise.race(working);
      await server.end("SIGKILL");
      await Promise.all(working);
      server = await start(port);
    }
  }
  for (const client of cells)
    for await (const { uuid } of client.leases.list()) await client.leases.rollback(uuid);

  const exported = new Map<string, { epoch: number; text: string }>();
  for (const [index, client] of cells.entries())
    for await (const record of client.records.export({ sourceType: "RAILS_TABLE_ROUTES" })) {
      const text = `${record.bucket.value} of ${index + 1}: ${record.source.id}`;
      exported.set(record.uuid, { epoch: record.epoch, text });
    }
  // The export has shown every decision, so all changes are in the logs by now (R2).
  const { checkpoint: newest } = await operator.changes.page();
  await expect.poll(() => seen).toBe(newest);
  stop.abort();
  await following;
  expect(exported.size).toBeGreaterThan(5);
  expect(copy).toEqual(exported);
}, 120_000);
