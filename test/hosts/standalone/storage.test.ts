/** The database file: what a sync covers, what survives, and what ends the process. */
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { SqliteDatabase } from "../../../src/hosts/node/sqlite-database.ts";
import { LOG_BYTES } from "../../../src/hosts/standalone/checkpointer.ts";
import type { Disk, StorageFailure } from "../../../src/hosts/standalone/disk.ts";
import { Storage } from "../../../src/hosts/standalone/storage.ts";

/** A disk whose syncs end when the test says so. */
class HeldDisk implements Disk {
  readonly asked: string[] = [];
  readonly #waiting: ((error?: Error) => void)[] = [];

  syncFile(): Promise<void> {
    return this.#ask("file");
  }

  syncFolder(): Promise<void> {
    return this.#ask("folder");
  }

  /** Ends all syncs that run or are about to, and lets the next ones begin. */
  async finish(error?: Error): Promise<void> {
    await turn();
    for (const end of this.#waiting.splice(0)) end(error);
    await turn();
    await turn();
  }

  #ask(what: string): Promise<void> {
    this.asked.push(what);
    return new Promise((resolve, reject) =>
      this.#waiting.push((error) => (error === undefined ? resolve() : reject(error))),
    );
  }
}

const turn = (): Promise<void> => new Promise((resume) => void setImmediate(resume));

let folder: string;
let disk: HeldDisk;
let failures: StorageFailure[];
const opened: Storage[] = [];

function open(options: { disk?: Disk } = {}): Storage {
  const storage = new Storage({ folder, onFailure: (failure) => failures.push(failure), ...options });
  opened.push(storage);
  return storage;
}

async function close(storage: Storage): Promise<void> {
  await storage.close();
  opened.splice(opened.indexOf(storage), 1);
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "standalone-storage-"));
  disk = new HeldDisk();
  failures = [];
});

afterEach(() => {
  for (const storage of opened.splice(0)) storage.abandon();
  rmSync(folder, { recursive: true, force: true });
});

/** Whether a promise has ended. */
function ended(work: Promise<unknown>): () => boolean {
  let isOver = false;
  void work.then(
    () => (isOver = true),
    () => (isOver = true),
  );
  return () => isOver;
}

const insert = (database: SqliteDatabase, text: string): void =>
  database.transaction(() => void database.all("INSERT INTO t VALUES (?)", text));
const textsIn = (database: SqliteDatabase): unknown[] =>
  database.all<{ a: string }>("SELECT a FROM t").map(({ a }) => a);

/** A database of an object with everything durable. */
async function settled(): Promise<SqliteDatabase> {
  const { database } = open({ disk }).store("cell-1");
  database.all("CREATE TABLE t (a TEXT)");
  const flushed = database.flush();
  await disk.finish();
  await disk.finish();
  await flushed;
  disk.asked.splice(0);
  return database;
}

describe("a flush", () => {
  test("of a new file also syncs the names in its folder, once", async () => {
    const { database } = open({ disk }).store("cell-1");
    expect(database.isDurable).toBe(false);
    const isOver = ended(database.flush());
    await disk.finish();
    expect([disk.asked, isOver()]).toEqual([["file", "folder"], false]);
    await disk.finish();
    expect([isOver(), database.isDurable]).toEqual([true, true]);
    database.all("CREATE TABLE t (a TEXT)");
    const again = ended(database.flush());
    await disk.finish();
    expect([disk.asked, again()]).toEqual([["file", "folder", "file"], true]);
  });

  test("[C2] [B5] covers the writes before its sync began, and shares the sync", async () => {
    const database = await settled();
    insert(database, "a");
    insert(database, "b");
    const first = [ended(database.flush()), ended(database.flush())];
    expect(disk.asked).toEqual([]);
    insert(database, "b of the same turn");
    await turn();
    insert(database, "c");
    const second = ended(database.flush());
    expect(disk.asked).toEqual(["file"]);
    await disk.finish();
    expect([first.map((isOver) => isOver()), second(), database.isDurable]).toEqual([
      [true, true],
      false,
      false,
    ]);
    expect(disk.asked).toEqual(["file", "file"]);
    await disk.finish();
    expect([second(), database.isDurable]).toEqual([true, true]);
  });

  test("of nothing needs no sync", async () => {
    const database = await settled();
    expect(textsIn(database)).toEqual([]);
    await database.flush();
    expect(disk.asked).toEqual([]);
  });

  test("that fails reports it once, ends no other flush well, and is not tried again", async () => {
    const database = await settled();
    insert(database, "a");
    const flushes = [database.flush(), database.flush()].map((flush) =>
      flush.then(
        () => "durable",
        () => "lost",
      ),
    );
    await disk.finish(new Error("EIO: i/o error, fdatasync"));
    expect(await Promise.all(flushes)).toEqual(["lost", "lost"]);
    expect(failures.map(({ message }) => message)).toEqual([
      expect.stringMatching(
        /leasehold\.sqlite-wal could not be made durable \(EIO: i\/o error, fdatasync\);/,
      ),
    ]);
    await expect(database.flush()).rejects.toThrow("could not be made durable");
    expect(disk.asked).toEqual(["file"]);
  });
});

