import { INCARNATION_TABLE } from "../instances.ts";
import type { Steps } from "../tables.ts";

export const directorySchema: Steps = [
  [
    // Removed cells stay (X5).
    `CREATE TABLE cell (
       cell TEXT NOT NULL PRIMARY KEY,
       cell_order TEXT NOT NULL UNIQUE,
       name TEXT NOT NULL,
       address TEXT NOT NULL,
       location_hint TEXT,
       created_at_ms INTEGER NOT NULL,
       updated_at_ms INTEGER NOT NULL,
       removed_at_ms INTEGER
     ) STRICT, WITHOUT ROWID`,
    INCARNATION_TABLE,
  ],
];
