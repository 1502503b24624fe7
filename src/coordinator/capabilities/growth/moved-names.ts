import type { MovedName } from "./messages.ts";
import type { BucketKey, HoldPosition } from "../../kernel/messages.ts";
import type { Sql } from "../../kernel/ports.ts";
import { FIRST_HOLD } from "../../kernel/shard/held-names.ts";
import { ManyRows } from "../../kernel/shard/many-rows.ts";
import { bucketOf, bucketText } from "../../kernel/shard/rows.ts";
import type { ShardLog } from "../../kernel/shard/shard-log.ts";
import { claimsOn, insertClaims } from "../../kernel/shard/store.ts";

/**
 * The names that will move and have changed since the growth began. It is empty while no growth runs. A
 * change gets a larger number than all earlier ones.
 */
export const MOVED_NAME_TABLE = `CREATE TABLE IF NOT EXISTS moved_name (
   bucket_type INTEGER NOT NULL,
   canonical TEXT NOT NULL,
   change INTEGER NOT NULL,
   PRIMARY KEY (bucket_type, canonical)
 ) STRICT, WITHOUT ROWID`;

/** Progress is read often, so no more changes are counted (M7). */
const MOST_COUNTED = 10_000;

/** All claims up to this name are read, or all claims and the holds up to this position. */
export type NameCursor =
  | readonly [table: "claim", type: number, canonical: string]
  | readonly ["hold", ...HoldPosition];

export const FIRST_NAME: NameCursor = ["claim", -1, ""];

export type ChangedName = BucketKey & { change: number };

const DELETE_CLAIMS = new ManyRows(
  2,
  (rows) => `DELETE FROM claim WHERE (bucket_type, canonical) IN (VALUES ${rows})`,
);

/** What a shard has of names that move between shards. It makes no decisions. */
export class MovedNames {
  readonly #sql: Sql;
  readonly #log: Pick<ShardLog, "held" | "nextEpoch">;

  constructor(sql: Sql, log: Pick<ShardLog, "held" | "nextEpoch">) {
    this.#sql = sql;
    this.#log = log;
  }

  /** Returns the next names with a claim, or with a hold, and where to continue. Null: there are no more. */
  page(cursor: NameCursor, limit: number): { keys: BucketKey[]; next: NameCursor | null } {
    if (cursor[0] === "hold") return this.#heldPage([cursor[1], cursor[2]], limit);
    const [, type, canonical] = cursor;
    const keys = this.#sql.all<BucketKey>(
      `SELECT bucket_type AS type, canonical FROM claim
        WHERE (bucket_type, canonical) > (?, ?) ORDER BY bucket_type, canonical LIMIT ?`,
      type,
      canonical,
      limit,
    );
    const last = keys.length === limit ? keys.at(-1) : undefined;
    return {
      keys,
      next: last === undefined ? ["hold", ...FIRST_HOLD] : ["claim", last.type, last.canonical],
    };
  }

  #heldPage(behind: HoldPosition, limit: number): { keys: BucketKey[]; next: NameCursor | null } {
    const { held } = this.#log;
    const { entries, next } = held.after(behind, limit);
    const keys = entries.flatMap((entry) =>
      held.namesIn(entry).map((name) => {
        const { bucket_type: type, canonical } = bucketOf(name);
        return { type, canonical };
      }),
    );
    return { keys, next: next === null ? null : ["hold", ...next] };
  }

  /** Returns all that is stored about names. */
  read(keys: readonly BucketKey[]): MovedName[] {
    const claims = claimsOn(this.#sql, keys);
    return keys.map(({ type, canonical }) => {
      const name = bucketText(type, canonical);
      const hold = this.#log.held.on(name) ?? null;
      return { type, canonical, claim: claims.get(name) ?? null, hold };
    });
  }

  /** Replaces all that is stored about names. */
  write(names: readonly MovedName[]): void {
    this.delete(names);
    insertClaims(
      this.#sql,
      names.flatMap(({ claim }) => (claim === null ? [] : [claim])),
    );
    const holds = names.flatMap(({ hold }) => (hold === null ? [] : [hold]));
    this.#log.held.add(holds, () => this.#log.nextEpoch());
  }

  delete(keys: readonly BucketKey[]): void {
    DELETE_CLAIMS.all(this.#sql, keys.map(pairOf));
    this.#log.held.end(keys.map(({ type, canonical }) => bucketText(type, canonical)));
  }

  noteChange({ type, canonical }: BucketKey, change: number): void {
    this.#sql.all(
      `INSERT INTO moved_name (bucket_type, canonical, change) VALUES (?, ?, ?)
       ON CONFLICT (bucket_type, canonical) DO UPDATE SET change = excluded.change`,
      type,
      canonical,
      change,
    );
  }

  lastChange(): number {
    return this.#sql.all<{ n: number | null }>("SELECT max(change) AS n FROM moved_name")[0]?.n ?? 0;
  }

  /** Counts the names that have changed, up to a limit. */
  countChanged(): number {
    const [row] = this.#sql.all<{ n: number }>(
      "SELECT count(*) AS n FROM (SELECT 1 FROM moved_name LIMIT ?)",
      MOST_COUNTED,
    );
    return row?.n ?? 0;
  }

  changed(limit: number): ChangedName[] {
    return this.#sql.all<ChangedName>(
      `SELECT bucket_type AS type, canonical, change FROM moved_name
        ORDER BY bucket_type, canonical LIMIT ?`,
      limit,
    );
  }

  /** Forgets changes, unless the name has changed again since. */
  forgetChanges(names: readonly ChangedName[]): void {
    for (const { type, canonical, change } of names)
      this.#sql.all(
        "DELETE FROM moved_name WHERE bucket_type = ? AND canonical = ? AND change = ?",
        type,
        canonical,
        change,
      );
  }

  forgetAllChanges(): void {
    this.#sql.all("DELETE FROM moved_name");
  }
}

const pairOf = ({ type, canonical }: BucketKey): [number, string] => [type, canonical];
