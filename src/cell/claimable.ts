import {
  getTableColumns,
  getTableName,
  type Column,
  type InferInsertModel,
  type InferSelectModel,
  type Table,
} from "drizzle-orm";
import type { Bucket, Source, Subject } from "../client/api-types.ts";
import { invalidArgument } from "./errors.ts";

export type Row<T extends Table> = InferSelectModel<T>;
export type NewRow<T extends Table> = InferInsertModel<T>;

/** What a claim's value or an id can be made of. */
export type Scalar = string | number | bigint;

/** The columns of a table that hold such values. */
export type ScalarColumn<T extends Table> = {
  [Name in keyof Row<T> & string]: NonNullable<Row<T>[Name]> extends Scalar ? Name : never;
}[keyof Row<T> & string];

export interface AttributeOptions<T extends Table> {
  bucket: Bucket["type"];
  /** Rows for which it says false have no claim on this column. It must follow from the row alone. */
  when?: (row: Row<T>) => boolean;
  /** A gradual switch: while it is false, changes of this column ask nobody, and its claims stay as they are. True by default. */
  enabled?: boolean | (() => boolean);
}

export interface ClaimableOptions<T extends Table> {
  /** The source type of the table's rows. */
  source: Source["type"];
  /** The column that names a row for good: `id` by default. */
  id?: ScalarColumn<T>;
  /** Whom the names of a row are about: a type, and the column or function that tells the id. */
  subject: { type: Subject["type"]; id: ScalarColumn<T> | ((row: Row<T>) => Scalar) };
  /**
   * The column with the time of a row's last change, which a verification goes by to leave alone what was changed just now. A timestamp with a zone,
   * or one in UTC, that every write sets: a default, `$onUpdate`, or a trigger.
   */
  changedAt?: keyof Row<T> & string;
  /** Columns that must be unique across all cells, and as what. Empty columns (null) have no claim. */
  attributes: { [Name in ScalarColumn<T>]?: Bucket["type"] | AttributeOptions<T> };
}

/** A row of any table. */
export type AnyRow = Readonly<Record<string, unknown>>;

export interface Attribute {
  name: string;
  bucket: Bucket["type"];
  when: (row: AnyRow) => boolean;
  isEnabled: () => boolean;
}

/** A claim that a row stands for, and where it came from. */
export interface RowClaim {
  bucket: Bucket;
  /** Undefined where the row does not tell: enough to give a name up, not to take one. */
  subject: Subject | undefined;
  source: Source;
  attribute: string;
}

/** The text of a value that can be claimed; undefined for an empty one. Throws for what is neither text nor a number. */
export function scalarText(value: unknown, what: string): string | undefined {
  if (value === null || value === undefined) return undefined;
  if (typeof value === "string" || typeof value === "number" || typeof value === "bigint")
    return String(value);
  throw invalidArgument(what, "is neither text nor a number");
}

/** A table some of whose columns are claimed. */
export class Claimable<T extends Table = Table> {
  readonly table: T;
  readonly name: string;
  readonly source: Source["type"];
  readonly idName: string;
  readonly idColumn: Column;
  readonly changedAt: string | undefined;
  readonly attributes: readonly Attribute[];
  readonly #subjectType: Subject["type"];
  readonly #subjectId: (row: AnyRow) => unknown;

  constructor(table: T, options: ClaimableOptions<T>) {
    this.table = table;
    this.name = getTableName(table);
    this.source = options.source;
    this.idName = options.id ?? "id";
    this.idColumn = this.#column(this.idName, "id");
    this.changedAt = options.changedAt;
    if (options.changedAt !== undefined) this.#checkTime(options.changedAt);
    const { type, id } = options.subject;
    this.#subjectType = type;
    this.#subjectId = typeof id === "function" ? (id as (row: AnyRow) => unknown) : (row) => row[id];
    if (typeof id === "string") this.#column(id, "subject.id");
    this.attributes = Object.entries(options.attributes).map(([name, given]) =>
      this.#attribute(name, given as Bucket["type"] | AttributeOptions<T>),
    );
    if (this.attributes.length === 0)
      throw invalidArgument("attributes", `of ${this.name} must name a column`);
  }

  idOf(row: AnyRow): string {
    const id = scalarText(row[this.idName], this.idName);
    if (id !== undefined) return id;
    throw invalidArgument(
      this.idName,
      `of a row of ${this.name} is missing: is the column among those that were read?`,
    );
  }

  /** The claims of a row as it is: of the columns that are switched on, apply to it, and are not empty. */
  claimsOf(
    row: AnyRow,
    isEnabled: (attribute: Attribute) => boolean = (attribute) => attribute.isEnabled(),
  ): RowClaim[] {
    const claimed = this.attributes.flatMap((attribute) => {
      const { name, bucket, when } = attribute;
      const value = scalarText(row[name], name);
      return value !== undefined && isEnabled(attribute) && when(row)
        ? [{ name, bucket: { type: bucket, value } }]
        : [];
    });
    if (claimed.length === 0) return [];
    const subjectId = scalarText(this.#subjectId(row), "subject.id");
    const subject = subjectId === undefined ? undefined : { type: this.#subjectType, id: subjectId };
    const source = { type: this.source, id: this.idOf(row) };
    return claimed.map(({ name, bucket }) => ({ bucket, subject, source, attribute: name }));
  }

  /** Throws for a row that was not read with all that a claim is made of: a column that is missing is not an empty one. */
  checkWhole(row: AnyRow): void {
    const missing = [this.idName, ...this.attributes.map(({ name }) => name)].find(
      (name) => row[name] === undefined,
    );
    if (missing !== undefined)
      throw invalidArgument(
        missing,
        `of a row of ${this.name} is missing: is the column among those that were read?`,
      );
  }

  #attribute(name: string, given: Bucket["type"] | AttributeOptions<T>): Attribute {
    this.#column(name, `attributes.${name}`);
    const { bucket, when, enabled = true } = typeof given === "string" ? { bucket: given } : given;
    return {
      name,
      bucket,
      when: (when as Attribute["when"] | undefined) ?? (() => true),
      isEnabled: typeof enabled === "function" ? enabled : () => enabled,
    };
  }

  #checkTime(name: string): void {
    const type = this.#column(name, "changedAt").getSQLType();
    if (!/^(timestamp|datetime)/i.test(type))
      throw invalidArgument("changedAt", `names ${name}, which is no time but ${type}`);
  }

  #column(name: string, option: string): Column {
    const column = getTableColumns(this.table)[name];
    if (column === undefined)
      throw invalidArgument(option, `names ${name}, which is no column of ${this.name}`);
    return column;
  }
}

/**
 * Declares which columns of a table must be unique across all cells.
 *
 * @param table - A drizzle table.
 * @throws {InvalidArgumentError} When an option names a column that the table does not have.
 *
 * @example
 * ```ts
 * import { claimable } from "leasehold/cell";
 *
 * const claimableUsers = claimable(users, {
 *   source: "RAILS_TABLE_USERS",
 *   subject: { type: "USER", id: "id" },
 *   attributes: {
 *     username: "USERNAMES",
 *     email: { bucket: "EMAILS", when: (user) => user.confirmed },
 *   },
 * });
 * ```
 */
export const claimable = <T extends Table>(table: T, options: ClaimableOptions<T>): Claimable<T> =>
  new Claimable(table, options);
