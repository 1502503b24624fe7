import type { AdapterNames } from "../adapter/port.ts";
import type { StoredName } from "../adapter/stored-tables.ts";
import { invalidArgument } from "../errors.ts";
import type { Model } from "./client.ts";

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
