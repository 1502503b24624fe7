import { describe } from "vitest";
import { isSkipped } from "../../support/databases/available.ts";
import { MariadbServer } from "../scenarios/starts.ts";
import { mysqlDialect } from "./dialects.ts";
import { verificationSuite } from "./suite.ts";

describe.skipIf(isSkipped("MariaDB"))("MariaDB", () => {
  verificationSuite("verification through mysql2", mysqlDialect, new MariadbServer().mysql2);
});
