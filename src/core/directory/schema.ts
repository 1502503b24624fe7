/** Append-only: each step runs once, in order. */
export const directorySchema: readonly (readonly string[])[] = [
  [
    `CREATE TABLE cell (
       cell TEXT NOT NULL PRIMARY KEY,
       cell_order TEXT NOT NULL UNIQUE,
       name TEXT NOT NULL,
       address TEXT NOT NULL,
       location_hint TEXT,
       created_at_ms INTEGER NOT NULL,
       updated_at_ms INTEGER NOT NULL
     ) STRICT, WITHOUT ROWID`,
    // What was minted, not the key itself. position grows with every change of any key: the cron pulls by it.
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
    // Of runs that verify their cell. As many as there may be at a time, and no more.
    `CREATE TABLE verification_slot (
       cell TEXT NOT NULL PRIMARY KEY,
       uuid TEXT NOT NULL,
       expires_at_ms INTEGER NOT NULL
     ) STRICT, WITHOUT ROWID`,
  ],
];
