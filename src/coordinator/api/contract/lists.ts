import * as z from "zod";
import { limitTable, type LimitName } from "../../../common/limits.ts";

/** The most items of a list: a limit of the deployment, or a number that never changes. */
export type ListLimit = LimitName | number;

const limitOf = new WeakMap<z.ZodType, ListLimit>();

/**
 * A list of a request. Its length is checked before its items are validated, or even parsed, because
 * validating 60,000 wrong items takes seconds. `maxItems` in openapi.json is the largest value that any
 * deployment may set.
 */
export function boundedList<Item extends z.ZodType>(
  item: Item,
  limit: ListLimit,
  { description, min = 0 }: { description: string; min?: number },
): z.ZodArray<Item> {
  const list = z
    .array(item)
    .min(min)
    .max(typeof limit === "number" ? limit : limitTable[limit].max)
    .meta({ description });
  limitOf.set(list, limit);
  return list;
}

/**
 * An object of a request with a field for each of its items, such as a set of types. The limit bounds how
 * much is parsed. Its handler reads the fields, and refuses one too many.
 */
export function boundedRecord<Value extends z.ZodType>(
  limit: number,
  schema: Readonly<Record<string, unknown>>,
  value: Value,
): z.ZodRecord<z.ZodString, Value> {
  const record = z.record(z.string(), value).meta({ ...schema });
  limitOf.set(record, limit);
  return record;
}

/**
 * The limits of all lists in a schema, by the path of the list without indexes, such as `creates` or
 * `groups[].members`. A schema with a list that `boundedList` didn't make cannot be used for requests.
 */
export function listLimitsOf(schema: z.ZodType): ReadonlyMap<string, ListLimit> {
  const limits = new Map<string, ListLimit>();
  collect(schema, "", limits);
  return limits;
}

function collect(schema: z.core.$ZodType, path: string, limits: Map<string, ListLimit>): void {
  if (schema instanceof z.ZodArray || schema instanceof z.ZodRecord) {
    const limit = limitOf.get(schema);
    if (limit === undefined) throw new Error(`the list ${path} of a request has no limit; use boundedList`);
    limits.set(path, limit);
    if (schema instanceof z.ZodArray) collect(schema.element, `${path}[]`, limits);
  } else if (schema instanceof z.ZodObject) {
    for (const [name, field] of Object.entries<z.core.$ZodType>(schema.shape))
      collect(field, path === "" ? name : `${path}.${name}`, limits);
  } else if (schema instanceof z.ZodUnion) {
    for (const option of schema.options) collect(option, path, limits);
  } else if (schema instanceof z.ZodPipe) collect(schema.in, path, limits);
  else if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable)
    collect(schema.unwrap(), path, limits);
  else if (!isScalar(schema)) throw new Error(`the field ${path} of a request has a kind with unknown lists`);
}

const isScalar = (schema: z.core.$ZodType): boolean =>
  schema instanceof z.ZodString ||
  schema instanceof z.ZodStringFormat ||
  schema instanceof z.ZodNumber ||
  schema instanceof z.ZodBoolean ||
  schema instanceof z.ZodEnum;
