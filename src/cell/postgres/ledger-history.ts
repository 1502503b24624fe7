import { sql } from "drizzle-orm";
import type { LedgerPoint } from "../../client/ledger-history.ts";
import { SqlLedgerHistory } from "../sql/ledger-history.ts";
import { ormOf } from "./orm.ts";
import { ledgerHistory } from "./schema.ts";

export class PostgresLedgerHistory extends SqlLedgerHistory {
  constructor(db: unknown) {
    super(db, ledgerHistory);
  }

  async save(cell: string, points: readonly LedgerPoint[]): Promise<void> {
    await ormOf(this.db)
      .insert(ledgerHistory)
      .values(points.map((point) => ({ cell, ...point })))
      .onConflictDoUpdate({
        target: [ledgerHistory.cell, ledgerHistory.incarnation],
        set: { position: sql`excluded.position`, savedAt: sql`clock_timestamp()` },
        setWhere: sql`${ledgerHistory.position} < excluded.position`,
      });
  }
}
