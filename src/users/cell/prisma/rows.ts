import { inChunks } from "../chunks.ts";
import type { Claimable } from "../claimable.ts";
import { invalidArgument } from "../errors.ts";
import type { Selection } from "../local.ts";
import { quoted } from "../postgres/catalog.ts";
import type { RowMethods, SelectOptions } from "../sql/connection.ts";
import { ROWS_PER_STATEMENT } from "../sql/database.ts";
import type { AnyRow } from "../table.ts";
import type { ModelMethods, PrismaModels, RawClient } from "./client.ts";

/** How often rows are looked for again because others have changed all that were found. */
const LOCK_ATTEMPTS = 100;

/** Rows of claimable tables, written and read with the methods of Prisma's models. */
export class PrismaRows<Tx extends RawClient> implements RowMethods<Tx> {
  readonly #client: RawClient;
  readonly #models: PrismaModels;

  constructor(client: RawClient, models: PrismaModels) {
    this.#client = client;
    this.#models = models;
  }

  async insert(
    tx: Tx,
    claimable: Claimable,
    rows: readonly AnyRow[],
    { skipExisting }: { skipExisting: boolean },
  ): Promise<AnyRow[]> {
    return this.#methods(tx, claimable).createManyAndReturn({
      data: rows,
      skipDuplicates: skipExisting,
      select: this.#fields(claimable),
    });
  }

  async select(
    tx: Tx | undefined,
    claimable: Claimable,
    selection: Selection,
    { limit, isLocking }: SelectOptions,
  ): Promise<AnyRow[]> {
    const where = "ids" in selection ? withIds(claimable, selection.ids) : checked(selection.where);
    if (!isLocking || tx === undefined) return this.#find(tx, claimable, where, limit);
    if ("ids" in selection) return this.#locked(tx, claimable, selection.ids, where);
    for (let attempt = 1; attempt <= LOCK_ATTEMPTS; attempt += 1) {
      const ids = await this.#ids(tx, claimable, where, limit);
      const rows = await this.#locked(tx, claimable, ids, where);
      // If other transactions have changed all of these rows, there may be others that match.
      if (rows.length > 0 || ids.length === 0) return rows;
    }
    throw new Error(
      `other transactions changed the rows of ${claimable.name} before each attempt to lock them`,
    );
  }

  async #locked(
    tx: Tx,
    claimable: Claimable,
    ids: readonly unknown[],
    where: object | undefined,
  ): Promise<AnyRow[]> {
    return inChunks(ids, ROWS_PER_STATEMENT, async (chunk) => {
      await this.#lock(tx, claimable, chunk);
      // Another transaction may have changed them before they were locked.
      const locked = withIds(claimable, chunk);
      return this.#find(tx, claimable, where === undefined ? locked : { AND: [where, locked] });
    });
  }

  async update(tx: Tx, claimable: Claimable, ids: readonly unknown[], set: AnyRow): Promise<AnyRow[]> {
    return this.#methods(tx, claimable).updateManyAndReturn({
      data: set,
      where: withIds(claimable, ids),
      select: this.#fields(claimable),
    });
  }

  async delete(tx: Tx, claimable: Claimable, ids: readonly unknown[]): Promise<number> {
    const { count } = await this.#methods(tx, claimable).deleteMany({ where: withIds(claimable, ids) });
    return count;
  }

  async #find(
    tx: Tx | undefined,
    claimable: Claimable,
    where: object | undefined,
    limit?: number,
  ): Promise<AnyRow[]> {
    return this.#methods(tx, claimable).findMany({
      ...(where === undefined ? {} : { where }),
      ...(limit === undefined ? {} : { take: limit }),
      orderBy: { [claimable.idName]: "asc" },
      select: this.#fields(claimable),
    });
  }

  async #ids(
    tx: Tx,
    claimable: Claimable,
    where: object | undefined,
    limit: number | undefined,
  ): Promise<unknown[]> {
    const { idName } = claimable;
    const found = await this.#methods(tx, claimable).findMany({
      ...(where === undefined ? {} : { where }),
      ...(limit === undefined ? {} : { take: limit }),
      orderBy: { [idName]: "asc" },
      select: { [idName]: true },
    });
    return found.map((row) => row[idName]);
  }

  /** Prisma has no FOR UPDATE. Locks in the order of ids, so that two transactions don't deadlock. */
  async #lock(tx: Tx, claimable: Claimable, ids: readonly unknown[]): Promise<void> {
    const id = quoted({ schema: undefined, name: this.#models.columnOf(claimable.name, claimable.idName) });
    const table = quoted(this.#models.tableOf(claimable.name));
    const places = ids.map((_id, index) => `$${index + 1}`).join(", ");
    await tx.$queryRawUnsafe(
      `SELECT 1 AS locked FROM ${table} WHERE ${id} IN (${places}) ORDER BY ${id} FOR UPDATE`,
      ...ids,
    );
  }

  #methods(tx: Tx | undefined, { name }: Claimable): ModelMethods {
    return ((tx ?? this.#client) as unknown as Record<string, ModelMethods>)[name] as ModelMethods;
  }

  /** All scalar fields, also those that the client's option `omit` names. */
  #fields({ name }: Claimable): Record<string, true> {
    return this.#models.selectionOf(name);
  }
}

const withIds = ({ idName }: Claimable, ids: readonly unknown[]): object => ({ [idName]: { in: [...ids] } });

/** Prisma ignores a field that is undefined, so a misspelled variable would match all rows. */
function checked(where: unknown): object | undefined {
  if (where === undefined) return undefined;
  if (typeof where !== "object" || where === null || Array.isArray(where))
    throw invalidArgument("where", "must be a condition of Prisma, or undefined for all rows");
  refuseUndefined(where);
  return where;
}

function refuseUndefined(condition: object): void {
  for (const [name, value] of Object.entries(condition)) {
    if (value === undefined)
      throw invalidArgument("where", `has no value for ${name}: use null, or leave the field out`);
    if (typeof value === "object" && value !== null) refuseUndefined(value as object);
  }
}
