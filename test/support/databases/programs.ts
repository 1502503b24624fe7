import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

export type Database = "PostgreSQL" | "MariaDB";

const server = { PostgreSQL: "postgres", MariaDB: "mariadbd" } satisfies Record<Database, string>;

const POSTGRES_VERSIONS = "/usr/lib/postgresql";

/**
 * Returns the folders of PostgreSQL's programs, newest version first. Debian keeps them outside of PATH, in a
 * folder per version.
 */
function postgresFolders(): string[] {
  if (!existsSync(POSTGRES_VERSIONS)) return [];
  const newestFirst = readdirSync(POSTGRES_VERSIONS).toSorted((a, b) => Number(b) - Number(a));
  return newestFirst.map((version) => join(POSTGRES_VERSIONS, version, "bin"));
}

function find(database: Database, name: string): string | undefined {
  // A user's PATH often does not include /usr/sbin.
  const folders = [
    ...(database === "PostgreSQL" ? postgresFolders() : []),
    "/usr/sbin",
    ...(process.env["PATH"] ?? "").split(":"),
  ];
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}

export const isInstalled = (database: Database): boolean => find(database, server[database]) !== undefined;

const notInstalled = (database: Database): Error =>
  new Error(`${database} is not installed; install it with npm run setup`);

/** @throws an error that says how to install the database, if it is missing */
export function requireInstalled(database: Database): void {
  if (!isInstalled(database)) throw notInstalled(database);
}

export function programOf(database: Database, name: string): string {
  const path = find(database, name);
  if (path === undefined) throw notInstalled(database);
  return path;
}
