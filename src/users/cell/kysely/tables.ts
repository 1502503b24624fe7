import type { Expression, ExpressionBuilder, InsertObject, Selectable, SqlBool, UpdateObject } from "kysely";
import type { ColumnValues } from "../adapter/condition.ts";
import { NamedTable } from "../table.ts";

/** Kysely's own conditions, or an object of columns, as other adapters have it. */
export type KyselyCondition<DB, TB extends keyof DB> =
  | ((eb: ExpressionBuilder<DB, TB>) => Expression<SqlBool>)
  | Expression<SqlBool>
  | ColumnValues<Selectable<DB[TB]>>;

/** A table of Kysely's `Database` interface. */
export type KyselyTable<DB, TB extends keyof DB> = NamedTable<
  Selectable<DB[TB]>,
  InsertObject<DB, TB>,
  KyselyCondition<DB, TB>,
  UpdateObject<DB, TB>
>;

/**
 * Makes the function that names the tables of your `Database` interface. Rows, new rows and conditions then
 * have its types.
 *
 * @example
 * ```ts
 * import { claimable } from "leasehold/cell";
 * import { kyselyTables } from "leasehold/cell/kysely";
 * import type { Generated } from "kysely";
 *
 * interface Database {
 *   users: { id: Generated<number>; username: string; bio: string | null };
 * }
 * const table = kyselyTables<Database>();
 * const users = table("users");
 * const claimableUsers = claimable(users, {
 *   source: "RAILS_TABLE_USERS",
 *   subject: { type: "USER", id: "id" },
 *   attributes: { username: "USERNAMES" },
 * });
 * ```
 */
export const kyselyTables =
  <DB>() =>
  <TB extends keyof DB & string>(name: TB): KyselyTable<DB, TB> =>
    new NamedTable(name);
