/** Runs Debian's PostgreSQL in a folder. The caller determines the address and the durability settings. */
import { spawn, type ChildProcess, type StdioOptions } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { asUser, giveTo, runAsUser } from "./as-user.ts";
import { programOf } from "./programs.ts";

/** The user of the operating system and of the database. */
export const POSTGRES_USER = "postgres";

/** Creates the database in `folder` if it does not exist yet. */
export function initPostgres(folder: string): void {
  const initdb = programOf("PostgreSQL", "initdb");
  giveTo(POSTGRES_USER, folder);
  const data = join(folder, "data");
  if (existsSync(data)) return;
  runAsUser(
    POSTGRES_USER,
    [initdb, "-D", data, "-A", "trust", "-E", "UTF8", "--no-locale", "-U", POSTGRES_USER],
    folder,
  );
}

/** Runs the server, with its socket in `folder`. When this process ends, the server shuts down at once. */
export function runPostgres(
  folder: string,
  settings: Readonly<Record<string, string | number>>,
  stdio: StdioOptions,
): ChildProcess {
  const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const server = programOf("PostgreSQL", "postgres");
  const [program, ...args] = asUser(
    POSTGRES_USER,
    [server, "-D", join(folder, "data"), "-k", folder, ...flags],
    "QUIT",
  );
  return spawn(program, args, { cwd: folder, stdio });
}
