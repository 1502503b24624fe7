import { sql } from "drizzle-orm";
import { SqlLedgerHistory, type HistoryRow } from "../sql/ledger-history.ts";
import type { Connection } from "../sql/connection.ts";
import type { Orm } from "./orm.ts";
import { ledgerHistory } from "./schema.ts";

export class PostgresLedgerHistory extends SqlLedgerHistory<Orm> {
  constructor(connection: Connection<unknown, Orm>) {
    super(connection, ledgerHistory);
  }

  protected override upsert(orm: Orm, rows: HistoryRow[]): Promise<unknown> {
    return orm
      .insert(ledgerHistory)
      .values(rows)
      .onConflictDoUpdate({
        target: [ledgerHistory.cell, ledgerHistory.incarnation],
        set: { position: sql`excluded.position`, savedAt: sql`clock_timestamp()` },
        setWhere: sql`${ledgerHistory.position} < excluded.position`,
      });
  }
}
