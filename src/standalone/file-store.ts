import type { SqliteDatabase } from "../node-host/sqlite-database.ts";
import type { ObjectStore } from "../node-host/object-store.ts";
import { DatabaseFile, type FileContext } from "./database-file.ts";

const ALARM_TABLE = "CREATE TABLE IF NOT EXISTS host_alarm (at_ms INTEGER NOT NULL) STRICT";

/** What an object has in its file. Its alarm is there, too, so that both are of the same moment. */
export class FileStore implements ObjectStore {
  readonly file: DatabaseFile;
  alarmAtMs: number | null;

  constructor(path: string, context: FileContext) {
    this.file = new DatabaseFile(path, context);
    this.database.all(ALARM_TABLE);
    const [row] = this.database.all<{ at_ms: number }>("SELECT at_ms FROM host_alarm");
    this.alarmAtMs = row?.at_ms ?? null;
  }

  get database(): SqliteDatabase {
    return this.file.database;
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
