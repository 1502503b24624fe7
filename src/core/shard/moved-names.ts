import type { MovedName } from "../growth/messages.ts";
import type { BucketKey } from "../messages.ts";
import type { Sql } from "../ports.ts";
import { ManyRows } from "./many-rows.ts";
import { bucketText, type ClaimRow, type HoldRow } from "./rows.ts";
import { SCOPED_HOLD_COLUMNS } from "./store.ts";

/**
 * The names that will move and have changed since the growth began. It is empty while no growth runs. A
 * change gets a larger number than all earlier ones.
 */
export const MOVED_NAME_TABLE = `CREATE TABLE moved_name (
   bucket_type INTEGER NOT NULL,
   canonical TEXT NOT NULL,
   change INTEGER NOT NULL,
   PRIMARY KEY (bucket_type, canonical)
 ) STRICT, WITHOUT ROWID`;

/** Progress is read often, so no more changes are counted (M7). */
const MOST_COUNTED = 10_000;

/** The tables with names, in the order in which they are read. */
const NAME_TABLES = ["claim", "hold"] as const;

/** All names up to this one are read. */
export type NameCursor = readonly [table: (typeof NAME_TABLES)[number], type: number, canonical: string];

/** All past claims up to this one are read. */
export type PastCursor = readonly [segment: number, type: number, canonical: string, epoch: number];

export const FIRST_PAST_CLAIM: PastCursor = [0, -1, "", 0];

export const FIRST_NAME: NameCursor = ["claim", -1, ""];

export type ChangedName = BucketKey & { change: number };

const CLAIM_COLUMNS = [
  "bucket_type",
  "canonical",
  "value",
  "uuid",
  "cell",
  "subject_type",
  "subject_id",
  "source_type",
  "source_id",
  "source_order",
  "scope",
  "epoch",
  "created_at_ms",
  "updated_at_ms",
  "digest_0",
  "digest_1",
  "digest_2",
  "digest_3",
] as const satisfies readonly (keyof ClaimRow)[];

const HOLD_COLUMNS = [...SCOPED_HOLD_COLUMNS, "granted_by"] as const satisfies readonly (keyof HoldRow)[];

const statement = (columns: number, before: string, after = ""): ManyRows =>
  new ManyRows(columns, (rows) => `${before} ${rows}${after}`);

const READ = {
  claim: statement(2, "SELECT * FROM claim WHERE (bucket_type, canonical) IN (VALUES", ")"),
  hold: statement(2, "SELECT * FROM hold WHERE (bucket_type, canonical) IN (VALUES", ")"),
};
const DELETE = {
  claim: statement(2, "DELETE FROM claim WHERE (bucket_type, canonical) IN (VALUES", ")"),
  hold: statement(2, "DELETE FROM hold WHERE (bucket_type, canonical) IN (VALUES", ")"),
};
const INSERT = {
  claim: statement(CLAIM_COLUMNS.length, `INSERT INTO claim (${CLAIM_COLUMNS.join(", ")}) VALUES`),
  hold: statement(HOLD_COLUMNS.length, `INSERT INTO hold (${HOLD_COLUMNS.join(", ")}) VALUES`),
};

/** The SQL statements about names that move between shards. It makes no decisions. */
export class MovedNames {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Returns the next names of one table, and where to continue. Null: there are no more. */
  page(cursor: NameCursor, limit: number): { keys: BucketKey[]; next: NameCursor | null } {
    const [table, type, canonical] = cursor;
    const keys = this.#sql.all<BucketKey>(
      `SELECT bucket_type AS type, canonical FROM ${table}
        WHERE (bucket_type, canonical) > (?, ?) ORDER BY bucket_type, canonical LIMIT ?`,
      type,
      canonical,
      limit,
    );
    const last = keys.length === limit ? keys.at(-1) : undefined;
    if (last !== undefined) return { keys, next: [table, last.type, last.canonical] };
    return { keys, next: table === "claim" ? ["hold", -1, ""] : null };
  }

  /** Returns all that is stored about names. */
  read(keys: readonly BucketKey[]): MovedName[] {
    const pairs = keys.map(pairOf);
    const claims = byName(READ.claim.all<ClaimRow>(this.#sql, pairs));
    const holds = byName(READ.hold.all<HoldRow>(this.#sql, pairs));
    return keys.map(({ type, canonical }) => {
      const name = bucketText(type, canonical);
      return { type, canonical, claim: claims.get(name) ?? null, hold: holds.get(name) ?? null };
    });
  }

  /** Replaces all that is stored about names. */
  write(names: readonly MovedName[]): void {
    const pairs = names.map(pairOf);
    DELETE.claim.all(this.#sql, pairs);
    DELETE.hold.all(this.#sql, pairs);
    const claims = names.flatMap(({ claim }) => (claim === null ? [] : [claim]));
    INSERT.claim.all(
      this.#sql,
      claims.map((claim) => CLAIM_COLUMNS.map((column) => claim[column])),
    );
    const holds = names.flatMap(({ hold }) => (hold === null ? [] : [hold]));
    INSERT.hold.all(
      this.#sql,
      holds.map((hold) => HOLD_COLUMNS.map((column) => hold[column])),
    );
  }

  delete(keys: readonly BucketKey[]): void {
    const pairs = keys.map(pairOf);
    DELETE.claim.all(this.#sql, pairs);
    DELETE.hold.all(this.#sql, pairs);
  }

  /** Deletes past claims of names that have moved, among the next `limit` ones. Null: there are no more. */
  deletePast(behind: PastCursor, limit: number, hasMoved: (key: BucketKey) => boolean): PastCursor | null {
    const rows = this.#sql.all<BucketKey & { segment: number; epoch: number }>(
      `SELECT segment, bucket_type AS type, canonical, epoch FROM past_claim
        WHERE (segment, bucket_type, canonical, epoch) > (?, ?, ?, ?)
        ORDER BY segment, bucket_type, canonical, epoch LIMIT ?`,
      ...behind,
      limit,
    );
    for (const { segment, type, canonical, epoch } of rows)
      if (hasMoved({ type, canonical }))
        this.#sql.all(
          `DELETE FROM past_claim
            WHERE segment = ? AND bucket_type = ? AND canonical = ? AND epoch = ?`,
          segment,
          type,
          canonical,
          epoch,
        );
    const last = rows.length === limit ? rows.at(-1) : undefined;
    return last === undefined ? null : [last.segment, last.type, last.canonical, last.epoch];
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

const byName = <Row extends ClaimRow | HoldRow>(rows: readonly Row[]): Map<string, Row> =>
  new Map(rows.map((row) => [bucketText(row.bucket_type, row.canonical), row]));
