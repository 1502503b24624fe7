import { Client } from "pg";
import { initPostgres, POSTGRES_USER, runPostgres } from "./postgres-program.ts";
import { startServer, type DatabaseServer, type Kind } from "./server.ts";

const HOME = "postgres";

const postgres: Kind = {
  database: "PostgreSQL",
  scheme: "postgres",
  user: POSTGRES_USER,
  home: HOME,
  // SIGQUIT ends the server at once and, unlike SIGKILL, lets it release its shared memory.
  stopSignal: "SIGQUIT",
  socketIn: (folder) => folder,
  init: initPostgres,
  // Tests only kill processes, and written data survives that without fsync.
  run: (folder, port, stdio) =>
    runPostgres(folder, { listen_addresses: "127.0.0.1", port, fsync: "off" }, stdio),
  async query(folder, port, statement) {
    const client = new Client({ host: folder, port, user: POSTGRES_USER, database: HOME });
    await client.connect();
    try {
      await client.query(statement);
    } finally {
      await client.end();
    }
  },
};

/**
 * Starts a PostgreSQL server for one test.
 *
 * @throws an error that says how to install PostgreSQL, if it is missing
 */
export const startPostgres = (): Promise<DatabaseServer> => startServer(postgres);
