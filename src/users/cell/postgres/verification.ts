import { sql, type Column, type SQL } from "drizzle-orm";
import { getTableConfig, type PgTable } from "drizzle-orm/pg-core";
import { sourceOrder } from "../../../common/source-order.ts";
import type { Claimable } from "../claimable.ts";
import type { SqlParts, SqlTable } from "../sql/connection.ts";
import {
  ANY_ROW,
  idKindOf,
  integerOrder,
  isDecimal,
  isIn,
  isUuid,
  NO_ROW,
  type RowOrder,
} from "../sql/row-order.ts";
import { PROGRESS_NAME, SqlVerification, unseen } from "../sql/verification.ts";
import type { AnyRow } from "../table.ts";
import type { ReadPage } from "../verification/ports.ts";
import { quoted } from "./catalog.ts";
import { oidByName, type ClaimableTables } from "./claimable-tables.ts";
import { verificationProgress, verificationQueue, type Orm } from "./schema.ts";

/** The age of a time in milliseconds. A time without a zone is in UTC, as drizzle writes it. */
export function ageMsOf(time: Column): SQL<number> {
  const now = time.getSQLType().includes("with time zone")
    ? sql`clock_timestamp()`
    : sql`(clock_timestamp() AT TIME ZONE 'UTC')`;
  return sql<number>`(extract(epoch FROM ${now} - ${time}) * 1000)::float8`;
}

/**
 * Which rows a transaction has deleted, in a setting of the transaction. A savepoint that undoes a deletion
 * undoes its note too. If a policy hides rows, nothing else tells a deleted row from one that lives on.
 */
const noted = sql`current_setting('leasehold.deleted', true)`;
const one = sql`(VALUES (1)) AS one`;

export async function noteDeletions(orm: Orm, claimable: Claimable, ids: readonly unknown[]): Promise<void> {
  const notes = ids.map((id) => `${noteOf(claimable, id)}\n`).join("");
  // Answers the length, because the text may be long.
  const set = sql`length(set_config('leasehold.deleted', concat(${noted}, ${notes}::text), true))`;
  await orm.select({ length: set.as("note_length") }).from(one);
}

/** Answers those ids whose deletion is not noted. */
async function withoutNote(orm: Orm, claimable: Claimable, ids: readonly string[]): Promise<string[]> {
  const [found] = await orm.select({ notes: sql<string | null>`${noted}`.as("notes") }).from(one);
  const notes = new Set(found?.notes?.split("\n"));
  return ids.filter((id) => !notes.has(noteOf(claimable, id)));
}

/** JSON, because an id may contain a line break. */
const noteOf = ({ source }: Claimable, id: unknown): string => JSON.stringify([source, String(id)]);

export class PostgresVerification<Tx> extends SqlVerification<Tx, Orm> {
  readonly #claimables: ClaimableTables<Tx>;
  readonly #forgetTraits: () => void;

  constructor(parts: SqlParts<Tx, Orm>, claimables: ClaimableTables<Tx>, forgetTraits: () => void) {
    super(
      parts,
      { progress: verificationProgress, queue: verificationQueue },
      { orderOf, ageMsOf, textOf: (column) => sql`${column}::text` },
    );
    this.#claimables = claimables;
    this.#forgetTraits = forgetTraits;
  }

  override async checkGone(
    tx: Tx,
    claimable: Claimable,
    ids: readonly string[],
    isDeleted: boolean,
  ): Promise<void> {
    if (await this.filters(tx, await this.parts.tables.of(tx, claimable))) {
      const hidden = isDeleted ? await withoutNote(this.connection.orm(tx), claimable, ids) : ids;
      if (hidden.length > 0) {
        // Deletions are not noted if row-level security was enabled after the traits were read.
        this.#forgetTraits();
        throw unseen(claimable, hidden);
      }
    }
    return super.checkGone(tx, claimable, ids, isDeleted);
  }

  override async inSnapshot<T>(work: (page: ReadPage) => Promise<T>): Promise<T> {
    await this.#claimables.prepare();
    return super.inSnapshot(work);
  }

  protected override ofTable(claimable: Claimable, rows: readonly AnyRow[]): AnyRow[] {
    return this.#claimables.checked(claimable, rows);
  }

  protected override async filters(tx: Tx | undefined, { table, claimable }: SqlTable): Promise<boolean> {
    if (tx === undefined) await this.#claimables.prepare();
    const { schema, name } = getTableConfig(table as PgTable);
    const itsName = quoted({ schema, name });
    const [found] = await this.connection
      .orm(tx)
      .select({
        isActive: sql<boolean>`row_security_active(${itsName})`.as("is_active"),
        oid: sql<string | null>`${sql.raw(oidByName({ schema, name }))}`.as("oid"),
      })
      .from(sql`(VALUES (1)) AS one`);
    this.#claimables.check(claimable, found?.oid);
    return found?.isActive === true;
  }

  async saveProgress(text: string): Promise<void> {
    await this.connection
      .orm()
      .insert(verificationProgress)
      .values({ name: PROGRESS_NAME, progress: text })
      .onConflictDoUpdate({
        target: verificationProgress.name,
        set: { progress: text, savedAt: sql`clock_timestamp()` },
      });
  }
}

function orderOf(idColumn: Column): RowOrder {
  const column = sql`${idColumn}`;
  switch (idKindOf(idColumn)) {
    case "integer":
      return integerOrder(column);
    case "uuid":
      return uuidOrder(column);
    case "text": {
      const by = textOrder(column);
      const isText = /^(text|varchar|char)/.test(idColumn.getSQLType());
      return {
        by,
        after: (id) => (id === "" ? ANY_ROW : sql`${by} > ${sourceOrder(id)}`),
        upTo: (id) => sql`${by} <= ${sourceOrder(id)}`,
        isOneOf: (ids) =>
          isIn(
            isText ? column : sql`${column}::text`,
            ids.map((id) => sql`${id}`),
          ),
      };
    }
  }
}

function uuidOrder(by: SQL): RowOrder {
  const text = sql`${by}::text COLLATE "C"`;
  const comparedWith = (id: string, sign: SQL): SQL =>
    isUuid(id) ? sql`${by} ${sign} ${id}::uuid` : sql`${text} ${sign} ${id}`;
  return {
    by,
    after: (id) => (id === "" || isDecimal(id) ? ANY_ROW : comparedWith(id, sql`>`)),
    upTo: (id) => (isDecimal(id) ? NO_ROW : comparedWith(id, sql`<=`)),
    isOneOf: (ids) =>
      isIn(
        by,
        ids.filter((id) => isUuid(id)).map((id) => sql`${id}::uuid`),
      ),
  };
}

const padded = (length: SQL): SQL => sql`lpad((${length})::text, 3, '0')`;

/** `sourceOrder` in SQL. */
function textOrder(column: SQL): SQL {
  const id = sql`${column}::text`;
  const digits = sql`coalesce(nullif(ltrim(${id}, '0'), ''), '0')`;
  const zeroCount = padded(sql`length(${id}) - length(${digits})`);
  const zeros = sql`CASE WHEN length(${id}) = length(${digits}) THEN '' ELSE ${zeroCount} END`;
  const decimal = sql`'0' || ${padded(sql`length(${digits})`)} || ${digits} || ${zeros}`;
  return sql`(CASE WHEN ${id} ~ '^[0-9]+$' THEN ${decimal} ELSE '1' || ${id} END) COLLATE "C"`;
}
