import type { ChildProcess, StdioOptions } from "node:child_process";
import { randomUUID } from "node:crypto";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { makeOwnFolder, removeFolder } from "./own-folder.ts";
import { requireInstalled, type Database } from "./programs.ts";
import { ServerProcess } from "./server-process.ts";

/** A running database server, as a test uses it. */
export interface DatabaseServer {
  /** The connection over TCP, without a password. */
  readonly connection: Readonly<{ host: string; port: number; user: string; database: string }>;
  /** The socket as the drivers expect it: the folder for PostgreSQL, the file for MariaDB. */
  readonly socket: string;
  /** Returns the URL of `database`, by default of the one in `connection`. */
  url(database?: string): string;
  /** Creates an empty database and returns its name. */
  createDatabase(): Promise<string>;
  /** Kills every process of the server at once. Committed data survives that. */
  kill(): void;
  /** Starts the server again at the same address. If it still runs, it is killed first. */
  restart(): Promise<void>;
  /** Stops the server and removes its folder. */
  stop(): Promise<void>;
}

/** The differences between the kinds of databases. */
export interface Kind {
  database: Database;
  scheme: string;
  user: string;
  /** A database that exists from the start. */
  home: string;
  stopSignal: NodeJS.Signals;
  socketIn(folder: string): string;
  init(folder: string): void;
  run(folder: string, port: number, stdio: StdioOptions): ChildProcess;
  /** Runs one statement, over the socket. Over TCP, another server could answer. */
  query(folder: string, port: number, statement: string): Promise<void>;
}

const HOST = "127.0.0.1";

/**
 * Starts an empty server for one test. It ends with this process at the latest.
 *
 * @throws an error that says how to install the database, if it is missing
 */
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
