import { entityKind } from "drizzle-orm";
import { invalidArgument } from "../errors.ts";

/**
 * On one connection of node-postgres, transactions that run at the same time are one: the COMMIT of each saves what the others have written so far,
 * without their leases. PGlite and postgres-js have each transaction wait for the one before it.
 */
export function refuseSingleClient(db: object): void {
  // Drizzle's own mark of its classes: to import that one would need its driver.
  if ((db.constructor as { [entityKind]?: unknown })[entityKind] !== "NodePgDatabase") return;
  const { $client: client } = db as { $client?: unknown };
  if (typeof client === "object" && client !== null && !isPool(client))
    throw invalidArgument(
      "db",
      "must have a pool, not one connection: transactions that run at the same time would be one. Use drizzle(new Pool(...))",
    );
}

/** As drizzle tells them, by name; and by what pg's pools have, where a bundler has renamed them. */
const isPool = (client: object): boolean =>
  client.constructor.name.includes("Pool") || "totalCount" in client;
