import { sql } from "drizzle-orm";
import type { Env } from "../env.ts";
import { Database } from "./database.ts";
import { cronRuns } from "./schema.ts";

/** A health check must answer while its caller still listens. */
const TIMEOUT_MS = 1_000;

/** Whether the listings that rest on D1 can be had: it answers, and has its tables. */
export async function d1Health(env: Env): Promise<"up" | "down"> {
  const asked = await new Database(env, { timeoutMs: TIMEOUT_MS, attempts: 1 }).run("health", (orm) =>
    orm.run(sql`SELECT 1 FROM ${cronRuns} LIMIT 1`),
  );
  return asked.ok ? "up" : "down";
}
