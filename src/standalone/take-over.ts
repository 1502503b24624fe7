import { existsSync } from "node:fs";
import { readdir, rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { makeFolder, syncFile, syncFolder } from "../../scripts/durable-file.ts";
import type { HoldRow } from "../core/shard/rows.ts";
import { ShardLog } from "../core/shard/shard-log.ts";
import { NodeSql } from "../node-host/node-sql.ts";
import { inPart, PartTables } from "../node-host/part-tables.ts";
import { SqliteDatabase } from "../node-host/sqlite-database.ts";
import { checkPages, DATABASE } from "./database-file.ts";
import { copyPart, isPart, PROJECTION } from "./parts.ts";
import { systemClock } from "./system-clock.ts";

const ENDING = ".sqlite";
/** Where the old files are kept. */
const ASIDE = "file-per-object";

const oldFilesIn = async (folder: string): Promise<string[]> =>
  (await readdir(folder)).filter((file) => file.endsWith(ENDING) && isPart(basename(file, ENDING)));

/**
 * Copies a folder with a file for each object into one file. Throws if a file is damaged. Until the folder
 * says that it has one file, the version before may go on with the old ones. So what an earlier attempt has
 * copied may be out of date, and is made again.
 */
export async function takeOver(folder: string): Promise<void> {
  const target = join(folder, DATABASE);
  const partial = `${target}.partial`;
  for (const file of [partial, target, `${target}-wal`, `${target}-shm`]) await rm(file, { force: true });
  for (const file of await oldFilesIn(folder)) copyFile(join(folder, file), partial, basename(file, ENDING));
  if (!existsSync(partial)) return;
  await syncFile(partial);
  await rename(partial, target);
  await syncFolder(folder);
}

/** Keeps the old files of a folder aside, if there are any. */
export async function putAside(folder: string): Promise<void> {
  const old = await oldFilesIn(folder);
  if (old.length === 0) return;
  const aside = join(folder, ASIDE);
  await makeFolder(aside);
  for (const file of old) await rename(join(folder, file), join(aside, file));
  await syncFolder(aside);
  await syncFolder(folder);
}

/** Copies all rows of a file. To close it moves its log into it. */
function copyFile(path: string, to: string, part: string): void {
  const source = new DatabaseSync(path);
  try {
    checkPages(source);
  } catch (error) {
    throw new Error(
      `${path} is damaged (${error instanceof Error ? error.message : String(error)}); restore this file ` +
        "with the version before, or set LEASEHOLD_STATE to another folder",
      { cause: error },
    );
  } finally {
    source.close();
  }
  const target = new DatabaseSync(to);
  try {
    target.prepare("ATTACH ? AS old").run(path);
    target.exec("BEGIN");
    copyPart(target, {
      from: "old",
      part,
      ...(part === PROJECTION ? {} : { rename: (sql: string) => inPart(sql, part) }),
    });
    moveHolds(target, part);
    target.exec("COMMIT");
  } finally {
    target.close();
  }
}

/** Moves the holds of a shard from the table of the version before into the log. */
function moveHolds(connection: DatabaseSync, part: string): void {
  const find = connection.prepare("SELECT 1 FROM sqlite_schema WHERE name = ?");
  if (find.get(`${part}/hold`) === undefined) return;
  const tables = new PartTables(connection);
  const sql = new NodeSql(new SqliteDatabase(connection, undefined, { name: part, tables }));
  for (const column of ["holds TEXT", "ended TEXT", "open_from INTEGER NOT NULL DEFAULT 0"])
    sql.all(`ALTER TABLE log ADD COLUMN ${column}`);
  const rows = sql.all<HoldRow>("SELECT * FROM hold");
  sql.all("DROP TABLE hold");
  if (rows.length === 0) return;
  const log = new ShardLog(sql, systemClock);
  log.held.add(rows, () => log.nextEpoch());
  // No router was told of these rows.
  log.reset();
  log.append();
}
