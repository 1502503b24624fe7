/** Common code of the peers that are a Node server in front of a database. */
import { serve as listen } from "@hono/node-server";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { setTimeout } from "node:timers/promises";
import { peerApp, type PeerStore } from "./app.ts";
import { CELLS, PEER_ROUTER, peerKeys } from "./batch.ts";
import { serve } from "./serve.ts";

const TRIES = 100;
const PAUSE_MS = 100;

/** Repeats `ask` until the database answers. */
export async function untilReady(ask: () => Promise<unknown>): Promise<void> {
  for (let left = TRIES; ; left -= 1) {
    try {
      await ask();
      return;
    } catch (error) {
      if (left === 0) throw error;
      await setTimeout(PAUSE_MS);
    }
  }
}

/** Serves requests until a stop signal. Then it calls `close`, and stops the database. */
export async function serveStore(
  store: PeerStore,
  database: ChildProcess,
  signal: NodeJS.Signals,
  close: () => Promise<void>,
): Promise<void> {
  const http = listen({ fetch: peerApp(() => store).fetch, port: 0, hostname: "127.0.0.1" });
  await once(http, "listening");
  const { port } = http.address() as AddressInfo;
  serve({ url: `http://127.0.0.1:${port}`, keys: peerKeys(CELLS), router: PEER_ROUTER }, async () => {
    await new Promise((closed) => http.close(closed));
    await close();
    if (database.exitCode !== null || database.signalCode !== null) return;
    const ended = once(database, "exit");
    database.kill(signal);
    await ended;
  });
}
