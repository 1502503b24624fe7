import { describe } from "vitest";
import { isSkipped } from "../../support/databases/available.ts";
import { PostgresServer } from "../scenarios/starts.ts";
import { postgresDialect } from "./dialects.ts";
import { verificationSuite } from "./suite.ts";

describe.skipIf(isSkipped("PostgreSQL"))("PostgreSQL", () => {
  verificationSuite("verification through node-postgres", postgresDialect, new PostgresServer().nodePostgres);
});
