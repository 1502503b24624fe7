/** Two small cells for `npm run router`, each with one name. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { misdirected } from "../../users/cell/misdirected.ts";
import { createClient } from "../../users/client/index.ts";
import type { Coordinator } from "./coordinator.ts";

export interface DemoCell {
  id: string;
  address: string;
  /** The name that it owns. */
  name: string;
  stop(): Promise<void>;
}

/** The names of the cells. Nothing but the coordinator knows which cell has which. */
const NAMES: Readonly<Record<string, string>> = { "1": "ada", "2": "grace" };

/** Starts the cells, tells the coordinator where they are, and claims their names. */
export async function startDemoCells({ url, keys }: Coordinator): Promise<DemoCell[]> {
  const operator = createClient({ url, key: keys.operator });
  const cells: DemoCell[] = [];
  try {
    for (const [id, name] of Object.entries(NAMES)) {
      const server = await serve(id, name);
      const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      cells.push({ id, address, name, stop: () => stop(server) });
      await operator.cells.change(id, { address });
      const { leases } = createClient({ url, key: keys.cells[id] ?? "", cell: id });
      const owner = { type: "USER", id: Number(id) } as const;
      const lease = await leases.begin({
        creates: [
          {
            bucket: { type: "ROUTES", value: name },
            subject: owner,
            source: { type: "RAILS_TABLE_ROUTES", id: Number(id) },
          },
        ],
      });
      await leases.commit(lease.uuid);
    }
  } catch (error) {
    await Promise.all(cells.map((cell) => cell.stop()));
    throw error;
  }
  return cells;
}

async function serve(id: string, own: string): Promise<Server> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://cell");
    const name = pathname.split("/")[1]?.toLowerCase();
    if (name === "" || name === own) {
      const what = name === "" ? "the start page" : `${own}'s page`;
      const hops = String(request.headers["leasehold-hops"]);
      const age = String(request.headers["leasehold-age-ms"] ?? "no lookup");
      response.setHeader("content-type", "text/plain; charset=utf-8");
      return void response.end(`Cell ${id}: ${what}. Hops: ${hops}. Age of the route in ms: ${age}.\n`);
    }
    const answer = misdirected(request.headers) ?? { status: 404, headers: {}, body: "not found\n" };
    response.writeHead(answer.status, answer.headers).end(answer.body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

async function stop(server: Server): Promise<void> {
  server.closeAllConnections();
  server.close();
  await once(server, "close");
}
