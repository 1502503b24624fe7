import type { LeaseState } from "../messages.ts";
import { column, table, type RowOf } from "../table.ts";

/**
 * One row per lease, from its grant until its outcome is forgotten. The key never changes, so a decision
 * writes nothing but its row. The times are for ages only: positions order the changes (M4).
 */
export const leaseTable = table(
  "lease",
  {
    created_position: column<number>("INTEGER PRIMARY KEY"),
    lease: column<string>("TEXT NOT NULL UNIQUE"),
    // 0: granted. 1: an outcome. 2: a fence of a lease without a running begin, which is forgotten sooner. A
    // fence is an outcome of a lease that was never granted: it has no attempt and no payload (C7).
    decided: column<0 | 1 | 2>("INTEGER NOT NULL CHECK (decided IN (0, 1, 2))"),
    // Whether the lease is older than `through` (of the value `applied`), and unfinished: granted leases,
    // decisions that some shard may not have applied (S2), and fences.
    pending: column<0 | 1>("INTEGER NOT NULL CHECK (pending IN (0, 1))"),
    position: column<number>("INTEGER NOT NULL"),
    created_at_ms: column<number>("INTEGER NOT NULL"),
    decided_at_ms: column<number | null>("INTEGER"),
    state: column<LeaseState>("TEXT NOT NULL CHECK (state IN ('GRANTED', 'COMMITTED', 'ROLLED_BACK'))"),
    fence: column<0 | 1>("INTEGER NOT NULL"),
    incarnation: column<number>("INTEGER NOT NULL"),
    counter: column<number>("INTEGER NOT NULL"),
    // The executions of the grant (executions.ts).
    epochs: column<string | null>("TEXT"),
    // Their number at the grant. Names of the lease may have moved to shards that were added since (G6).
    shards: column<number>("INTEGER NOT NULL"),
    payload_hash: column<string>("TEXT NOT NULL"),
    creates: column<number>("INTEGER NOT NULL"),
    destroys: column<number>("INTEGER NOT NULL"),
    replaces: column<number>("INTEGER NOT NULL"),
    missing: column<number>("INTEGER NOT NULL"),
    decided_by: column<string | null>("TEXT"),
    // The id of the key, if an operator decided.
    decided_by_key: column<string | null>("TEXT"),
    reason: column<string | null>("TEXT"),
    // When the cell said last that it still works on a granted lease (C8).
    renewed_at_ms: column<number | null>("INTEGER"),
    renewal_reason: column<string | null>("TEXT"),
    // What a lease of another kind holds instead of names. Null: it holds names.
    transfer: column<string | null>("TEXT"),
    // The batch, which the decision drops (S2). It comes last, because whoever reads a column behind it reads
    // all of it.
    payload: column<string | null>("TEXT"),
  },
  "STRICT",
);

/** A lease as it is stored. */
export type StoredLease = RowOf<typeof leaseTable>;

/** A lease without what its store finds out itself. */
export type LeaseRow = Omit<StoredLease, "pending">;
