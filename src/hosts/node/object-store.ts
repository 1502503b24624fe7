import { SqliteDatabase } from "./sqlite-database.ts";

/** What persists of an object: its database and its alarm. */
export interface ObjectStore {
  readonly database: SqliteDatabase;
  /** When the alarm rings, in milliseconds since 1970; null if none is set. */
  readonly alarmAtMs: number | null;
  /** Durable with the database's next flush. */
  setAlarm(atMs: number | null): void;
  close(): void;
}

/** What an object has in memory. It persists until `close`. */
export class MemoryStore implements ObjectStore {
  readonly database = new SqliteDatabase();
  alarmAtMs: number | null = null;

  setAlarm(atMs: number | null): void {
    this.alarmAtMs = atMs;
  }

  close(): void {
    this.database.close();
  }
}
