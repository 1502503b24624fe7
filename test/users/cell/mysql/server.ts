import { drizzle } from "drizzle-orm/mysql2";
import { createPool, type Pool, type RowDataPacket } from "mysql2/promise";
import { mysql, type MysqlOptions } from "../../../../src/users/cell/mysql/index.ts";
import { startMariadb } from "../../../support/databases/mariadb.ts";
import type { DatabaseServer } from "../../../support/databases/server.ts";

const connected = (pool: Pool) => drizzle(pool);
export type MysqlDb = ReturnType<typeof connected>;
export type Tx = Parameters<Parameters<MysqlDb["transaction"]>[0]>[0];

/** A MariaDB server, a database with the cell's tables, and direct access to it. */
export class Installed {
  readonly server: DatabaseServer;
  readonly url: string;
  readonly pool: Pool;
  readonly db: MysqlDb;
  readonly cell: ReturnType<typeof mysql<Tx>>;

  private constructor(server: DatabaseServer, name: string, options: MysqlOptions) {
    this.server = server;
    this.url = server.url(name);
    // Ids beyond 2^53 must be exact.
    this.pool = createPool({ uri: this.url, connectionLimit: 10, supportBigNumbers: true });
    this.db = connected(this.pool);
    this.cell = mysql<Tx>(this.db, options);
  }

  static async start(options: MysqlOptions = {}): Promise<Installed> {
    const server = await startMariadb();
    const installed = new Installed(server, await server.createDatabase(), options);
    await installed.cell.install();
    return installed;
  }

  async rows(statement: string): Promise<Record<string, unknown>[]> {
    const [rows] = await this.pool.query<RowDataPacket[]>(statement);
    return rows.map((row) => ({ ...row }));
  }

  async run(...statements: string[]): Promise<void> {
    for (const statement of statements) await this.pool.query(statement);
  }

  /** Saves a lease in a local transaction of its own. */
  async save(uuid: string): Promise<void> {
    const ran = await this.cell.run((tx) =>
      this.cell.insertLease(tx, { uuid, sources: [{ type: "RAILS_TABLE_USERS", id: uuid }] }),
    );
    if (ran.kind !== "committed") throw ran.error;
  }

  async stop(): Promise<void> {
    await this.pool.end();
    await this.server.stop();
  }
}
