import { sql } from "drizzle-orm";
import type { Env } from "../env.ts";
import { Database } from "./database.ts";
import { cronRuns } from "./schema.ts";

/** Short, because a health check has to answer before its caller's timeout. */
const TIMEOUT_MS = 1_000;

/** Whether D1 answers and has its tables. */
export async function d1Health(env: Env): Promise<"up" | "down"> {
  const asked = await new Database(env, { timeoutMs: TIMEOUT_MS, attempts: 1 }).run("health", (orm) =>
    orm.run(sql`SELECT 1 FROM ${cronRuns} LIMIT 1`),
  );
  return asked.ok ? "up" : "down";
}
