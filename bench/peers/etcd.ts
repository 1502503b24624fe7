/**
 * The peer `etcd`: Node, Hono and gRPC in front of Debian's etcd. A begin is one transaction that compares
 * create revisions, and a commit another.
 */
import { Etcd3 } from "etcd3";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { freePort } from "../../src/hosts/workerd/free-port.ts";
import type { PeerStore } from "./app.ts";
import { serveStore, untilReady } from "./node.ts";
import { folderOf } from "./serve.ts";

const [client, peer] = [await freePort(), await freePort()];
const url = `http://127.0.0.1:${client}`;
const peerUrl = `http://127.0.0.1:${peer}`;
const args = [
  "--data-dir",
  join(folderOf(process.argv), "data"),
  "--listen-client-urls",
  url,
  "--advertise-client-urls",
  url,
];
args.push(
  "--listen-peer-urls",
  peerUrl,
  "--initial-advertise-peer-urls",
  peerUrl,
  "--initial-cluster",
  `default=${peerUrl}`,
);
// The quota leaves room for everything that a run writes.
args.push(
  "--quota-backend-bytes",
  String(8 * 1_024 ** 3),
  "--auto-compaction-retention",
  "1",
  "--log-level",
  "error",
);
const server = spawn("etcd", args, { stdio: "ignore" });
const etcd = new Etcd3({ hosts: url });

const claimKey = (type: string, name: string): string => `claim/${type}/${name}`;
const leaseKey = (cell: string, lease: string): string => `lease/${cell}/${lease}`;

interface Granted {
  state: "GRANTED";
  claims: { key: string; record: object }[];
}

const store: PeerStore = {
  async begin(cell, lease, claims) {
    const granted: Granted = {
      state: "GRANTED",
      claims: claims.map(({ type, name, value, subject, source }) => ({
        key: claimKey(type, name),
        record: { value, cell, subject, source },
      })),
    };
    const key = leaseKey(cell, lease);
    let free = etcd.if(key, "Create", "==", 0);
    for (const claim of granted.claims) free = free.and(claim.key, "Create", "==", 0);
    const puts = granted.claims.map((claim) =>
      etcd.put(claim.key).value(JSON.stringify({ ...claim.record, lease })),
    );
    const { succeeded } = await free.then(etcd.put(key).value(JSON.stringify(granted)), ...puts).commit();
    return succeeded;
  },

  async commit(cell, lease) {
    const key = leaseKey(cell, lease);
    const kept = await etcd.get(key).string();
    if (kept === null) return false;
    const { state, claims } = JSON.parse(kept) as Granted | { state: "COMMITTED"; claims?: never };
    if (state === "COMMITTED") return false;
    const puts = claims.map((claim) => etcd.put(claim.key).value(JSON.stringify(claim.record)));
    const { succeeded } = await etcd
      .if(key, "Value", "==", kept)
      .then(etcd.put(key).value('{"state":"COMMITTED"}'), ...puts)
      .commit();
    return succeeded;
  },

  async lookup(type, name) {
    const found = await etcd.get(claimKey(type, name)).string();
    return found === null ? undefined : (JSON.parse(found) as object);
  },
};

await untilReady(() => etcd.maintenance.status());
await serveStore(store, server, "SIGTERM", async () => etcd.close());
