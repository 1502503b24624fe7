/** Tests the database servers that other tests start with test/support/databases. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createConnection, type Connection } from "mysql2/promise";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import postgres from "postgres";
import { describe, expect, onTestFinished, test } from "vitest";
import { isSkipped } from "../../support/databases/available.ts";
import { startMariadb } from "../../support/databases/mariadb.ts";
import { startPostgres } from "../../support/databases/postgres.ts";
import { programOf } from "../../support/databases/programs.ts";
import type { DatabaseServer } from "../../support/databases/server.ts";

const support = join(import.meta.dirname, "../../support/databases");

/** Runs one statement in its own session. */
type Ask = (server: DatabaseServer, database: string, statement: string) => Promise<readonly object[]>;

const askPg = async (client: Client, statement: string): Promise<readonly object[]> => {
  await client.connect();
  try {
    return (await client.query<object>(statement)).rows;
  } finally {
    await client.end();
  }
};

const askPostgresJs: Ask = async (server, database, statement) => {
  const sql = postgres(server.url(database), { max: 1 });
  try {
    return [...(await sql.unsafe(statement))];
  } finally {
    await sql.end();
  }
};

const askMysql = async (connection: Connection, statement: string): Promise<readonly object[]> => {
  try {
    const [rows] = await connection.query(statement);
    return Array.isArray(rows) ? rows.map((row) => ({ ...row })) : [];
  } finally {
    await connection.end();
  }
};

const toPostgres: Record<string, Ask> = {
  "pg over TCP": ({ connection }, database, statement) =>
    askPg(new Client({ ...connection, database }), statement),
  "pg over the socket": ({ connection, socket }, database, statement) =>
    askPg(new Client({ ...connection, host: socket, database }), statement),
  "postgres over TCP": askPostgresJs,
};

const toMariadb: Record<string, Ask> = {
  "mysql2 over TCP": async ({ connection }, database, statement) =>
    askMysql(await createConnection({ ...connection, database }), statement),
  "mysql2 by its URL": async (server, database, statement) =>
    askMysql(await createConnection(server.url(database)), statement),
  "mysql2 over the socket": async ({ connection: { user }, socket }, database, statement) =>
    askMysql(await createConnection({ socketPath: socket, user, database }), statement),
};

const foldersOf = (pid: number): string[] =>
  readdirSync(tmpdir()).filter((name) => name.startsWith(`leasehold-database-${pid}-`));

/**
 * Returns whether a process still uses one of the folders of `pid`. A server that no longer listens may still
 * be removing files, and a folder that is removed at the same time would stay behind.
 */
const isUsed = (pid: number): boolean =>
  readdirSync("/proc").some((name) => {
    try {
      return (
        /^\d+$/.test(name) &&
        readFileSync(`/proc/${name}/cmdline`, "utf8").includes(`leasehold-database-${pid}-`)
      );
    } catch {
      return false;
    }
  });

const isListening = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("error", () => resolve(false));
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
  });

/** `module` is the path of the module that exports `start`. */
function behaves(start: () => Promise<DatabaseServer>, module: string, ways: Record<string, Ask>): void {
  test("every driver reaches it, committed rows survive a kill, and stop removes everything", async () => {
    const server = await start();
    onTestFinished(() => server.stop());
    const database = await server.createDatabase();
    expect(await server.createDatabase()).not.toBe(database);
    const drivers = Object.entries(ways);
    const askAll = async (statement: string): Promise<void> => {
      for (const [name, ask] of drivers)
        expect(await ask(server, database, statement), name).toEqual([{ id: 1 }]);
    };

    for (const statement of ["CREATE TABLE kept (id integer PRIMARY KEY)", "INSERT INTO kept VALUES (1)"])
      await drivers[0]?.[1](server, database, statement);
    await askAll("SELECT id FROM kept");
    server.kill();
    for (const [name, ask] of drivers)
      await expect(ask(server, database, "SELECT 1"), name).rejects.toThrow();
    await server.restart();
    await askAll("SELECT id FROM kept");
    // Restart it again, this time without a kill.
    await server.restart();
    await askAll("SELECT id FROM kept");

    await server.stop();
    expect(await isListening(server.connection.port)).toBe(false);
    expect(foldersOf(process.pid)).toEqual([]);
  });

  test("it ends with the process that started it, and the next server removes its folder", async () => {
    const script = `const { ${start.name} } = await import(${JSON.stringify(module)});
      console.log((await ${start.name}()).connection.port);`;
    const starter = spawn(process.execPath, ["--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = (await Promise.race([once(starter.stdout, "data"), once(starter, "exit")])) as [unknown];
    const port = Number(String(line));
    const pid = starter.pid ?? 0;
    expect(await isListening(port)).toBe(true);
    expect(isUsed(pid)).toBe(true);
    const ended = once(starter, "exit");
    starter.kill("SIGKILL");
    await ended;
    await expect.poll(async () => isUsed(pid) || (await isListening(port))).toBe(false);
    expect(foldersOf(pid)).toHaveLength(1);
    await (await start()).stop();
    expect(foldersOf(pid)).toEqual([]);
  });
}

describe.skipIf(isSkipped("PostgreSQL"))("PostgreSQL", () =>
  behaves(startPostgres, join(support, "postgres.ts"), toPostgres),
);
describe.skipIf(isSkipped("MariaDB"))("MariaDB", () =>
  behaves(startMariadb, join(support, "mariadb.ts"), toMariadb),
);

test("a missing program causes a one-sentence error with the command that installs it", () => {
  expect(() => programOf("MariaDB", "no-such-program")).toThrow(
    /^MariaDB is not installed; install it with npm run setup$/,
  );
});
