import { pglite } from "../scenarios/starts.ts";
import { postgresDialect } from "./dialects.ts";
import { verificationSuite } from "./suite.ts";

verificationSuite("verification on PGlite", postgresDialect, pglite);
