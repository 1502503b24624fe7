import type { Sql } from "../../src/coordinator/kernel/ports.ts";
import { FIRST_HOLD } from "../../src/coordinator/kernel/shard/held-names.ts";
import {
  itemsOf,
  nameOf,
  textOf,
  type StoredEntry,
} from "../../src/coordinator/kernel/shard/hold-entries.ts";
import { bucketText, type HoldRow } from "../../src/coordinator/kernel/shard/rows.ts";
import { ShardLog } from "../../src/coordinator/kernel/shard/shard-log.ts";
import type { Cluster } from "./cluster.ts";
import { privatePath } from "./private-fields.ts";
import { bucketType } from "./types.ts";

/**
 * The holds of a shard, for a FROM clause, with the columns of a `HoldRow` but its source order. It takes
 * every entry of the log of which no later row says that it has ended, so it shows what a start must find.
 */
export const HOLDS = `(
  WITH entry AS (
    SELECT log.position, value ->> 0 AS since, value ->> 1 AS part, value AS entry
      FROM log, json_each(log.holds)
  ), newest AS (
    SELECT since, part, max(position), entry FROM entry GROUP BY since, part
  ), ended AS (
    SELECT value ->> 0 AS since, value ->> 1 AS part, value -> 2 AS names
      FROM log, json_each(log.ended)
  ), named AS (
    SELECT newest.*, name.value AS name, entry -> 10 -> name.key AS hold
      FROM newest, json_each(entry -> 9) AS name
  )
  SELECT CAST(substr(name, 1, instr(name, ' ') - 1) AS INTEGER) AS bucket_type,
         substr(name, instr(name, ' ') + 1) AS canonical,
         CASE hold ->> 0 WHEN 1 THEN 'create' WHEN 2 THEN 'replace' ELSE 'destroy' END AS kind,
         entry ->> 4 AS cell, entry ->> 5 AS lease, entry ->> 6 AS incarnation, entry ->> 7 AS counter,
         entry ->> 2 AS epoch, entry ->> 8 AS held_at_ms, hold ->> 1 AS uuid,
         iif(hold ->> 2 = 0, substr(name, instr(name, ' ') + 1), hold ->> 2) AS value,
         hold ->> 3 AS subject_type, hold ->> 4 AS subject_id, hold ->> 5 AS source_type,
         hold ->> 6 AS source_id, hold ->> 7 AS scope, entry ->> 3 AS granted_by
    FROM named
   WHERE (since, part) NOT IN (SELECT since, part FROM ended WHERE names IS NULL)
     AND (since, part, name) NOT IN (SELECT since, part, value FROM ended, json_each(ended.names))
)`;

type ShardNode = ReturnType<Cluster["shard"]>;

/** Returns what a FROM clause has for a table of a shard, or for its holds. */
export const tableOf = (name: string): string => (name === "hold" ? HOLDS : name);

/**
 * Changes the entries of a log, as something outside of the protocol might. An instance of the shard that
 * runs knows nothing of it.
 *
 * @param change returns what becomes of an entry. Null: it is removed
 */
export function changeEntries(
  sql: Pick<Sql, "all">,
  change: (entry: StoredEntry) => StoredEntry | null,
): void {
  for (const { slot, holds } of sql.all<{ slot: number; holds: string }>(
    "SELECT slot, holds FROM log WHERE holds IS NOT NULL",
  )) {
    const entries = itemsOf<StoredEntry>(holds)
      .map(change)
      .filter((entry) => entry !== null);
    sql.all(
      "UPDATE log SET holds = ? WHERE slot = ?",
      textOf(entries.map((entry) => JSON.stringify(entry))),
      slot,
    );
  }
}

/** A destroy of a name, as the log has it. */
export const DESTROY: HoldRow = {
  bucket_type: 1,
  canonical: "",
  kind: "destroy",
  cell: "1",
  lease: "",
  incarnation: 0,
  counter: 0,
  epoch: 0,
  held_at_ms: 0,
  uuid: null,
  value: null,
  subject_type: null,
  subject_id: null,
  source_type: null,
  source_id: null,
  source_order: null,
  scope: null,
  granted_by: null,
};

/**
 * Adds holds to a log: destroys of long ago, with what is given. An instance of the shard that runs ends at
 * its next write.
 */
export function addHolds(sql: Sql, holds: readonly Partial<HoldRow>[]): void {
  const log = new ShardLog(sql, Date);
  sql.transaction(["exchange"], () => {
    log.held.add(
      holds.map((hold) => ({ ...DESTROY, ...hold })),
      () => log.nextEpoch(),
    );
    log.append();
  });
}

/** Returns a change of the entry that has a name of the type `ROUTES`, for `changeEntries`. */
export function entryWith(
  name: string,
  change: (entry: StoredEntry) => void,
): (entry: StoredEntry) => StoredEntry {
  return (entry) => {
    if (entry[9].includes(bucketText(bucketType("ROUTES"), name))) change(entry);
    return entry;
  };
}

/** Changes the entries in the log of a shard, which a running instance knows nothing of. */
export function damageHolds(
  { database }: ShardNode,
  change: (entry: StoredEntry) => StoredEntry | null,
): void {
  changeEntries({ all: (text, ...bindings) => database.prepare(text).all(...bindings) as never[] }, change);
}

/** Makes a shard lose all of its holds. Returns how many there were. */
export function loseHolds(shard: ShardNode): number {
  const { length } = shard.database.prepare(`SELECT 1 FROM ${HOLDS}`).all();
  damageHolds(shard, () => null);
  shard.restart();
  return length;
}

/** Changes the holds of a shard that runs, in one transaction. */
export function changeHeld({ object, sql }: ShardNode, change: (log: ShardLog) => void): void {
  const log = privatePath(object, "#part.log") as ShardLog;
  sql.transaction(["exchange"], () => {
    change(log);
    log.append();
  });
}

/** Gives all holds of a shard that runs to another lease, as if it had begun when the former one ended. */
export function passHolds(shard: ShardNode, lease: string): void {
  changeHeld(shard, (log) => {
    const holds = log.held.after(FIRST_HOLD, Infinity).entries.flatMap((entry) => log.held.holdsOf(entry));
    log.held.end(holds.map(nameOf));
    const epoch = log.nextEpoch();
    log.held.add(
      holds.map((hold) => ({ ...hold, lease, epoch })),
      () => log.nextEpoch(),
    );
  });
}
