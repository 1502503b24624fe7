import { drizzle } from "drizzle-orm/node-postgres";
import { Pool, type PoolClient } from "pg";
import {
  createCell,
  type Cell,
  type CellDatabase,
  type CellEvent,
  type CellOptions,
} from "../../../src/users/cell/index.ts";
import { postgres } from "../../../src/users/cell/postgres/index.ts";
import { createClient, type Client, type ClientOptions } from "../../../src/users/client/index.ts";
import type { Orm, Tx } from "./orm.ts";
import { claimables } from "./tables.ts";

/** The settings of a cell's process. */
export interface CellConfig {
  url: string;
  cell: string;
  key: string;
  databaseUrl: string;
}

export interface OpenOptions {
  client?: Partial<ClientOptions>;
  cell?: Partial<CellOptions<Tx>>;
  /** The name of the connections in `pg_stat_activity`. */
  applicationName?: string;
  /** Called with every statement right before it is written. */
  logQuery?: (text: string) => void;
  /** Called with every new connection to the database. */
  onConnect?: (connection: PoolClient) => void;
  onEvent?: (event: CellEvent) => void;
}

export interface OpenCell {
  orm: Orm;
  client: Client;
  database: CellDatabase<Tx>;
  cell: Cell<Tx>;
  close(): Promise<void>;
}

/** Long deadlines, so that a slow machine does not change the course of a case. */
const LONG_MS = 300_000;

/** Opens a cell as one process does. Several may be open on one database. */
export function openCell(
  { url, cell: id, key, databaseUrl }: CellConfig,
  options: OpenOptions = {},
): OpenCell {
  const { applicationName = "cell", logQuery, onConnect, onEvent } = options;
  const pool = new Pool({ connectionString: databaseUrl, max: 10, application_name: applicationName });
  // A killed server ends its connections. Without these handlers that would end this process.
  pool.on("error", () => {});
  pool.on("connect", (connection) => {
    connection.on("error", () => {});
    onConnect?.(connection);
  });
  const orm = drizzle(pool, logQuery === undefined ? {} : { logger: { logQuery } });
  const client = createClient({
    url,
    key,
    cell: id,
    retries: 0,
    breaker: false,
    attemptMs: LONG_MS,
    deadlineMs: LONG_MS,
    ...options.client,
  });
  const database = postgres<Tx>(orm);
  const cell = createCell<Tx>({
    client,
    database,
    tables: claimables,
    beginDeadlineMs: LONG_MS,
    preflightDeadlineMs: LONG_MS,
    decideDeadlineMs: LONG_MS,
    ...(onEvent === undefined ? {} : { onEvent }),
    ...options.cell,
  });
  return { orm, client, database, cell, close: () => pool.end() };
}
