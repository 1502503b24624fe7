import type { Expression, ExpressionBuilder, SqlBool } from "kysely";
import { columnValuesOf } from "../adapter/condition.ts";
import { invalidArgument } from "../errors.ts";
import type { AnyTables } from "./any-tables.ts";

type Builder = ExpressionBuilder<AnyTables, string>;
type Factory = (eb: Builder) => Expression<SqlBool>;

/** Answers a condition in the form of Kysely. Undefined matches all rows. */
export function conditionOf(where: unknown): Factory | undefined {
  if (where === undefined) return undefined;
  if (isExpression(where)) return () => where;
  if (typeof where === "function")
    return (eb) => {
      const expression: unknown = (where as (eb: Builder) => unknown)(eb);
      if (isExpression(expression)) return expression;
      throw invalidArgument("where", "must return an expression of Kysely");
    };
  const columns = columnValuesOf(where, "an expression of Kysely, a function that returns one");
  return (eb) => eb.and(columns.map(([name, value]) => matching(eb, name, value)));
}

function matching(eb: Builder, name: string, value: unknown): Expression<SqlBool> {
  if (value === null) return eb(name, "is", null);
  if (!Array.isArray(value)) return eb(name, "=", value);
  const values = value.filter((each) => each !== null);
  const isOneOf = values.length === 0 ? eb.lit(false) : eb(name, "in", values);
  return value.includes(null) ? eb.or([isOneOf, eb(name, "is", null)]) : isOneOf;
}

const isExpression = (value: unknown): value is Expression<SqlBool> =>
  typeof value === "object" &&
  value !== null &&
  typeof (value as { toOperationNode?: unknown }).toOperationNode === "function";
