/** A cell whose organizations can be moved to another cell: rows in PostgreSQL, and a server for a router. */
import { and, eq, sql } from "drizzle-orm";
import { drizzle, type NodePgDatabase } from "drizzle-orm/node-postgres";
import { integer, pgTable, text } from "drizzle-orm/pg-core";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Pool } from "pg";
import { patience } from "../../../demo/patience.ts";
import { claimable, createCell, misdirected, type Cell } from "../../../src/users/cell/index.ts";
import { postgres } from "../../../src/users/cell/postgres/index.ts";
import { createClient, type Client, type ClientOptions } from "../../../src/users/client/index.ts";

type Orm = NodePgDatabase;
type Tx = Parameters<Parameters<Orm["transaction"]>[0]>[0];

export const users = pgTable("users", {
  id: text("id").primaryKey(),
  path: text("path").notNull(),
  organization: text("organization_id").notNull(),
  visits: integer("visits").notNull().default(0),
});

/** `read_only`: its rows are being copied. `moved`: another cell has it. */
type State = "active" | "read_only" | "moved";

const organizations = pgTable("organizations", {
  id: text("id").primaryKey(),
  state: text("state").$type<State>().notNull(),
});

const claimableUsers = claimable(users, {
  source: "RAILS_TABLE_USERS",
  subject: { type: "USER", id: "id" },
  scope: "organization",
  attributes: { path: "ROUTES" },
});

export type UserRow = typeof users.$inferSelect;

/** Thrown by writes of an organization that is not active here. */
export class NotActive extends Error {}

export interface MovingCellConfig {
  id: string;
  url: string;
  key: string;
  databaseUrl: string;
  client?: Partial<ClientOptions>;
}

export class MovingCell {
  readonly id: string;
  readonly client: Client;
  readonly orm: Orm;
  readonly cell: Cell<Tx>;
  readonly #pool: Pool;
  readonly #server: Server;

  constructor({ id, url, key, databaseUrl, client }: MovingCellConfig) {
    this.id = id;
    this.#pool = new Pool({ connectionString: databaseUrl, max: 10 });
    this.orm = drizzle(this.#pool);
    this.client = createClient({ ...patience, url, key, cell: id, ...client });
    this.cell = createCell<Tx>({
      client: this.client,
      database: postgres<Tx>(this.orm),
      tables: [claimableUsers],
      beginDeadlineMs: patience.deadlineMs,
      decideDeadlineMs: patience.deadlineMs,
    });
    this.#server = createServer((request, response) => {
      request.resume().once("end", () => void this.#answer(request, response));
    });
    this.#server.keepAliveTimeout = 0;
  }

  async install(): Promise<void> {
    await this.orm.execute(
      sql.raw(
        "CREATE TABLE users (id text PRIMARY KEY, path text NOT NULL, organization_id text NOT NULL, " +
          "visits int NOT NULL DEFAULT 0); " +
          "CREATE TABLE organizations (id text PRIMARY KEY, state text NOT NULL)",
      ),
    );
    await this.cell.install();
  }

  /** Starts the server of the cell, and returns its address. */
  async listen(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await this.#pool.end();
  }

  /** Waits for the writes of the organization that are under way. */
  async setState(organization: string, state: State): Promise<void> {
    await this.orm
      .insert(organizations)
      .values({ id: organization, state })
      .onConflictDoUpdate({ target: organizations.id, set: { state } });
  }

  /** Runs a transaction, if the organization is active, and keeps it so until the end. */
  write(organization: string, body: Parameters<Cell<Tx>["transaction"]>[0]): Promise<unknown> {
    return this.cell.transaction(async (tx) => {
      const [row] = await tx.db
        .select()
        .from(organizations)
        .where(eq(organizations.id, organization))
        .for("share");
      if (row?.state !== "active") throw new NotActive(`organization ${organization} is ${row?.state}`);
      return body(tx);
    });
  }

  rowsOf(organization: string): Promise<UserRow[]> {
    return this.orm.select().from(users).where(eq(users.organization, organization));
  }

  /** Replaces the rows of an organization without the SDK, as a copy of a database does. */
  async copy(organization: string, rows: readonly UserRow[]): Promise<void> {
    await this.orm.transaction(async (tx) => {
      await tx.delete(users).where(eq(users.organization, organization));
      if (rows.length > 0) await tx.insert(users).values([...rows]);
    });
  }

  async #answer({ method, url, headers }: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = decodeURIComponent((url ?? "/").slice(1));
    const [found] = await this.orm
      .select({ state: organizations.state })
      .from(users)
      .innerJoin(organizations, eq(organizations.id, users.organization))
      .where(eq(users.path, path));
    if (found === undefined || found.state === "moved") {
      const answer = misdirected(headers) ?? { status: 404, headers: {}, body: "" };
      return void response.writeHead(answer.status, answer.headers).end(answer.body);
    }
    if (method !== "GET" && !(await this.#visit(path)))
      return void response.writeHead(503, { "retry-after": "1" }).end();
    response.end(this.id);
  }

  /** A write that changes no name. False if the organization is not active any more. */
  #visit(path: string): Promise<boolean> {
    return this.orm.transaction(async (tx) => {
      const [active] = await tx
        .select({ id: users.id })
        .from(users)
        .innerJoin(organizations, eq(organizations.id, users.organization))
        .where(and(eq(users.path, path), eq(organizations.state, "active")))
        .for("share", { of: organizations });
      if (active === undefined) return false;
      await tx
        .update(users)
        .set({ visits: sql`${users.visits} + 1` })
        .where(eq(users.id, active.id));
      return true;
    });
  }
}
