/** What the adapter uses of a generated Prisma client, whatever its schema and extensions. */
import type { AdapterNames } from "../adapter/port.ts";
import type { StoredName } from "../adapter/stored-tables.ts";
import { invalidArgument } from "../errors.ts";

/** The methods of a model that the adapter calls. */
export interface ModelMethods {
  findMany(options: object): Promise<Readonly<Record<string, unknown>>[]>;
  createManyAndReturn(options: object): Promise<Readonly<Record<string, unknown>>[]>;
  updateManyAndReturn(options: object): Promise<Readonly<Record<string, unknown>>[]>;
  deleteMany(options: object): Promise<{ count: number }>;
}

/** Sends SQL: a client, or the client of a transaction. */
export interface RawClient {
  $queryRawUnsafe<T>(statement: string, ...parameters: unknown[]): PromiseLike<T>;
}

/** A Prisma client. The client of a transaction has no `$connect`. */
export interface PrismaClientLike extends RawClient {
  $connect(): PromiseLike<void>;
  $transaction: unknown;
}

/** The types that Prisma generates for a model. */
interface ModelTypes {
  payload: { scalars: object };
  operations: {
    findMany: { args: { where?: unknown } };
    createManyAndReturn: { args: { data: unknown } };
    updateManyAndReturn: { args: { data: unknown } };
  };
}

/** The models of a client, by the names of its properties: `user` for `prisma.user`. */
export type ModelName<Client> = {
  [Name in keyof Client]: Client[Name] extends { [key: symbol]: { types: ModelTypes } } ? Name : never;
}[keyof Client] &
  string;

type TypesOf<Client, Name extends keyof Client> = Client[Name] extends {
  [key: symbol]: { types: infer Types extends ModelTypes };
}
  ? Types
  : never;

/** A stored row: all scalar fields of the model. */
export type ModelRow<Client, Name extends keyof Client> = TypesOf<Client, Name>["payload"]["scalars"];

type WithoutArrays<T> = T extends readonly unknown[] ? never : T;

/** A row to insert, without nested writes of relations. */
export type NewModelRow<Client, Name extends keyof Client> = WithoutArrays<
  TypesOf<Client, Name>["operations"]["createManyAndReturn"]["args"]["data"]
>;

/** New values for rows, also such as `{ increment: 1 }`. */
export type ModelUpdate<Client, Name extends keyof Client> = TypesOf<
  Client,
  Name
>["operations"]["updateManyAndReturn"]["args"]["data"];

/** A condition, as `findMany` takes it. */
export type ModelWhere<Client, Name extends keyof Client> = NonNullable<
  TypesOf<Client, Name>["operations"]["findMany"]["args"]["where"]
>;

/** What the body of `$transaction` receives. */
export type TransactionClient<Client> = Client extends {
  $transaction(body: (tx: infer Tx) => Promise<never>): unknown;
}
  ? Tx
  : never;

/** The scalar fields of a model, and their columns. */
interface Model {
  /** As `@@map` names it, with its schema if the model has one. */
  schema: string | undefined;
  table: string;
  /** The column of each scalar field. */
  columns: ReadonlyMap<string, string>;
}

interface DataModel {
  models: Record<
    string,
    {
      dbName?: string | null;
      schema?: string | null;
      fields: readonly { name: string; kind: string; dbName?: string | null }[];
    }
  >;
}

/** The models of a client, by the names of its properties. */
export function modelsOf(client: PrismaClientLike): ReadonlyMap<string, Model> {
  const { _runtimeDataModel: dataModel } = client as { _runtimeDataModel?: DataModel };
  if (dataModel === undefined) throw invalidArgument("prisma", "must be a client of Prisma 7");
  return new Map(
    Object.entries(dataModel.models).map(([name, { dbName, schema, fields }]) => [
      `${name.charAt(0).toLowerCase()}${name.slice(1)}`,
      {
        schema: schema ?? undefined,
        table: dbName ?? name,
        columns: new Map(
          fields
            .filter(({ kind }) => kind !== "object")
            .map((field) => [field.name, field.dbName ?? field.name]),
        ),
      },
    ]),
  );
}

