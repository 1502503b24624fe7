import { sql } from "drizzle-orm";
import { SqlLedgerHistory, type HistoryRow } from "../sql/ledger-history.ts";
import { ormOf } from "./orm.ts";
import { ledgerHistory } from "./schema.ts";

export class MysqlLedgerHistory extends SqlLedgerHistory {
  constructor(db: unknown) {
    super(db, ledgerHistory);
  }

  protected override upsert(rows: HistoryRow[]): Promise<unknown> {
    return ormOf(this.db)
      .insert(ledgerHistory)
      .values(rows)
      .onDuplicateKeyUpdate({
        set: {
          position: sql.raw("GREATEST(`position`, VALUES(`position`))"),
          savedAt: sql`UTC_TIMESTAMP(3)`,
        },
      });
  }
}
