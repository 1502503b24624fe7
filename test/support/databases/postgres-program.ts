/** Debian's PostgreSQL on a folder of its own. What it listens on, and how it keeps its data, is the caller's. */
import { spawn, type ChildProcess, type StdioOptions } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { asUser, giveTo, runAsUser } from "./as-user.ts";
import { programOf } from "./programs.ts";

/** Of the system, and of the database. */
export const POSTGRES_USER = "postgres";

/** Makes the database in `folder`, unless it has one. */
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

/** Its socket is in `folder` too. It ends with this process, at once and in order. */
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
