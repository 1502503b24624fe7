import { sql } from "drizzle-orm";
import { SqlLedgerHistory, type HistoryRow } from "../sql/ledger-history.ts";
import { ormOf } from "./orm.ts";
import { ledgerHistory } from "./schema.ts";

export class PostgresLedgerHistory extends SqlLedgerHistory {
  constructor(db: unknown) {
    super(db, ledgerHistory);
  }

  protected override upsert(rows: HistoryRow[]): Promise<unknown> {
    return ormOf(this.db)
      .insert(ledgerHistory)
      .values(rows)
      .onConflictDoUpdate({
        target: [ledgerHistory.cell, ledgerHistory.incarnation],
        set: { position: sql`excluded.position`, savedAt: sql`clock_timestamp()` },
        setWhere: sql`${ledgerHistory.position} < excluded.position`,
      });
  }
}
