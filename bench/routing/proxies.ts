import { join } from "node:path";
import { startCoordinator } from "../../src/hosts/workerd/coordinator.ts";
import { startDemoCells } from "../../src/hosts/workerd/demo-cells.ts";
import { freePort } from "../../src/hosts/workerd/free-port.ts";
import { startRouterWorker } from "../../src/hosts/router/router-worker.ts";
import { closedLoop } from "../client/closed-loop.ts";
import { HttpClient } from "../client/http-client.ts";
import { startWorker } from "../peers/miniflare.ts";

/** The p50 of a GET with one client, in milliseconds. */
export interface ProxyLatencies {
  /** Without a proxy. */
  direct: number;
  /** Through a Worker that only forwards. */
  plain: number;
  /** Through the router's Worker, which finds the name in its memory. */
  router: number;
}

/** Measures a small answer of a cell, directly and through both Workers, in turns of `seconds`. */
export async function measureProxies(
  folder: string,
  rounds: number,
  seconds: number,
): Promise<ProxyLatencies[]> {
  const stops: (() => Promise<unknown>)[] = [];
  try {
    const coordinator = await startCoordinator({ port: 0, stateFolder: join(folder, "coordinator") });
    stops.push(() => coordinator.stop());
    const cells = await startDemoCells(coordinator);
    for (const cell of cells) stops.push(() => cell.stop());
    const [cell] = cells;
    if (cell === undefined) throw new Error("no cell was started");
    const plain = await startWorker(join(import.meta.dirname, "plain-proxy-worker.ts"), folder, {
      bindings: { CELL: cell.address },
    });
    stops.push(() => plain.miniflare.dispose());
    const router = await startRouterWorker({
      port: await freePort(),
      variables: {
        LEASEHOLD_URL: coordinator.url,
        LEASEHOLD_KEY: coordinator.keys.router,
        ROUTER_ALLOW_LOCAL_HTTP: "on",
        ROUTER_RULES: JSON.stringify([
          {
            id: "names",
            match: { type: "path", pattern: "/:name" },
            action: "classify",
            classify: { type: "ROUTES", value: "${name}" },
          },
        ]),
      },
      log: () => {},
    });
    stops.push(() => router.stop());
    const urls = { direct: cell.address, plain: plain.url, router: router.url };
    const p50 = async (url: string): Promise<number> => {
      const client = new HttpClient(url, 1);
      const turn = async (): Promise<boolean> => (await client.send("GET", `/${cell.name}`, "none")) === 200;
      try {
        const { latencies, errors } = await closedLoop({ clients: 1, seconds, turn });
        if (errors > 0) throw new Error(`${errors} requests to ${url} failed`);
        return latencies.percentile(0.5);
      } finally {
        client.close();
      }
    };
    for (const url of Object.values(urls)) await p50(url);
    const measured: ProxyLatencies[] = [];
    for (let round = 0; round < rounds; round += 1)
      measured.push({
        direct: await p50(urls.direct),
        plain: await p50(urls.plain),
        router: await p50(urls.router),
      });
    return measured;
  } finally {
    for (const stop of stops.toReversed()) await stop();
  }
}