/** Throws unless this is a client of PostgreSQL, of no transaction and without read replicas. */
export function checkClient(client: PrismaClientLike): void {
  const given = client as unknown as Partial<Record<string, unknown>>;
  // Its COMMIT would only release a savepoint, so the lease would be committed before the rows.
  if (typeof given["$connect"] !== "function")
    throw invalidArgument("prisma", "must be a Prisma client, not the client of a transaction");
  if (given["_activeProvider"] !== "postgresql")
    throw invalidArgument(
      "prisma",
      `must be a client of PostgreSQL, not of ${String(given["_activeProvider"])}`,
    );
  // It sends SELECT to replicas, and reads decide between commit and rollback.
  if (given["$replica"] !== undefined)
    throw invalidArgument(
      "prisma",
      "must be the client of the primary, without the extension for read replicas",
    );
}

/** How the names of models and fields differ from those of tables and columns. */
export class PrismaModels implements AdapterNames {
  readonly #models: ReadonlyMap<string, Model>;
  readonly #schema: string;

  /** @param schema - Of models that don't name one. */
  constructor(models: ReadonlyMap<string, Model>, schema: string) {
    this.#models = models;
    this.#schema = schema;
  }

  table(name: string): string {
    const { schema, name: table } = this.tableOf(name);
    return `${String(schema)}.${table}`;
  }

  property(name: string, column: string): string {
    const { columns } = this.#model(name);
    const field = [...columns].find(([, itsColumn]) => itsColumn === column)?.[0];
    if (field !== undefined) return field;
    // A column that is not in the model must not be taken for a field of the same name.
    return columns.has(column) ? `${column} (column)` : column;
  }

  tableOf(name: string): StoredName {
    const { schema = this.#schema, table } = this.#model(name);
    return { schema, name: table };
  }

  columnOf(name: string, field: string): string {
    const column = this.#model(name).columns.get(field);
    if (column === undefined) throw invalidArgument("id", `names ${field}, which is not a field of ${name}`);
    return column;
  }

  /** Prisma's `select` of all scalar fields. */
  selectionOf(name: string): Record<string, true> {
    return Object.fromEntries([...this.#model(name).columns.keys()].map((field) => [field, true as const]));
  }

  #model(name: string): Model {
    const model = this.#models.get(name);
    if (model === undefined)
      throw invalidArgument("tables", `has ${name}, which is not a model of this Prisma client`);
    return model;
  }
}

/** The error of the database inside an error of Prisma, with the fields that Prisma's adapters give it. */
interface DriverCause {
  /** The SQLSTATE. */
  originalCode?: string;
  originalMessage?: string;
  severity?: string;
  detail?: string;
  table?: string;
  constraint?: { index?: string };
}

/**
 * Answers an error of Prisma as node-postgres would have thrown it. Prisma keeps the SQLSTATE, but drops the
 * severity of errors that it has a code of its own for, such as P2002. None of these are fatal once a
 * transaction has begun. An error without a SQLSTATE, such as P2028 or a lost connection, stays as it is.
 */
export function describePrismaError(error: unknown): unknown {
  const { originalCode, originalMessage, severity, detail, table, constraint } = driverCauseOf(error) ?? {};
  if (originalCode === undefined) return error;
  return {
    code: originalCode,
    severity: severity ?? "ERROR",
    message: originalMessage ?? "",
    table,
    constraint: constraint?.index,
    detail,
  };
}

/** A statement's error has the driver's in `meta`. The error of a COMMIT can be the driver's itself. */
function driverCauseOf(error: unknown): DriverCause | undefined {
  const { name, cause, meta } = error as {
    name?: string;
    cause?: DriverCause;
    meta?: { driverAdapterError?: { cause?: DriverCause } };
  };
  return name === "DriverAdapterError" ? cause : meta?.driverAdapterError?.cause;
}
