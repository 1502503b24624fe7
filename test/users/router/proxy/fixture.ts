/** A proxy behind a real HTTP server, in front of cells that are real HTTP servers. */
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type {
  CellAddress,
  FindOptions,
  FoundRoute,
  Name,
  RouteAnswer,
  Routes,
  WrongRoute,
} from "../../../../src/users/router/lookups/routes.ts";
import { toNodeListener } from "../../../../src/users/router-node/index.ts";
import { createProxy } from "../../../../src/users/router/proxy/proxy.ts";
import type { Proxy, ProxyContext } from "../../../../src/users/router/proxy/proxy.ts";
import type { ProxyOptions } from "../../../../src/users/router/proxy/options.ts";
import type { Match, Ruleset } from "../../../../src/users/router/rules/types.ts";

const servers: Server[] = [];

async function listen(server: Server): Promise<string> {
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Stops every server of the test. */
export async function stopServers(): Promise<void> {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  }
}

/** Starts a cell, and returns its address. */
export const startCell = (id: string, listener: RequestListener): Promise<CellAddress> =>
  listen(createServer(listener)).then((address) => ({ id, address }));

/** Serves a proxy, and returns its URL. */
export async function serve(options: ProxyOptions, context?: ProxyContext): Promise<string> {
  const proxy = createProxy({ allowLocalHttp: true, ...options });
  return await serveProxy((request) => proxy(request, context));
}

/** Serves a proxy as a router on Node does, and returns its URL. */
export const serveProxy = (proxy: Proxy): Promise<string> => listen(createServer(toNodeListener(proxy)));

/** Returns a URL where nothing listens. */
export async function closedUrl(): Promise<string> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return `http://127.0.0.1:${port}`;
}

export const found = (cell: CellAddress, given: Partial<FoundRoute> = {}): FoundRoute => ({
  kind: "found",
  cell,
  epoch: 12,
  shard: 3,
  position: 4_711,
  settled: true,
  ageMs: 40,
  layer: "memory",
  isStale: false,
  ...given,
});

export const none = (position = 4_712): RouteAnswer => ({
  kind: "none",
  shard: 3,
  position,
  settled: true,
  ageMs: 0,
  layer: "coordinator",
});

/** Routes with scripted answers. `refresh` replaces the answer about a name, as a fresh read does. */
export class ScriptedRoutes implements Routes {
  readonly answers = new Map<string, RouteAnswer>();
  readonly fresh = new Map<string, RouteAnswer>();
  readonly addresses = new Map<string, CellAddress>();
  readonly refreshed: (WrongRoute & { name: Name })[] = [];
  readonly minPositions: [number, number][][] = [];
  /** How often the addresses of the cells were to be read again. */
  cellRefreshes = 0;

  async find(name: Name, options: FindOptions = {}): Promise<RouteAnswer> {
    this.minPositions.push([...(options.minPositions ?? [])]);
    return this.answers.get(name.value) ?? none();
  }

  findMany(names: readonly Name[], options?: FindOptions): Promise<RouteAnswer[]> {
    return Promise.all(names.map((name) => this.find(name, options)));
  }

  async refresh(name: Name, wrong: WrongRoute): Promise<RouteAnswer> {
    this.refreshed.push({ name, ...wrong });
    const answer = this.fresh.get(name.value) ?? none();
    if (answer.kind !== "unavailable") this.answers.set(name.value, answer);
    return answer;
  }

  async cells(): Promise<ReadonlyMap<string, CellAddress>> {
    return this.addresses;
  }

  refreshCells(): void {
    this.cellRefreshes += 1;
  }

  close(): void {
    this.answers.clear();
  }
}

/** Every prefix of the path is a name, longest first, as in `/a/b`: `a/b`, then `a`. */
export const prefixes: Ruleset = rulesOf(({ url }) => {
  const parts = new URL(url).pathname.split("/").filter((part) => part !== "");
  const candidates = parts.map((_, index) => ({
    type: "ROUTES",
    value: parts.slice(0, parts.length - index).join("/"),
  }));
  if (candidates.length === 0) return [];
  return [{ rule: "paths", action: "classify", continues: false, candidates }];
});

export function rulesOf(matching: (request: { url: string | URL; headers: Headers }) => Match[]): Ruleset {
  return {
    rules: [],
    bucketTypes: ["ROUTES"],
    match: (request) => matching(request)[0] ?? null,
    matches: (request) => matching(request),
  };
}
