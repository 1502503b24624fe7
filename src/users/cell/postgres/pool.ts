import { entityKind } from "drizzle-orm";
import { invalidArgument } from "../errors.ts";

/**
 * On one connection of node-postgres, concurrent transactions are one: the COMMIT of each saves what the
 * others wrote so far, without their leases. PGlite and postgres-js run such transactions one after the
 * other.
 */
export function refuseSingleClient(db: object): void {
  // Compares drizzle's class marker, because importing the class would import its driver.
  if ((db.constructor as { [entityKind]?: unknown })[entityKind] !== "NodePgDatabase") return;
  const { $client: client } = db as { $client?: unknown };
  if (typeof client === "object" && client !== null && !isPool(client))
    throw invalidArgument(
      "db",
      "must have a pool, because concurrent transactions on one connection would be one: " +
        "use drizzle(new Pool(...))",
    );
}

/**
 * Recognizes pools by class name, as drizzle does, or by a property, in case a bundler has renamed the class.
 */
const isPool = (client: object): boolean =>
  client.constructor.name.includes("Pool") || "totalCount" in client;
