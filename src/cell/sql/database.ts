import {
  and,
  asc,
  eq,
  gt,
  inArray,
  isNotNull,
  isNull,
  sql,
  type Column,
  type SQL,
  type Table,
} from "drizzle-orm";
import type { AnyRow, Claimable } from "../claimable.ts";
import type { Deferred } from "../local.ts";
import type { LocalLease } from "../reconcile.ts";
import { sqlOrm, type Fields, type Select, type SqlOrm } from "./orm.ts";

/** The table of outstanding leases, as a dialect declares it. */
type OutstandingLeases = Table & Record<"uuid" | "state" | "deferred" | "createdAt", Column>;

interface LeasePage {
  afterUuid: string;
  limit: number;
}

/** Statements of a cell's database that are the same in all dialects. */
export abstract class SqlDatabase<Tx> {
  readonly #db: unknown;
  readonly #leases: OutstandingLeases;
  readonly #isSaved: SQL;
  readonly #fields: Fields<LocalLease>;

  constructor(db: unknown, leases: OutstandingLeases, ageMsOf: (time: Column) => SQL<number>) {
    this.#db = db;
    this.#leases = leases;
    this.#isSaved = eq(leases.state, "saved");
    const isDeferred = sql`${leases.deferred} IS NOT NULL`.mapWith(Boolean);
    this.#fields = { uuid: leases.uuid, ageMs: ageMsOf(leases.createdAt), isDeferred };
  }

  /** Reads no uncommitted rows and no old snapshot, whatever the server's default isolation level is. */
  protected abstract selectCommitted<Row>(query: (orm: SqlOrm) => Select<Row>): Promise<Row[]>;

  /** Matches the row of a saved lease. */
  protected savedLease(uuid: string): SQL | undefined {
    return and(this.#isSaved, eq(this.#leases.uuid, uuid));
  }

  async removeLease(tx: Tx, uuid: string): Promise<void> {
    await sqlOrm(tx).delete(this.#leases).where(this.savedLease(uuid));
  }

  async remove(uuid: string): Promise<void> {
    await sqlOrm(this.#db).delete(this.#leases).where(this.savedLease(uuid));
  }

  async list(page: LeasePage): Promise<LocalLease[]> {
    return this.#page(this.#fields, isNull(this.#leases.deferred), page);
  }

  async listDeferred(page: LeasePage): Promise<Deferred[]> {
    const fields = { uuid: this.#leases.uuid, batch: this.#leases.deferred };
    return this.#page<Deferred>(fields, isNotNull(this.#leases.deferred), page);
  }

  async #page<Row>(fields: Fields<Row>, its: SQL, { afterUuid, limit }: LeasePage): Promise<Row[]> {
    const { uuid } = this.#leases;
    const isAfter = afterUuid === "" ? undefined : gt(uuid, afterUuid);
    return this.selectCommitted((orm) =>
      orm
        .select(fields)
        .from(this.#leases)
        .where(and(this.#isSaved, its, isAfter))
        .orderBy(asc(uuid))
        .limit(limit),
    );
  }

  async has(uuids: readonly string[]): Promise<LocalLease[]> {
    if (uuids.length === 0) return [];
    const its = and(this.#isSaved, inArray(this.#leases.uuid, [...uuids]));
    return this.selectCommitted((orm) => orm.select(this.#fields).from(this.#leases).where(its));
  }

  /** Locks in the order of ids, so that two transactions over the same rows don't deadlock. */
  async lock(
    tx: Tx,
    { table, idColumn }: Claimable,
    where: SQL | undefined,
    limit?: number,
  ): Promise<AnyRow[]> {
    const rows = sqlOrm(tx).select<AnyRow>().from(table).where(where).orderBy(asc(idColumn));
    return (limit === undefined ? rows : rows.limit(limit)).for("update");
  }
}
