/** A coordinator and two cells, for a router on another runtime, which has nothing but `fetch`. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { misdirected } from "../../../src/users/cell/misdirected.ts";
import { createClient } from "../../../src/users/client/index.ts";
import { startTestCoordinator, type TestCoordinator } from "../../../src/users/testing/index.ts";
import type { Echo, Routed } from "./consumer/router-checks.ts";
import { serve, serveFetch, type Served } from "./consumer/serve.ts";

interface Cell extends Served {
  id: string;
  /** The names that it has. */
  rows: Set<string>;
}

/** Starts everything. The checks need `routed`. */
export async function startRouted(): Promise<{ routed: Routed; stop: () => Promise<void> }> {
  const coordinator = await startTestCoordinator({ cells: ["1", "2"] });
  const { url, keys, fetch } = coordinator;
  const api = await serveFetch((path, init) => fetch(new URL(path, url), init));
  const left: string[] = [];
  const cells = [await startCell("1", left), await startCell("2", left)];
  const operator = createClient({ url, key: keys.operator, fetch });
  for (const { id, url: address } of cells) await operator.cells.change(id, { address });
  const control = await serveFetch(async (path) => {
    const [, command, name = "", to] = path.split("/");
    if (command === "move") await move(coordinator, cells, name, to);
    return Response.json(left);
  });
  const servers = [api, control, ...cells].map(({ server }) => server);
  return {
    routed: { url: api.url, key: keys.router, control: control.url },
    stop: async () => {
      for (const server of servers) server.close().closeAllConnections();
      await coordinator.close();
    },
  };
}

/** Takes a name from its cell, and gives it to another. */
async function move(
  { url, keys, fetch }: TestCoordinator,
  cells: readonly Cell[],
  name: string,
  to: string | undefined,
): Promise<void> {
  const claim = {
    bucket: { type: "ROUTES", value: name },
    subject: { type: "USER", id: 1 },
    source: { type: "RAILS_TABLE_ROUTES", id: 1 },
  } as const;
  const clientOf = ({ id }: Cell) => createClient({ url, key: keys.cell(id), cell: id, fetch });
  for (const cell of cells.filter(({ rows }) => rows.delete(name))) {
    const { leases } = clientOf(cell);
    await leases.commit((await leases.begin({ destroys: [claim] })).uuid);
  }
  for (const cell of cells.filter(({ id }) => id === to)) {
    const { leases } = clientOf(cell);
    cell.rows.add(name);
    await leases.commit((await leases.begin({ creates: [claim] })).uuid);
  }
}

async function startCell(id: string, left: string[]): Promise<Cell> {
  const rows = new Set<string>();
  const served = await serve((request, response) => {
    answer({ id, rows }, request, response, left).catch(() => response.destroy());
  });
  return { id, rows, ...served };
}

/** Describes each request about its own names, and answers 421 to all others. */
async function answer(
  { id, rows }: Pick<Cell, "id" | "rows">,
  request: IncomingMessage,
  response: ServerResponse,
  left: string[],
): Promise<void> {
  const { url = "/", method = "GET", headers } = request;
  const [, name = "", page] = url.split(/[/?]/);
  response.once("close", () => {
    if (!response.writableFinished) left.push(name);
  });
  const body = await buffer(request);
  const refusal = rows.has(name) ? undefined : misdirected(headers);
  if (refusal !== undefined)
    return void response.writeHead(refusal.status, refusal.headers).end(refusal.body);
  if (page === "hang") return;
  const { "leasehold-hops": hops, cookie } = headers;
  const echo: Echo = { cell: id, method, url, hops: String(hops), bytes: body.length, cookie };
  const text = JSON.stringify(echo);
  if (page !== "gzip") return void response.end(text);
  response.setHeader("content-encoding", "gzip").end(gzipSync(text));
}