test("tables, alarms and the projection survive, and names tell which objects have tables", async () => {
  const first = open();
  expect(first.names).toEqual([]);
  first.store("shard-0");
  first.store("directory");
  const ledger = first.store("cell-7");
  ledger.database.all("CREATE TABLE t (a TEXT)");
  insert(ledger.database, "kept");
  ledger.setAlarm(7);
  ledger.setAlarm(8);
  first.store("shard-0").setAlarm(9);
  first.store("shard-0").setAlarm(null);
  first.projection.all("CREATE TABLE p (a TEXT)");
  await close(first);
  expect(existsSync(join(folder, "leasehold.sqlite-wal"))).toBe(false);

  const second = open();
  expect(second.names.toSorted()).toEqual(["cell-7", "directory", "shard-0"]);
  expect(textsIn(second.store("cell-7").database)).toEqual(["kept"]);
  expect([second.store("cell-7").alarmAtMs, second.store("shard-0").alarmAtMs]).toEqual([8, null]);
  expect(second.projection.all("SELECT a FROM p")).toEqual([]);
  for (const name of ["", "cell-", "cell-1/../../x", "projection", "shard-a", "cell-1.sqlite"])
    expect(() => second.store(name), name).toThrow("an object must be named");
});

test("an alarm that is set in a transaction is kept with it, or not at all", () => {
  const store = open().store("cell-1");
  store.setAlarm(1);
  store.database.transaction(() => store.setAlarm(2));
  const stored = (): unknown[] => store.database.all("SELECT at_ms FROM host_alarm");
  expect(stored()).toEqual([{ at_ms: 2 }]);
  expect(() =>
    store.database.transaction(() => {
      store.setAlarm(3);
      throw new Error("stop");
    }),
  ).toThrow("stop");
  expect(stored()).toEqual([{ at_ms: 2 }]);
});

test("what is in the log when the process ends is read at the next start", async () => {
  const { database } = open().store("cell-1");
  database.all("CREATE TABLE t (a TEXT)");
  insert(database, "kept");
  await database.flush();
  const copy = mkdtempSync(join(tmpdir(), "standalone-copy-"));
  // Nothing runs between these copies, so they are of one moment, as after a kill.
  cpSync(folder, copy, { recursive: true });
  const other = new Storage({ folder: copy, onFailure: (failure) => failures.push(failure) });
  expect(textsIn(other.store("cell-1").database)).toEqual(["kept"]);
  other.abandon();
  rmSync(copy, { recursive: true });
});

test("a damaged file is named", async () => {
  const first = open();
  const { database } = first.store("shard-0");
  database.all("CREATE TABLE t (a TEXT)");
  for (let n = 0; n < 500; n += 1) insert(database, "x".repeat(200));
  await close(first);
  const path = join(folder, "leasehold.sqlite");
  const whole = readFileSync(path);
  for (const damage of [
    Buffer.from("this is no database".repeat(400)),
    Buffer.concat([whole.subarray(0, 8_192), Buffer.alloc(4_096, 7), whole.subarray(12_288)]),
    whole.subarray(0, 20_000),
  ]) {
    writeFileSync(path, damage);
    expect(() => open()).toThrow(/leasehold\.sqlite is damaged or cannot be read/);
  }
  writeFileSync(path, whole);
  expect(textsIn(open().store("shard-0").database)).toHaveLength(500);
});

