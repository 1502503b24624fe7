import type { SqliteDatabase } from "../node/sqlite-database.ts";
import type { ObjectStore } from "../node/object-store.ts";

const ALARM_TABLE = "CREATE TABLE IF NOT EXISTS host_alarm (at_ms INTEGER NOT NULL) STRICT";

/** What an object has in the file. Its alarm is one of its tables, so both are of the same moment. */
export class PartStore implements ObjectStore {
  readonly database: SqliteDatabase;
  alarmAtMs: number | null;

  constructor(database: SqliteDatabase) {
    this.database = database;
    this.database.all(ALARM_TABLE);
    const [row] = this.database.all<{ at_ms: number }>("SELECT at_ms FROM host_alarm");
    this.alarmAtMs = row?.at_ms ?? null;
  }

  setAlarm(atMs: number | null): void {
    this.alarmAtMs = atMs;
    const write = (): void => {
      this.database.all("DELETE FROM host_alarm");
      if (atMs !== null) this.database.all("INSERT INTO host_alarm (at_ms) VALUES (?)", atMs);
    };
    // An alarm that is set in a transaction belongs to it.
    if (this.database.isInTransaction) write();
    else this.database.transaction(write);
  }

  close(): void {
    this.database.close();
  }
}
