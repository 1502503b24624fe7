/** A part of the conformance suite with Kysely, another one each day. */
import type { Generated, Transaction } from "kysely";
import * as vitest from "vitest";
import { cellConformance } from "../../../src/cell/conformance/index.ts";
import { kyselyTables } from "../../../src/cell/kysely/index.ts";
import { isSkipped } from "../../support/databases/available.ts";
import type { DatabaseServer } from "../../support/databases/server.ts";
import { partOfSuite } from "../../support/part-of-suite.ts";
import { kinds, run, type ServerKind } from "./servers.ts";

interface Database {
  users: { id: Generated<number>; username: string; bio: string | null };
  emails: {
    id: Generated<number>;
    owner: number;
    email: string | null;
    confirmed: Generated<boolean | number>;
  };
  organizations: { id: Generated<number>; path: string };
  redirects: { id: Generated<number>; path: string };
  projects: { id: string; path: string };
  accounts: {
    id: Generated<number>;
    username: string;
    bot: Generated<boolean | number>;
    updated_at: Generated<Date>;
  };
  teams: { id: string; path: string };
}

const table = kyselyTables<Database>();
const tables = {
  users: table("users"),
  emails: table("emails"),
  organizations: table("organizations"),
  redirects: table("redirects"),
  projects: table("projects"),
  accounts: table("accounts"),
  teams: table("teams"),
};

function suite(kind: ServerKind): void {
  let server: DatabaseServer;
  vitest.beforeAll(async () => {
    server = await kind.start();
  });
  vitest.afterAll(() => server.stop());

  cellConformance<Transaction<Database>>(partOfSuite(vitest, 3), {
    name: kind.name,
    dialect: kind.dialect,
    isConcurrent: true,
    looksAtCommit: true,
    open: async () => {
      const db = kind.connect<Database>(server.url(await server.createDatabase()), {});
      return {
        tables,
        database: () => kind.database(db, { fenceWaitMs: 300 }),
        where: (_table, values) => values,
        query: (statement) => run(db, statement),
        write: (tx, statement) => run(tx, statement),
        stop: () => db.destroy(),
      };
    },
  });
}

for (const kind of kinds) vitest.describe.skipIf(isSkipped(kind.name))("Kysely", () => suite(kind));
