import { INCARNATION_TABLE } from "../instances.ts";
import type { Steps } from "../tables.ts";
import { leaseTable } from "./lease-table.ts";

export const ledgerSchema: Steps = [
  [
    leaseTable.create,
    "CREATE INDEX pending_lease ON lease (decided) WHERE pending = 1",
    // The index has all that is read of many leases, because SQLite reads a whole row, with its batch, to
    // find it by its id.
    `CREATE INDEX lease_by_renewal ON lease (renewed_at_ms, created_at_ms)
      WHERE decided = 0 AND renewed_at_ms IS NOT NULL`,
    INCARNATION_TABLE,
  ],
];