test("errors of the storage are reported, and those of a statement are not", () => {
  const { database } = open().store("cell-1");
  database.all("CREATE TABLE t (a TEXT PRIMARY KEY)");
  insert(database, "a");
  expect(() => insert(database, "a")).toThrow("UNIQUE");
  expect(failures).toEqual([]);
  // The nearest to a full disk that SQLite offers by itself.
  database.all("PRAGMA max_page_count = 1");
  expect(() => insert(database, "x".repeat(20_000))).toThrow("full");
  expect(failures.map(({ message }) => message)).toEqual([
    expect.stringMatching(/leasehold\.sqlite: the disk is full \(SQLite: .*, code 13\)/),
  ]);
  expect(textsIn(database)).toEqual(["a"]);
});

describe("checkpoints", () => {
  const log = (): string => join(folder, "leasehold.sqlite-wal");

  /** Writes more than 16 MB, the length of a log that asks for a checkpoint. */
  async function writeMuch(
    database: SqliteDatabase,
    rows = 600,
    text = "x".repeat(18_000_000 / rows),
  ): Promise<number> {
    for (let n = 0; n < rows; n += 1) insert(database, text);
    await database.flush();
    // The result of the other thread arrives between two turns.
    await new Promise((resume) => setTimeout(resume, 20));
    return rows;
  }

  /**
   * Writes so much that a checkpoint is due, then a little at a time until the log is used from its start
   * again and cut. Without checkpoints, that never happens.
   */
  async function writeUntilCut(database: SqliteDatabase, rows?: number): Promise<number> {
    for (let written = await writeMuch(database, rows); ;) {
      const before = statSync(log()).size;
      written += await writeMuch(database, 1, "x");
      const { size } = statSync(log());
      if (size === LOG_BYTES) return written;
      expect(size).toBeGreaterThanOrEqual(before);
    }
  }

  test("let a log be used from its start again, and lose nothing", async () => {
    const storage = open();
    const { database } = storage.store("cell-1");
    database.all("CREATE TABLE t (a TEXT)");
    const written = (await writeUntilCut(database)) + (await writeUntilCut(database));
    expect(failures).toEqual([]);
    await close(storage);
    expect(existsSync(log())).toBe(false);
    const reader = new DatabaseSync(join(folder, "leasehold.sqlite"), { readOnly: true });
    expect(reader.prepare('SELECT count(*) AS n FROM "cell-1/t"').get()).toEqual({ n: written });
    reader.close();
  });

  test("follow the length of the log, also if each write is large", async () => {
    const { database } = open().store("cell-1");
    database.all("CREATE TABLE t (a TEXT)");
    const written = (await writeUntilCut(database, 6)) + (await writeUntilCut(database, 6));
    expect(textsIn(database)).toHaveLength(written);
    expect(failures).toEqual([]);
  });

  test("wait for a reader of an earlier state, and go on after it", async () => {
    const { database } = open().store("cell-1");
    database.all("CREATE TABLE t (a TEXT)");
    insert(database, "first");
    const reader = new DatabaseSync(join(folder, "leasehold.sqlite"), { readOnly: true });
    reader.exec("BEGIN");
    const seen = (): unknown => reader.prepare('SELECT count(*) AS n FROM "cell-1/t"').get();
    expect(seen()).toEqual({ n: 1 });
    let written = 1;
    for (let round = 0; round < 2; round += 1) written += await writeMuch(database);
    expect(seen()).toEqual({ n: 1 });
    reader.exec("COMMIT");
    reader.close();
    written += await writeUntilCut(database);
    expect(textsIn(database)).toHaveLength(written);
    expect(failures).toEqual([]);
  });
});
