import { and, asc, eq, getTableColumns, sql, type SQL } from "drizzle-orm";
import type { PgDatabase, PgQueryResultHKT, PgTable } from "drizzle-orm/pg-core";
import { sourceOrder } from "../../core/source-order.ts";
import type { Claimable } from "../claimable.ts";
import type {
  IdRange,
  InspectedRow,
  QueuePage,
  QueuedRow,
  VerificationDatabase,
} from "../verification/ports.ts";
import {
  AGE_COLUMN,
  ANY_ROW,
  ID_COLUMN,
  NO_ROW,
  PROGRESS_NAME,
  changedAtOf,
  idKindOf,
  inspectedRow,
  integerOf,
  integerOrder,
  isDecimal,
  isInRange,
  isUuid,
  type RowOrder,
} from "../sql/row-order.ts";
import { verificationProgress, verificationQueue } from "./schema.ts";

type Orm = PgDatabase<PgQueryResultHKT>;

export class PostgresVerification<Tx> implements VerificationDatabase<Tx> {
  readonly #orm: (tx?: Tx) => Orm;

  /** `orm` answers the database, or the given transaction. */
  constructor(orm: (tx?: Tx) => Orm) {
    this.#orm = orm;
  }

  async count(claimable: Claimable, range: IdRange): Promise<number> {
    const [counted] = await this.#orm()
      .select({ rows: sql<number>`count(*)::float8` })
      .from(claimable.table as PgTable)
      .where(isInRange(orderOf(claimable), range));
    return counted?.rows ?? 0;
  }

  async page(
    claimable: Claimable,
    { limit, ...range }: IdRange & { limit: number },
  ): Promise<InspectedRow[]> {
    const order = orderOf(claimable);
    const rows = await this.#orm()
      .select(fieldsOf(claimable))
      .from(claimable.table as PgTable)
      .where(isInRange(order, range))
      .orderBy(asc(order.by))
      .limit(limit);
    return rows.map((row) => inspectedRow(row));
  }

  async byIds(tx: Tx | undefined, claimable: Claimable, ids: readonly string[]): Promise<InspectedRow[]> {
    const its = isOneOf(claimable, ids);
    if (its === undefined) return [];
    const query = this.#orm(tx)
      .select(fieldsOf(claimable))
      .from(claimable.table as PgTable)
      .where(its)
      .orderBy(asc(claimable.idColumn))
      .$dynamic();
    const rows = await (tx === undefined ? query : query.for("update"));
    return rows.map((row) => inspectedRow(row));
  }

  async loadProgress(): Promise<{ text: string; ageMs: number } | undefined> {
    const age = sql`clock_timestamp() - ${verificationProgress.savedAt}`;
    const ageMs = sql<number>`(extract(epoch FROM ${age}) * 1000)::float8`;
    const fields = { text: verificationProgress.progress, ageMs };
    const [found] = await this.#orm()
      .select(fields)
      .from(verificationProgress)
      .where(eq(verificationProgress.name, PROGRESS_NAME));
    return found;
  }

  async saveProgress(text: string): Promise<void> {
    await this.#orm()
      .insert(verificationProgress)
      .values({ name: PROGRESS_NAME, progress: text })
      .onConflictDoUpdate({
        target: verificationProgress.name,
        set: { progress: text, savedAt: sql`clock_timestamp()` },
      });
  }

  async listQueue({ after, limit }: QueuePage): Promise<QueuedRow[]> {
    const { sourceType: type, sourceId: id, leaseUuid } = verificationQueue;
    const rest = after === undefined ? undefined : sql`(${type}, ${id}) > (${after.type}, ${after.id})`;
    return this.#orm()
      .select({ type, id, leaseUuid })
      .from(verificationQueue)
      .where(rest)
      .orderBy(asc(type), asc(id))
      .limit(limit);
  }

  async removeFromQueue(rows: readonly QueuedRow[]): Promise<void> {
    for (const { type, id, leaseUuid } of rows)
      await this.#orm()
        .delete(verificationQueue)
        .where(
          and(
            eq(verificationQueue.sourceType, type),
            eq(verificationQueue.sourceId, id),
            eq(verificationQueue.leaseUuid, leaseUuid),
          ),
        );
  }
}

function orderOf(claimable: Claimable): RowOrder {
  const { idColumn } = claimable;
  const by = sql`${idColumn}`;
  switch (idKindOf(claimable)) {
    case "integer":
      return integerOrder(by);
    case "uuid": {
      const text = sql`${by}::text COLLATE "C"`;
      const comparedWith = (id: string, sign: SQL): SQL =>
        isUuid(id) ? sql`${by} ${sign} ${id}::uuid` : sql`${text} ${sign} ${id}`;
      return {
        by,
        after: (id) => (id === "" || isDecimal(id) ? ANY_ROW : comparedWith(id, sql`>`)),
        upTo: (id) => (isDecimal(id) ? NO_ROW : comparedWith(id, sql`<=`)),
      };
    }
    case "text": {
      const order = textOrder(by);
      return {
        by: order,
        after: (id) => (id === "" ? ANY_ROW : sql`${order} > ${sourceOrder(id)}`),
        upTo: (id) => sql`${order} <= ${sourceOrder(id)}`,
      };
    }
  }
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

function isOneOf(claimable: Claimable, ids: readonly string[]): SQL | undefined {
  const { idColumn } = claimable;
  const list = (values: SQL[]): SQL | undefined =>
    values.length === 0 ? undefined : sql`${idColumn} IN (${sql.join(values, sql`, `)})`;
  switch (idKindOf(claimable)) {
    case "integer":
      return list(ids.filter((id) => integerOf(id) === id).map((id) => sql.raw(id)));
    case "uuid":
      return list(ids.filter((id) => isUuid(id)).map((id) => sql`${id}::uuid`));
    case "text": {
      const text = /^(text|varchar|char)/.test(idColumn.getSQLType())
        ? sql`${idColumn}`
        : sql`${idColumn}::text`;
      const values = sql.join(
        ids.map((id) => sql`${id}`),
        sql`, `,
      );
      return ids.length === 0 ? undefined : sql`${text} IN (${values})`;
    }
  }
}

/** A time without a zone is in UTC, as drizzle writes it. */
function ageOf(claimable: Claimable): SQL<number | null> {
  const changedAt = changedAtOf(claimable);
  if (changedAt === undefined) return sql<null>`NULL`;
  const now = changedAt.getSQLType().includes("with time zone")
    ? sql`clock_timestamp()`
    : sql`(clock_timestamp() AT TIME ZONE 'UTC')`;
  return sql<number | null>`(extract(epoch FROM ${now} - ${changedAt}) * 1000)::float8`;
}

const idTextOf = ({ idColumn }: Claimable): SQL<string> => sql<string>`${idColumn}::text`;

const fieldsOf = (claimable: Claimable): Record<string, never> =>
  ({
    ...getTableColumns(claimable.table),
    [AGE_COLUMN]: ageOf(claimable),
    [ID_COLUMN]: idTextOf(claimable),
  }) as never;
