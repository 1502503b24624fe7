import { isInstalled, type Database } from "./programs.ts";

/** For `describe.skipIf`. */
export const isSkipped = (database: Database): boolean => !isInstalled(database);
