import { directorySchema } from "./directory/schema.ts";
import { ledgerSchema } from "./ledger/schema.ts";
import { shardSchema } from "./shard/schema.ts";
import type { Steps } from "./tables.ts";

/** The steps that make the tables of each kind of object. */
export const schemas = {
  ledger: ledgerSchema,
  shard: shardSchema,
  directory: directorySchema,
} as const satisfies Record<string, Steps>;
