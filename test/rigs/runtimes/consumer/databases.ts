import { randomUUID } from "node:crypto";
import { createConnection } from "mysql2/promise";
import { Client } from "pg";

export type Dialect = "postgres" | "mysql";

/** The servers that run, by dialect. */
const servers = JSON.parse(process.env["SERVERS"] ?? "{}") as Partial<Record<Dialect, string>>;

export const dialects = Object.keys(servers) as readonly Dialect[];

/** Creates an empty database, and answers its URL. */
export async function createDatabase(dialect: Dialect): Promise<string> {
  const server = servers[dialect] ?? "";
  const name = `test_${randomUUID().replaceAll("-", "")}`;
  await runStatement(dialect, server, `CREATE DATABASE ${name}`);
  return new URL(name, server).href;
}

/** Runs a statement on a connection of its own. */
export async function runStatement(dialect: Dialect, url: string, statement: string): Promise<void> {
  if (dialect === "postgres") {
    const client = new Client({ connectionString: url });
    await client.connect();
    await client.query(statement);
    await client.end();
    return;
  }
  const connection = await createConnection({ uri: url });
  await connection.query(statement);
  await connection.end();
}
