import { INCARNATION_TABLE } from "../history.ts";
import type { Steps } from "../tables.ts";
import { TRANSFER_TABLES } from "../../capabilities/transfer/ledger-store.ts";

export const ledgerSchema: Steps = [
  [
    // One row per lease, from its grant until its outcome is forgotten. The key never changes, so a decision
    // writes nothing but its row. `decided` is 0 for a granted lease, 1 for an outcome, and 2 for a fence of
    // a lease without a running begin, which is forgotten sooner. A fence is an outcome of a lease that was
    // never granted: it has no attempt and no payload (C7). What is older than `through` (of the value
    // `applied`) and unfinished is `pending`: granted leases, decisions that some shard may not have applied
    // (S2), and fences. The times are for ages only: positions order the changes (M4).
    //
    // `shards` is their number at the grant: names may have moved to later ones (G6). `decided_by_key` is the
    // key of an operator. The renewal is what the cell says of a granted lease on which it still works (C8).
    // The lease of a transfer has the source and the scope, as a JSON array (Y1). The batch comes last,
    // because whoever reads a column behind it reads all of it.
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
    "CREATE INDEX pending_lease ON lease (decided) WHERE pending = 1",
    // The index has all that is read of many leases, because SQLite reads a whole row, with its batch, to
    // find it by its id.
    `CREATE INDEX lease_by_renewal ON lease (renewed_at_ms, created_at_ms)
      WHERE decided = 0 AND renewed_at_ms IS NOT NULL`,
    `CREATE TABLE revoked_key (
       key_id TEXT NOT NULL PRIMARY KEY,
       expires_at_ms INTEGER NOT NULL
     ) STRICT, WITHOUT ROWID`,
    INCARNATION_TABLE,
    ...TRANSFER_TABLES,
  ],
];
