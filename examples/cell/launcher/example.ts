/** Starts the whole example: a coordinator, two cells, and a router. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { TypesDocument } from "leasehold/cell";
import { createClient } from "leasehold/client";
import { createRoutes, type Routes } from "leasehold/router";
import { startCoordinator, type Coordinator } from "../../../src/hosts/workerd/coordinator.ts";
import { routerApp } from "../router/router.ts";
import { HOST } from "../web/local.ts";
import { listen } from "../web/listen.ts";
import { CellProcess } from "./cell-process.ts";
import type { Timing } from "./timing.ts";
import { Ports } from "./ports.ts";
import { applyTypes } from "./types.ts";

export interface ExampleOptions {
  port: number;
  /** The folder for all stored data. */
  folder: string;
  timing: Timing;
  /** The types to declare at the coordinator. */
  types: TypesDocument;
  /** The database URL of each cell. A cell without one uses PGlite. */
  databaseUrls: Readonly<Record<string, string | undefined>>;
}

export interface Example {
  url: string;
  coordinatorUrl: string;
  cells: readonly CellProcess[];
  /** Resolves when a part has failed and cannot be restarted. */
  failed: Promise<Error>;
  stop(): Promise<void>;
}

const CELLS = ["1", "2"];

export async function startExample(options: ExampleOptions): Promise<Example> {
  const { port, folder, timing, types, databaseUrls } = options;
  const ports = new Ports(port);
  const routerPort = await ports.free();
  const coordinator = await start(await ports.free(), folder);
  const { url: coordinatorUrl, keys } = coordinator;
  const cells: CellProcess[] = [];
  let routes: Routes | undefined;
  let closeRouter: (() => Promise<void>) | undefined;
  const stop = async (): Promise<void> => {
    await closeRouter?.();
    routes?.close();
    await Promise.all(cells.map((cell) => cell.stop()));
    await coordinator.stop();
  };
  try {
    const operator = createClient({ url: coordinatorUrl, key: keys.operator });
    await applyTypes(operator, types);
    for (const cell of CELLS) {
      const own = { port: await ports.free(), folder: join(folder, `cell-${cell}`) };
      mkdirSync(own.folder, { recursive: true });
      const address = `http://${HOST}:${own.port}`;
      // The address is part of every lookup's answer, so that routers can forward requests to the cell.
      await operator.cells.change(cell, { address, name: `Cell ${cell}` });
      const shared = {
        cell,
        cells: CELLS,
        routerPort,
        coordinator: coordinatorUrl,
        key: keys.cells[cell] ?? "",
        types,
        timing,
      };
      cells.push(new CellProcess({ ...shared, ...own, databaseUrl: databaseUrls[cell] }, address));
    }
    await Promise.all(cells.map((cell) => cell.start()));
    // Reports would let the router use an answer for minutes, and its page could not show how it gets older.
    routes = createRoutes({
      url: coordinatorUrl,
      key: keys.router,
      reports: false,
      maxAgeMs: timing.lookupCacheMs,
    });
    const router = routerApp({ port: routerPort, cells, routes, coordinatorUrl, timing });
    closeRouter = await listen(router, routerPort);
  } catch (error) {
    await stop();
    throw error;
  }
  const failed = Promise.race([coordinator, ...cells].map((part) => part.failed));
  return { url: `http://${HOST}:${routerPort}`, coordinatorUrl, cells, failed, stop };
}

async function start(port: number, folder: string): Promise<Coordinator> {
  try {
    return await startCoordinator({ port, stateFolder: join(folder, "coordinator") });
  } catch (error) {
    throw new Error(
      `the coordinator could not be started: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    );
  }
}
