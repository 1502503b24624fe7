import { databases, isInstalled, type Database } from "./programs.ts";

/** Set where a test that does not run must not pass for one that does. */
export const areRequired = process.env["REQUIRE_DATABASES"] === "1";

export const missingDatabases = (): Database[] => databases.filter((database) => !isInstalled(database));

/** For `describe.skipIf`. Where the databases are required such a test runs, and fails with what is missing. */
export const isSkipped = (database: Database): boolean => !areRequired && !isInstalled(database);
