import { sql } from "drizzle-orm";
import { ok, type Result } from "../kernel/refusal.ts";
import { messageOf, type Database, type Orm } from "./database.ts";

/**
 * The names of the files in migrations/, in order. test/hosts/node/migrations.test.ts compares them. They are
 * apart from the SQL, which the Worker does not need.
 */
export const migrationNames = ["0000_projection.sql"] as const;

/** Returns which of this version's migrations D1 lacks. It takes one small read. */
export async function missingMigrations(database: Database): Promise<Result<string[]>> {
  const read = await database.run("read migrations", readApplied);
  if (!read.ok) return read;
  const applied = new Set(read.value);
  return ok(migrationNames.filter((name) => !applied.has(name)));
}

/** Reads the table that `wrangler d1 migrations apply` makes and fills. */
async function readApplied(orm: Orm): Promise<string[]> {
  try {
    const rows = await orm.all<{ name: string }>(sql`SELECT name FROM d1_migrations`);
    return rows.map(({ name }) => name);
  } catch (error) {
    // No migration was ever applied.
    if (messageOf(error).includes("no such table: d1_migrations")) return [];
    throw error;
  }
}
