import { isInstalled, type Database } from "./programs.ts";

/** Whether a database is installed, for `describe.skipIf`. */
export const isSkipped = (database: Database): boolean => !isInstalled(database);
