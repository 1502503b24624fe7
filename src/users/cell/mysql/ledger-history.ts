import { sql } from "drizzle-orm";
import { SqlLedgerHistory, type HistoryRow } from "../sql/ledger-history.ts";
import type { Connection } from "../sql/connection.ts";
import type { Orm } from "./orm.ts";
import { ledgerHistory } from "./schema.ts";

export class MysqlLedgerHistory extends SqlLedgerHistory<Orm> {
  constructor(connection: Connection<unknown, Orm>) {
    super(connection, ledgerHistory);
  }

  protected override upsert(orm: Orm, rows: HistoryRow[]): Promise<unknown> {
    return orm
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
