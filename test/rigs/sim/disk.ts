import type { Sql, SqlValue, Synchronous } from "../../../src/coordinator/kernel/ports.ts";
import type { WritePoint } from "../../../src/coordinator/kernel/write-points.ts";
import { SqliteDatabase } from "../../../src/hosts/node/sqlite-database.ts";
import { checkNamed } from "../../support/named-writes.ts";

interface Statement {
  sql: string;
  bindings: SqlValue[];
}

/** The writes of one transaction, or a new alarm time. */
type Entry =
  | { kind: "sql"; points: readonly WritePoint[]; statements: Statement[] }
  | { kind: "alarm"; atMs: number | null };

/**
 * An object's storage: what its instance sees (`live`) and what a crash would leave (`durable`). Entries
 * become durable in order. A crash keeps a prefix of the pending entries.
 */
export class Disk {
  /** The alarm that a crash would leave now. */
  durableAlarmMs: number | null = null;
  liveAlarmMs: number | null = null;
  /** Grows with every durable change. */
  version = 0;
  /** How often the storage went back in time. */
  wentBack = 0;
  /** Called when something was written that is not durable yet. */
  onWrite: () => void = () => {};
  onAlarm: () => void = () => {};
  /**
   * Called when the instance has written in a transaction. `wasStopped`: although it knew that its storage
   * went back in time.
   */
  onTransaction: (points: readonly WritePoint[], wasStopped: boolean) => void = () => {};
  #live = new SqliteDatabase();
  #durable = new SqliteDatabase();
  #pending: Entry[] = [];
  /** Every entry that became durable, oldest first. */
  #entries: Entry[] = [];

  /** The size of what the instance sees. */
  get liveBytes(): number {
    return this.#live.sizeBytes();
  }

  /** The size of what a crash would leave. */
  get durableBytes(): number {
    return this.#durable.sizeBytes();
  }

  get pending(): number {
    return this.#pending.length;
  }

  /** The write points of the pending entries. */
  get pendingPoints(): WritePoint[] {
    return this.#pending.flatMap((entry) => (entry.kind === "sql" ? entry.points : []));
  }

  /** The format in force, as the instance has stored it (M9). */
  get liveFormat(): number {
    return formatIn(this.#live);
  }

  /** The same, as a crash would leave it. 0: there are no tables yet. */
  get durableFormat(): number {
    const [table] = this.readDurable("SELECT 1 FROM sqlite_master WHERE name = 'meta'");
    return table === undefined ? 0 : formatIn(this.#durable);
  }

  readDurable<Row>(sql: string, ...bindings: SqlValue[]): Row[] {
    return this.#durable.all<Row>(sql, ...bindings);
  }

  /** For instances only. */
  all<Row>(sql: string, bindings: SqlValue[], inTransaction: Statement[] | undefined): Row[] {
    const rows = this.#live.all<Row>(sql, ...bindings);
    if (/^\s*select/i.test(sql)) return rows;
    if (inTransaction === undefined)
      this.#append({ kind: "sql", points: ["migrate"], statements: [{ sql, bindings }] });
    else inTransaction.push({ sql, bindings });
    return rows;
  }

  transaction<T>(points: readonly WritePoint[], work: (statements: Statement[]) => T): T {
    const statements: Statement[] = [];
    const wasStopped = this.#isStopped;
    const value = this.#live.transaction(() => work(statements));
    if (statements.length === 0) return value;
    this.onTransaction(points, wasStopped);
    this.#append({ kind: "sql", points, statements });
    return value;
  }

  /** Whether the instance knows that its storage went back in time. */
  get #isStopped(): boolean {
    if (this.wentBack === 0) return false;
    const [stored] = this.#live.all<{ value: string }>("SELECT value FROM meta WHERE name = 'history_lost'");
    return stored !== undefined && stored.value.includes('"isReconciling":false');
  }

  setAlarm(atMs: number | null): void {
    this.liveAlarmMs = atMs;
    this.#append({ kind: "alarm", atMs });
    this.onAlarm();
  }

  /** The platform removes the alarm to ring or lose it. */
  clearAlarm(): void {
    this.liveAlarmMs = null;
    this.durableAlarmMs = null;
  }

  /** The oldest `count` entries become durable. */
  persist(count: number): void {
    for (const entry of this.#pending.splice(0, count)) {
      this.version += 1;
      this.#entries.push(entry);
      if (entry.kind === "alarm") this.durableAlarmMs = entry.atMs;
      else
        this.#durable.transaction(() =>
          entry.statements.forEach(({ sql, bindings }) => void this.#durable.all(sql, ...bindings)),
        );
    }
  }

  /** Something outside of the protocol changes rows. The part must have no instance and nothing pending. */
  damage(sql: string, ...bindings: SqlValue[]): void {
    this.#durable.all(sql, ...bindings);
    this.#live = copyOf(this.#durable);
  }

  /** A crash: the oldest `keep` entries survive, and all others are lost. */
  cut(keep: number): void {
    this.persist(keep);
    if (this.#pending.length > 0) {
      this.#pending = [];
      this.#live = copyOf(this.#durable);
    }
    this.liveAlarmMs = this.durableAlarmMs;
  }

  /** The storage becomes what it was when it had this version. */
  goBack(version: number): void {
    this.wentBack += 1;
    const entries = this.#entries.slice(0, version);
    this.#entries = [];
    this.#durable = new SqliteDatabase();
    this.durableAlarmMs = null;
    this.version = 0;
    this.#pending = entries;
    this.persist(entries.length);
    this.#live = copyOf(this.#durable);
    this.liveAlarmMs = this.durableAlarmMs;
  }

  #append(entry: Entry): void {
    this.#pending.push(entry);
    this.onWrite();
  }
}

