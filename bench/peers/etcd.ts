/** `etcd`: Node, Hono and gRPC before Debian's etcd; a begin is one transaction that compares create revisions, a commit another. */
import { serve as listen } from "@hono/node-server";
import { Etcd3 } from "etcd3";
import { Hono } from "hono";
import { spawn } from "node:child_process";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { CELLS, claimsOf, PEER_ROUTER, peerKey, peerKeys } from "./batch.ts";
import { folderOf, serve } from "./serve.ts";

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  const { port } = server.address() as AddressInfo;
  await new Promise((closed) => server.close(closed));
  return port;
}

const [client, peer] = [await freePort(), await freePort()];
const url = `http://127.0.0.1:${client}`;
const peerUrl = `http://127.0.0.1:${peer}`;
const args = ["--data-dir", join(folderOf(process.argv), "data"), "--listen-client-urls", url, "--advertise-client-urls", url];
args.push("--listen-peer-urls", peerUrl, "--initial-advertise-peer-urls", peerUrl, "--initial-cluster", `default=${peerUrl}`);
// Room for all that a run writes; the rest as it comes.
args.push("--quota-backend-bytes", String(8 * 1_024 ** 3), "--auto-compaction-retention", "1", "--log-level", "error");
const server = spawn("etcd", args, { stdio: "ignore" });
const etcd = new Etcd3({ hosts: url });

for (let tries = 0; ; tries += 1) {
  try {
    await etcd.maintenance.status();
    break;
  } catch (error) {
    if (tries === 100) throw error;
    await setTimeout(100);
  }
}

const claimKey = (type: string, name: string): string => `claim/${type}/${name}`;
const leaseKey = (cell: string, lease: string): string => `lease/${cell}/${lease}`;

interface Granted {
  state: "GRANTED";
  claims: { key: string; record: object }[];
}

const app = new Hono();

app.put("/v1/cells/:cell/leases/:lease", async (c) => {
  const { cell, lease } = c.req.param();
  if (c.req.header("authorization") !== `Bearer ${peerKey(cell)}`) return c.json({ code: "UNAUTHENTICATED" }, 401);
  const claims = claimsOf(await c.req.json());
  if (claims === undefined) return c.json({ code: "INVALID_ARGUMENT" }, 400);
  const granted: Granted = {
    state: "GRANTED",
    claims: claims.map(({ type, name, value, subject, source }) => ({ key: claimKey(type, name), record: { value, cell, subject, source } })),
  };
  const key = leaseKey(cell, lease);
  let free = etcd.if(key, "Create", "==", 0);
  for (const claim of granted.claims) free = free.and(claim.key, "Create", "==", 0);
  const { succeeded } = await free
    .then(
      etcd.put(key).value(JSON.stringify(granted)),
      ...granted.claims.map((claim) => etcd.put(claim.key).value(JSON.stringify({ ...claim.record, lease }))),
    )
    .commit();
  if (!succeeded) return c.json({ code: "ALREADY_EXISTS" }, 409);
  return c.json({ lease: { uuid: lease, cell_id: cell, state: "GRANTED" } }, 201);
});

app.post("/v1/cells/:cell/leases/:lease/commit", async (c) => {
  const { cell, lease } = c.req.param();
  if (c.req.header("authorization") !== `Bearer ${peerKey(cell)}`) return c.json({ code: "UNAUTHENTICATED" }, 401);
  const key = leaseKey(cell, lease);
  const kept = await etcd.get(key).string();
  if (kept === null) return c.json({ code: "NOT_FOUND" }, 404);
  const { claims } = JSON.parse(kept) as Granted;
  const { succeeded } = await etcd
    .if(key, "Value", "==", kept)
    .then(etcd.put(key).value('{"state":"COMMITTED"}'), ...claims.map((claim) => etcd.put(claim.key).value(JSON.stringify(claim.record))))
    .commit();
  if (!succeeded) return c.json({ code: "ABORTED" }, 409);
  return c.json({ lease: { uuid: lease, cell_id: cell, state: "COMMITTED" } });
});

app.get("/v1/records/:type/:name{.+}", async (c) => {
  if (c.req.header("authorization") !== `Bearer ${PEER_ROUTER}`) return c.json({ code: "UNAUTHENTICATED" }, 401);
  const { type, name } = c.req.param();
  const found = await etcd.get(claimKey(type, name.toLowerCase())).string();
  return found === null ? c.json({ code: "NOT_FOUND" }, 404) : c.json({ record: JSON.parse(found) as object });
});

const http = listen({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" });
await new Promise((ready) => http.once("listening", ready));
const { port } = http.address() as AddressInfo;
serve({ url: `http://127.0.0.1:${port}`, keys: peerKeys(CELLS), router: PEER_ROUTER }, async () => {
  await new Promise((closed) => http.close(closed));
  etcd.close();
  const ended = new Promise((exit) => server.once("exit", exit));
  server.kill("SIGTERM");
  await ended;
});
