import type { Column, Table } from "drizzle-orm";
import type { Bucket, Source, Subject } from "../client/api-types.ts";
import { invalidArgument } from "./errors.ts";
import { declaredColumns, tableName, type AnyRow, type AnyTable, type Row } from "./table.ts";

/** Types of columns that can be a claim's value or an id. */
export type Scalar = string | number | bigint;

/** The columns of a table with such a type. Any name, if the columns are not declared. */
export type ScalarColumn<T extends AnyTable> = string extends keyof Row<T>
  ? string
  : {
      [Name in keyof Row<T> & string]: NonNullable<Row<T>[Name]> extends Scalar ? Name : never;
    }[keyof Row<T> & string];

/** Drizzle's kinds of columns that can hold the time of a change. A custom type is checked at run time. */
type TimeColumnType = `${string}${"Timestamp" | "DateTime" | "CustomColumn"}${string}`;

type ColumnType<T extends Table, Name extends string> = T["_"]["columns"][Name]["_"]["columnType"];

/** The columns of a table with the time of an event, such as `updatedAt`. */
export type TimeColumn<T extends AnyTable> = T extends Table
  ? {
      [Name in keyof T["_"]["columns"] & string]: ColumnType<T, Name> extends TimeColumnType ? Name : never;
    }[keyof T["_"]["columns"] & string]
  : {
      [Name in keyof Row<T> & string]: NonNullable<Row<T>[Name]> extends Date | string ? Name : never;
    }[keyof Row<T> & string];

export interface AttributeOptions<T extends AnyTable> {
  bucket: Bucket["type"];
  /** A row for which this is false has no claim on this column. It may depend only on the row. */
  when?: (row: Row<T>) => boolean;
  /** For gradual rollout: while false, changes of this column change no claims. True by default. */
  enabled?: boolean | (() => boolean);
}

export type ClaimableOptions<T extends AnyTable> = IdOption<T> & {
  /** The source type of the table's rows. */
  source: Source["type"];
  /** The subject of a row's names: its type, and the column or function with its id. */
  subject: { type: Subject["type"]; id: ScalarColumn<T> | ((row: Row<T>) => Scalar) };
  /**
   * The column or function with what a row's names belong to, such as the id of an organization. A
   * transfer moves the names of one scope. A row for which it is null has none.
   */
  scope?: ScalarColumn<T> | ((row: Row<T>) => Scalar | null);
  /**
   * The column with the time of a row's last change, so that verification can skip recent rows. Every write
   * must set it, by a default, `$onUpdate` or a trigger. It must have a time zone, or be in UTC.
   */
  changedAt?: TimeColumn<T>;
  /** Columns that must be unique across all cells, with their bucket types. Null columns have no claim. */
  attributes: { [Name in ScalarColumn<T>]?: Bucket["type"] | AttributeOptions<T> };
};

/**
 * The column that identifies a row permanently: `id` by default. Required if the table has no such column.
 */
type IdOption<T extends AnyTable> =
  "id" extends ScalarColumn<T> ? { id?: ScalarColumn<T> } : { id: ScalarColumn<T> };

export interface Attribute {
  name: string;
  bucket: Bucket["type"];
  when: (row: AnyRow) => boolean;
  isEnabled: () => boolean;
}

/** A claim that a row should have, and the attribute that it comes from. */
export interface RowClaim {
  bucket: Bucket;
  /** Undefined if the row has none. A claim can be destroyed without it, but not created. */
  subject: Subject | undefined;
  source: Source;
  /** Undefined: the row's claims have none. */
  scope?: string;
  attribute: string;
}

/**
 * The text of a value that can be claimed. Undefined for null. Throws unless it is text or an exact number.
 */
export function scalarText(value: unknown, what: string): string | undefined {
  if (value === null || value === undefined) return undefined;
  if (typeof value === "number" && !isExact(value)) throw inexact(what, value);
  if (typeof value === "string" || typeof value === "number" || typeof value === "bigint")
    return String(value);
  throw invalidArgument(what, "must be text or a number");
}

/** Decimal numbers with so many digits are different numbers in JavaScript. Some with more are not. */
const EXACT_DIGITS = 15;

/** Whether a number stands for itself: no whole number that JavaScript rounds, and no long decimal. */
function isExact(value: number): boolean {
  if (!Number.isFinite(value) || Math.abs(value) > Number.MAX_SAFE_INTEGER) return false;
  const [digits = ""] = value.toExponential().split("e");
  return Number.isInteger(value) || digits.replaceAll(/\D/g, "").length <= EXACT_DIGITS;
}

/** Whether a number would not hold this value. */
const isLarge = (value: unknown): value is bigint =>
  typeof value === "bigint" && (value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER);

const inexact = (what: string, value: number | bigint): Error =>
  invalidArgument(
    what,
    `is ${value}, and JavaScript rounds such numbers, so it may be another row or name: read the column as ` +
      "text or bigint (mysql2, also in an ORM: `supportBigNumbers` and `bigNumberStrings`; node-postgres: " +
      'its own parser of the type; drizzle, in addition: `mode: "bigint"`)',
  );

/** A table with claimed columns. */
export class Claimable<T extends AnyTable = AnyTable> {
  readonly table: T;
  readonly name: string;
  readonly source: Source["type"];
  readonly idName: string;
  readonly changedAt: string | undefined;
  readonly attributes: readonly Attribute[];
  readonly subjectType: Subject["type"];
  /** The column with the subject's id. Undefined if a function makes it. */
  readonly subjectIdName: string | undefined;
  /** The column with the scope. Undefined if there is none, or if a function makes it. */
  readonly scopeName: string | undefined;
  /** Whether a function computes a part of the claims, from any columns. */
  readonly hasFunctions: boolean;
  readonly #subjectId: (row: AnyRow) => unknown;
  readonly #scope: (row: AnyRow) => unknown;

