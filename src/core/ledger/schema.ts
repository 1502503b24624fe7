import { AUDIT_TABLE } from "../audit.ts";
import { INCARNATION_TABLE } from "../history.ts";
import { TRANSFER_TABLES } from "./transfer-store.ts";

/** Append-only. Each step runs once per ledger, in order. */
export const ledgerSchema: readonly (readonly string[])[] = [
  [
    // One row per lease, from its grant until its outcome is forgotten. It has its payload and epochs until
    // its decision is applied on every shard (S2). A fence is an outcome of a lease that was never granted:
    // it has no attempt and no payload. `decided` is 0 for a granted lease, 1 for an outcome, and 2 for a
    // fence of a lease without a running begin, which is forgotten sooner (C7). The times are for ages only:
    // positions order the changes (M4).
    `CREATE TABLE lease (
       lease TEXT NOT NULL PRIMARY KEY,
       decided INTEGER NOT NULL CHECK (decided IN (0, 1, 2)),
       position INTEGER NOT NULL,
       created_position INTEGER NOT NULL,
       created_at_ms INTEGER NOT NULL,
       decided_at_ms INTEGER,
       state TEXT NOT NULL CHECK (state IN ('GRANTED', 'COMMITTED', 'ROLLED_BACK')),
       fence INTEGER NOT NULL,
       incarnation INTEGER NOT NULL,
       counter INTEGER NOT NULL,
       epochs TEXT,
       payload TEXT,
       payload_hash TEXT NOT NULL,
       creates INTEGER NOT NULL,
       destroys INTEGER NOT NULL,
       replaces INTEGER NOT NULL,
       missing INTEGER NOT NULL,
       decided_by TEXT,
       reason TEXT
     ) STRICT, WITHOUT ROWID`,
    // Outstanding leases in the order of their grants; outcomes and fences in the order of their decisions.
    `CREATE INDEX lease_by_position ON lease (decided, position)`,
    `CREATE TABLE revoked_key (
       key_id TEXT NOT NULL PRIMARY KEY,
       expires_at_ms INTEGER NOT NULL
     ) STRICT, WITHOUT ROWID`,
    INCARNATION_TABLE,
  ],
  // The key is only kept if an operator decided.
  [AUDIT_TABLE, "ALTER TABLE lease ADD COLUMN decided_by_key TEXT"],
  // What the cell says of a granted lease on which it still works (C8). The index has all that is read of
  // many leases, because SQLite reads a whole row, with its batch, to find it by its id.
  [
    "ALTER TABLE lease ADD COLUMN renewed_at_ms INTEGER",
    "ALTER TABLE lease ADD COLUMN renewal_reason TEXT",
    `CREATE INDEX lease_by_renewal ON lease (renewed_at_ms, created_at_ms)
      WHERE decided = 0 AND renewed_at_ms IS NOT NULL`,
  ],
  // The lease of a transfer has the source and the scope, as a JSON array. Other leases have NULL (Y1).
  [...TRANSFER_TABLES, "ALTER TABLE lease ADD COLUMN transfer TEXT"],
  // The key never changes, so a decision writes nothing but its row. What is older than `through` (of the
  // value `applied`) and unfinished is `pending`: granted leases, decisions that some shard may not have
  // applied (S2), and fences. `shards` is their number at the grant: names may have moved to later ones (G6).
  // The batch comes last, because whoever reads a column behind it reads all of it.
  [
    `UPDATE meta SET value = json_set(value,
            '$.last', (SELECT coalesce(max(position), 0) FROM lease),
            '$.atMs', (SELECT coalesce(max(coalesce(decided_at_ms, created_at_ms)), 0) FROM lease))
      WHERE name = 'applied'`,
    "CREATE TABLE lease_before AS SELECT * FROM lease",
    "DROP TABLE lease",
    `CREATE TABLE lease (
       created_position INTEGER PRIMARY KEY,
       lease TEXT NOT NULL UNIQUE,
       decided INTEGER NOT NULL CHECK (decided IN (0, 1, 2)),
       pending INTEGER NOT NULL CHECK (pending IN (0, 1)),
       position INTEGER NOT NULL,
       created_at_ms INTEGER NOT NULL,
       decided_at_ms INTEGER,
       state TEXT NOT NULL CHECK (state IN ('GRANTED', 'COMMITTED', 'ROLLED_BACK')),
       fence INTEGER NOT NULL,
       incarnation INTEGER NOT NULL,
       counter INTEGER NOT NULL,
       epochs TEXT,
       shards INTEGER NOT NULL,
       payload_hash TEXT NOT NULL,
       creates INTEGER NOT NULL,
       destroys INTEGER NOT NULL,
       replaces INTEGER NOT NULL,
       missing INTEGER NOT NULL,
       decided_by TEXT,
       decided_by_key TEXT,
       reason TEXT,
       renewed_at_ms INTEGER,
       renewal_reason TEXT,
       transfer TEXT,
       payload TEXT
     ) STRICT`,
    `INSERT INTO lease
     SELECT iif(decided = 0, position, created_position), lease, decided,
            decided = 2 OR ((decided = 0 OR epochs IS NOT NULL)
              AND iif(decided = 0, position, created_position) <= coalesce(
                (SELECT value ->> 'through' FROM meta WHERE name = 'applied'), 0)),
            position, created_at_ms, decided_at_ms, state, fence, incarnation, counter, epochs, 0,
            payload_hash, creates, destroys, replaces, missing, decided_by, decided_by_key, reason,
            renewed_at_ms, renewal_reason, transfer, iif(decided = 0, payload, NULL) FROM lease_before`,
    "DROP TABLE lease_before",
    "CREATE INDEX pending_lease ON lease (decided) WHERE pending = 1",
    `CREATE INDEX lease_by_renewal ON lease (renewed_at_ms, created_at_ms)
      WHERE decided = 0 AND renewed_at_ms IS NOT NULL`,
  ],
];
