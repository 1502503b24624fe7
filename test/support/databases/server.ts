import type { ChildProcess, StdioOptions } from "node:child_process";
import { randomUUID } from "node:crypto";
import { freePort } from "../free-port.ts";
import { makeOwnFolder, removeFolder } from "./own-folder.ts";
import { requireInstalled, type Database } from "./programs.ts";
import { ServerProcess } from "./server-process.ts";

/** A running server, as a test sees it. */
export interface DatabaseServer {
  /** Over TCP, without a password. */
  readonly connection: Readonly<{ host: string; port: number; user: string; database: string }>;
  /** As the drivers want it: PostgreSQL's take the folder, MariaDB's the file. */
  readonly socket: string;
  /** Of `database`; without it, of the one in `connection`. */
  url(database?: string): string;
  /** Makes an empty one, and tells its name. */
  createDatabase(): Promise<string>;
  /** Kills every process of the server at once. What was committed survives it. */
  kill(): void;
  /** Starts it again at the same address. One that still runs is killed before. */
  restart(): Promise<void>;
  /** Ends it and removes its folder. */
  stop(): Promise<void>;
}

/** What is different from one database to the next. */
export interface Kind {
  database: Database;
  scheme: string;
  user: string;
  /** One that is there from the start. */
  home: string;
  stopSignal: NodeJS.Signals;
  socketIn(folder: string): string;
  init(folder: string): void;
  run(folder: string, port: number, stdio: StdioOptions): ChildProcess;
  /** Runs one statement, over the socket: over TCP somebody else's server could answer. */
  query(folder: string, port: number, statement: string): Promise<void>;
}

const HOST = "127.0.0.1";

/** An empty server of a test's own. It ends with this process, if not before. Throws one sentence when there is none to start. */
export async function startServer(kind: Kind): Promise<DatabaseServer> {
  requireInstalled(kind.database);
  const folder = makeOwnFolder();
  try {
    kind.init(folder);
  } catch (error) {
    removeFolder(folder);
    throw error;
  }
  const port = await freePort();
  const { database, stopSignal, user, home } = kind;
  const query = (statement: string): Promise<void> => kind.query(folder, port, statement);
  const run = (stdio: StdioOptions): ChildProcess => kind.run(folder, port, stdio);
  const server = new ServerProcess({ database, folder, stopSignal, run, ask: () => query("SELECT 1") });
  try {
    await server.start();
  } catch (error) {
    await server.stop();
    throw error;
  }
  return {
    connection: { host: HOST, port, user, database: home },
    socket: kind.socketIn(folder),
    url: (name = home) => `${kind.scheme}://${user}@${HOST}:${port}/${name}`,
    createDatabase: async () => {
      const name = `test_${randomUUID().replaceAll("-", "")}`;
      await query(`CREATE DATABASE ${name}`);
      return name;
    },
    kill: () => server.kill(),
    restart: () => server.restart(),
    stop: () => server.stop(),
  };
}