function formatIn(database: SqliteDatabase): number {
  const [stored] = database.all<{ value: string }>("SELECT value FROM meta WHERE name = 'tables'");
  return stored === undefined ? 0 : (JSON.parse(stored.value) as { format: number }).format;
}

function copyOf(from: SqliteDatabase): SqliteDatabase {
  const copy = new SqliteDatabase();
  const schema = from.all<{ type: string; name: string; sql: string }>(
    "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type DESC",
  );
  for (const { type, name, sql } of schema) {
    copy.connection.exec(sql);
    if (type !== "table") continue;
    for (const row of from.all<Record<string, SqlValue>>(`SELECT * FROM ${name}`)) {
      const columns = Object.keys(row);
      copy.all(
        `INSERT INTO ${name} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`,
        ...Object.values(row),
      );
    }
  }
  return copy;
}

/**
 * One instance's access to its disk. After the instance is replaced, every access fails, as on the platform.
 */
export class InstanceSql implements Sql {
  readonly #disk: Disk;
  readonly #flush: () => Promise<void>;
  #statements: Statement[] | undefined;
  #revoked: Error | undefined;

  constructor(disk: Disk, flush: () => Promise<void>) {
    this.#disk = disk;
    this.#flush = flush;
  }

  all<Row>(statement: string, ...bindings: SqlValue[]): Row[] {
    this.#check();
    checkNamed(statement, this.#statements !== undefined);
    return this.#disk.all<Row>(statement, bindings, this.#statements);
  }

  transaction<T>(points: readonly WritePoint[], work: () => Synchronous<T>): T {
    this.#check();
    return this.#disk.transaction(points, (statements) => {
      this.#statements = statements;
      try {
        return work();
      } finally {
        this.#statements = undefined;
      }
    });
  }

  async flush(): Promise<void> {
    this.#check();
    return this.#flush();
  }

  sizeBytes(): number {
    this.#check();
    return this.#disk.liveBytes;
  }

  revoke(): void {
    this.#revoked = new Error("this instance was replaced");
  }

  #check(): void {
    if (this.#revoked !== undefined) throw this.#revoked;
  }
}
