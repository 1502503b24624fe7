import { INCARNATION_TABLE } from "../history.ts";
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
    // Describes minted keys, without the keys themselves. `position` is that of the last change, and the
    // cron pulls by it.
    `CREATE TABLE minted_key (
       key_id TEXT NOT NULL PRIMARY KEY,
       position INTEGER NOT NULL UNIQUE,
       role TEXT NOT NULL,
       cell TEXT,
       note TEXT,
       created_at_ms INTEGER NOT NULL,
       expires_at_ms INTEGER NOT NULL,
       revoked_at_ms INTEGER
     ) STRICT, WITHOUT ROWID`,
    INCARNATION_TABLE,
  ],
];