  constructor(table: T, options: ClaimableOptions<T>) {
    this.table = table;
    this.name = tableName(table);
    this.source = options.source;
    const { id: idName } = options as { id?: string };
    const columns = declaredColumns(table);
    if (idName === undefined && columns !== undefined && columns["id"] === undefined)
      throw invalidArgument(
        "id",
        `must name the column that identifies a row, as ${this.name} has no \`id\``,
      );
    this.idName = idName ?? "id";
    this.#checkColumn(this.idName, "id");
    this.changedAt = options.changedAt;
    if (options.changedAt !== undefined) this.#checkTime(options.changedAt);
    const { type, id } = options.subject;
    this.subjectType = type;
    this.#subjectId = typeof id === "function" ? id : (row) => row[id];
    this.subjectIdName = typeof id === "function" ? undefined : id;
    if (this.subjectIdName !== undefined) this.#checkColumn(this.subjectIdName, "subject.id");
    const { scope } = options;
    this.#scope = typeof scope === "function" ? scope : (row) => (scope === undefined ? null : row[scope]);
    this.scopeName = typeof scope === "function" ? undefined : scope;
    if (this.scopeName !== undefined) this.#checkColumn(this.scopeName, "scope");
    this.attributes = Object.entries(options.attributes).map(([name, given]) =>
      this.#attribute(name, given as Bucket["type"] | AttributeOptions<T>),
    );
    const whens = Object.values<unknown>(options.attributes).map(
      (given) => (given as AttributeOptions<T>).when,
    );
    this.hasFunctions = [id, scope, ...whens].some((given) => typeof given === "function");
    if (this.attributes.length === 0)
      throw invalidArgument("attributes", `of ${this.name} must name at least one column`);
  }

  /**
   * Throws if the id, subject or scope of a row may have been rounded. Claimed values are checked when their
   * claims are computed.
   *
   * @param isRounding whether the driver reads integers of 64 bits as numbers, so that those that an ORM has
   *   made into a `bigint` are rounded, too
   */
  checkExact(row: AnyRow, isRounding = false): void {
    for (const name of [this.idName, this.subjectIdName, this.scopeName])
      if (name !== undefined && typeof row[name] === "number") scalarText(row[name], name);
    const large = isRounding ? this.#large(row) : undefined;
    if (large !== undefined) throw inexact(large, row[large] as bigint);
  }

  /** Whether a row has a `bigint` that a driver may have read as a number. */
  hasLarge(row: AnyRow): boolean {
    return this.#large(row) !== undefined;
  }

  #large(row: AnyRow): string | undefined {
    const claimed = this.attributes.map(({ name }) => name);
    const names = [this.idName, this.subjectIdName, this.scopeName, ...claimed];
    return names.find((name) => name !== undefined && isLarge(row[name]));
  }

  idOf(row: AnyRow): string {
    const id = scalarText(row[this.idName], this.idName);
    if (id !== undefined) return id;
    throw invalidArgument(this.idName, `of a row of ${this.name} is missing: select this column too`);
  }

  /** The claims of a row: of its columns that are enabled, apply to it, and are not null. */
  claimsOf(
    row: AnyRow,
    isEnabled: (attribute: Attribute) => boolean = (attribute) => attribute.isEnabled(),
  ): RowClaim[] {
    const claimed = this.attributes.flatMap((attribute) => {
      const { name, bucket, when } = attribute;
      if (!isEnabled(attribute) || !when(row)) return [];
      const value = scalarText(row[name], name);
      return value === undefined ? [] : [{ name, bucket: { type: bucket, value } }];
    });
    if (claimed.length === 0) return [];
    const subjectId = scalarText(this.#subjectId(row), "subject.id");
    const subject = subjectId === undefined ? undefined : { type: this.subjectType, id: subjectId };
    const source = { type: this.source, id: this.idOf(row) };
    const scope = scalarText(this.#scope(row), "scope");
    const scoped = scope === undefined ? {} : { scope };
    return claimed.map(({ name, bucket }) => ({ bucket, subject, source, ...scoped, attribute: name }));
  }

  #attribute(name: string, given: Bucket["type"] | AttributeOptions<T>): Attribute {
    this.#checkColumn(name, `attributes.${name}`);
    const { bucket, when, enabled = true } = typeof given === "string" ? { bucket: given } : given;
    return {
      name,
      bucket,
      when: (when as Attribute["when"] | undefined) ?? (() => true),
      isEnabled: typeof enabled === "function" ? enabled : () => enabled,
    };
  }

  #checkTime(name: string): void {
    const type = this.#checkColumn(name, "changedAt")?.getSQLType();
    if (type !== undefined && !isTimeType(type))
      throw invalidArgument("changedAt", `names ${name}, which must be a timestamp or datetime, not ${type}`);
  }

  /** The columns of a named table are checked when they are read from the database. */
  #checkColumn(name: string, option: string): Column | undefined {
    const columns = declaredColumns(this.table);
    if (columns !== undefined && columns[name] === undefined)
      throw invalidArgument(option, `names ${name}, which is not a column of ${this.name}`);
    return columns?.[name];
  }
}

export const isTimeType = (sqlType: string): boolean => /^(timestamp|datetime)/i.test(sqlType);

/**
 * Declares which columns of a table must be unique across all cells.
 *
 * @param table - A table of drizzle, or one that another adapter made: see `leasehold/cell/pg`.
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
export const claimable = <T extends AnyTable>(table: T, options: ClaimableOptions<T>): Claimable<T> =>
  new Claimable(table, options);
