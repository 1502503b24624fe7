/** A cell's database on PostgreSQL, with Prisma 7. */
import type { SqlAdapter, SqlResult } from "../adapter/port.ts";
import { postgresDatabase } from "../adapter/postgres.ts";
import type { CellDatabase } from "../local.ts";
import type { PostgresDatabaseOptions } from "../postgres/database.ts";
import type { TransactionConfig } from "../sql/connection.ts";
import { NamedTable } from "../table.ts";
import {
  checkClient,
  describePrismaError,
  modelsOf,
  PrismaModels,
  type ModelName,
  type ModelRow,
  type ModelUpdate,
  type ModelWhere,
  type NewModelRow,
  type PrismaClientLike,
  type RawClient,
  type TransactionClient,
} from "./client.ts";
import { PrismaRows } from "./rows.ts";

export { migration } from "../postgres/schema.ts";

export interface PrismaTransactionConfig extends TransactionConfig {
  /** How long to wait for a connection of the pool, in milliseconds. 30,000 by default. */
  maxWait?: number;
}

export interface PrismaPostgresOptions extends PostgresDatabaseOptions<PrismaTransactionConfig> {
  /** The schema of models without `@@schema`, as `PrismaPg` has it. `public` by default. */
  schema?: string;
}

/** A model of Prisma. A condition is one of `findMany`. */
export type PrismaTable<Client, Name extends keyof Client> = NamedTable<
  ModelRow<Client, Name> & object,
  NewModelRow<Client, Name> & object,
  ModelWhere<Client, Name>,
  ModelUpdate<Client, Name>
>;

export type PrismaTables<Client> = {
  readonly [Name in ModelName<Client>]: PrismaTable<Client, Name>;
};

/**
 * The longest time that a timer can have, which is 24 days. Prisma's default of 5 s is not safe: it rolls
 * back while the body still runs. If a write consists of several statements, Prisma then sends the rest of
 * them outside any transaction, where they are saved without their lease.
 */
const NO_TIMEOUT_MS = 2 ** 31 - 1;
/** Prisma's default is 2 s. While a transaction waits for its begin, it keeps its connection. */
const MAX_WAIT_MS = 30_000;

const tablesByClient = new WeakMap<object, unknown>();

/**
 * Answers the tables of all models, for `claimable` and for a cell's transactions. They have the names of the
 * client's properties.
 *
 * @example
 * ```ts
 * import { claimable } from "leasehold/cell";
 * import { prismaTables } from "leasehold/cell/prisma";
 *
 * const { user } = prismaTables(prisma);
 * const claimableUsers = claimable(user, {
 *   source: "RAILS_TABLE_USERS",
 *   subject: { type: "USER", id: "id" },
 *   attributes: { username: "USERNAMES" },
 * });
 * ```
 */
export function prismaTables<Client extends PrismaClientLike>(prisma: Client): PrismaTables<Client> {
  const known = tablesByClient.get(prisma) as PrismaTables<Client> | undefined;
  if (known !== undefined) return known;
  const tables = Object.fromEntries(
    [...modelsOf(prisma).keys()].map((name) => [name, new NamedTable(name)]),
  ) as unknown as PrismaTables<Client>;
  tablesByClient.set(prisma, tables);
  return tables;
}

/**
 * Makes the database for `createCell` from a client of Prisma 7 on PostgreSQL. `tx.db` is the client of an
 * interactive transaction.
 *
 * @param prisma - A client of the primary, never of a replica: reads decide between commit and rollback.
 *
 * @example
 * ```ts
 * import { createCell } from "leasehold/cell";
 * import { prismaPostgres, prismaTables } from "leasehold/cell/prisma";
 *
 * const { user } = prismaTables(prisma);
 * const cell = createCell({ client, database: prismaPostgres(prisma), tables: [claimableUsers] });
 * await cell.transaction(async (tx) => {
 *   const ada = await tx.insert(user, { username: "ada" });
 *   await tx.db.audit.create({ data: { userId: ada.id } });
 * });
 * ```
 */
export function prismaPostgres<Client extends PrismaClientLike>(
  prisma: Client,
  { schema = "public", ...options }: PrismaPostgresOptions = {},
): CellDatabase<TransactionClient<Client>> {
  checkClient(prisma);
  const models = new PrismaModels(modelsOf(prisma), schema);
  const adapter = new PrismaAdapter(prisma as unknown as RunningClient, models);
  // The transaction's client has the client's own types.
  return postgresDatabase(adapter, options) as CellDatabase<unknown> as CellDatabase<
    TransactionClient<Client>
  >;
}

interface RunningClient extends RawClient {
  $transaction<T>(body: (tx: RawClient) => Promise<T>, options: object): Promise<T>;
}

class PrismaAdapter implements SqlAdapter<RawClient> {
  readonly names: PrismaModels;
  readonly rows: PrismaRows<RawClient>;
  readonly describeError = describePrismaError as (error: unknown) => object;
  readonly #prisma: RunningClient;

  constructor(prisma: RunningClient, models: PrismaModels) {
    this.#prisma = prisma;
    this.names = models;
    this.rows = new PrismaRows(prisma, models);
  }

  transaction<T>(
    body: (tx: RawClient) => Promise<T>,
    { isolationLevel, maxWait = MAX_WAIT_MS }: PrismaTransactionConfig = {},
  ): Promise<T> {
    return this.#prisma.$transaction(body, {
      maxWait,
      timeout: NO_TIMEOUT_MS,
      ...(isolationLevel === undefined ? {} : { isolationLevel: inPascalCase(isolationLevel) }),
    });
  }

  async query(
    tx: RawClient | undefined,
    statement: string,
    parameters: readonly unknown[],
  ): Promise<SqlResult> {
    return { rows: await (tx ?? this.#prisma).$queryRawUnsafe<object[]>(statement, ...parameters) };
  }
}

/** `ReadCommitted` for `read committed`. */
const inPascalCase = (level: string): string =>
  level.replaceAll(/(?:^| )(\w)/g, (_match, first: string) => first.toUpperCase());
