import { Client } from "pg";
import { initPostgres, POSTGRES_USER, runPostgres } from "./postgres-program.ts";
import { startServer, type DatabaseServer, type Kind } from "./server.ts";

const HOME = "postgres";

const postgres: Kind = {
  database: "PostgreSQL",
  scheme: "postgres",
  user: POSTGRES_USER,
  home: HOME,
  // At once, and unlike a kill it gives its shared memory back.
  stopSignal: "SIGQUIT",
  socketIn: (folder) => folder,
  init: initPostgres,
  // No test pulls the plug, and what was written outlives a killed process without fsync too.
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

/** A PostgreSQL of a test's own. Throws one sentence when it is not installed. */
export const startPostgres = (): Promise<DatabaseServer> => startServer(postgres);
