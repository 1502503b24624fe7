import { sql } from "drizzle-orm";
import type { LedgerPoint } from "../../client/ledger-history.ts";
import { SqlLedgerHistory } from "../sql/ledger-history.ts";
import { ormOf } from "./orm.ts";
import { ledgerHistory } from "./schema.ts";

export class MysqlLedgerHistory extends SqlLedgerHistory {
  constructor(db: unknown) {
    super(db, ledgerHistory);
  }

  async save(cell: string, points: readonly LedgerPoint[]): Promise<void> {
    await ormOf(this.db)
      .insert(ledgerHistory)
      .values(points.map((point) => ({ cell, ...point })))
      .onDuplicateKeyUpdate({
        set: {
          position: sql.raw("GREATEST(`position`, VALUES(`position`))"),
          savedAt: sql`UTC_TIMESTAMP(3)`,
        },
      });
  }
}
