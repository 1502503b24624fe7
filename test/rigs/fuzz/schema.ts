/**
 * Generates values that a zod schema accepts by walking the schema, so that new routes and fields are covered
 * automatically.
 */
import * as fc from "fast-check";
import * as z from "zod";
import { pools, typeLists } from "./pools.ts";
import type { Tree } from "./tree.ts";

/** The parts of zod's definitions that the walk reads. */
interface Definition {
  type: string;
  shape?: Record<string, z.ZodType>;
  entries?: Record<string, string | number>;
  values?: readonly (string | number | boolean | null)[];
  options?: readonly z.ZodType[];
  element?: z.ZodType;
  innerType?: z.ZodType;
  valueType?: z.ZodType;
  in?: z.ZodType;
  out?: z.ZodType;
  pattern?: RegExp;
  checks?: readonly { _zod: { def: Check } }[];
}

interface Check {
  check: string;
  pattern?: RegExp;
  minimum?: number;
  maximum?: number;
  value?: number;
}

interface Hints {
  id?: string;
  pattern?: string;
  format?: string;
  examples?: readonly unknown[];
}

const definitionOf = (schema: z.ZodType): Definition => schema.def;
const checksOf = (schema: z.ZodType): Check[] =>
  (definitionOf(schema).checks ?? []).map(({ _zod: { def } }) => def);

/** Whether a schema accepts a value. The schemas decide; the generators only propose. */
export const takes = (schema: z.ZodType, value: unknown): boolean => schema.safeParse(value).success;

/** The longest generated list. Longer lists are tested separately. */
const MOST_ITEMS = 4;

/** `name`: the field's name. For some names the pools have values that mean something to the server. */
export function valuesOf(schema: z.ZodType, name = "", inherited: Hints = {}): fc.Arbitrary<Tree> {
  const definition = definitionOf(schema);
  const hints: Hints = { ...inherited, ...(z.globalRegistry.get(schema) as Hints | undefined) };
  switch (definition.type) {
    case "object":
      return checked(schema, objectsOf(definition));
    case "array":
      return fc.array(valuesOf(defined(definition.element), name), {
        minLength: checksOf(schema).find(({ check }) => check === "min_length")?.minimum ?? 0,
        maxLength: MOST_ITEMS,
      });
    case "enum":
      return fc.constantFrom(...Object.values(definition.entries ?? {}));
    case "literal":
      return fc.constantFrom(...(definition.values ?? []));
    case "boolean":
      return fc.boolean();
    case "number":
      return numbersOf(schema);
    case "optional":
      return valuesOf(defined(definition.innerType), name, hints);
    case "nullable":
      return fc.option(valuesOf(defined(definition.innerType), name, hints));
    case "union":
      return fc.oneof(...(definition.options ?? []).map((option) => valuesOf(option, name, hints)));
    case "record":
      return name === "claims" ? claimsOf(defined(definition.valueType)) : typeListsOf(name);
    case "string":
      return checked(schema, stringsOf(schema, name, hints));
    case "pipe": {
      // Often only the second step limits the output of the first one. Both steps propose values, and the
      // whole schema decides.
      const [before, after] = [defined(definition.in), defined(definition.out)];
      const proposals = [before, after].filter((step) => definitionOf(step).type !== "transform");
      return checked(schema, fc.oneof(...proposals.map((step) => valuesOf(step, name, hints))));
    }
    default:
      throw new Error(`there is no generator for zod's ${definition.type}: write one here`);
  }
}

function objectsOf({ shape = {} }: Definition): fc.Arbitrary<Tree> {
  const fields = Object.entries(shape);
  const required = fields.filter(([, field]) => !takes(field, undefined)).map(([name]) => name);
  const model = Object.fromEntries(fields.map(([name, field]) => [name, valuesOf(field, name)]));
  return fc.record(model, { requiredKeys: required, noNullPrototype: true }) as fc.Arbitrary<Tree>;
}

/**
 * The types of a list of a set, by their names: the shipped ones, which other requests use, and up to two
 * others.
 */
function typeListsOf(list: string): fc.Arbitrary<Tree> {
  const known = typeLists[list];
  if (known === undefined) throw new Error(`there is no generator for the record ${list}: write one here`);
  const flags = { form: fc.constantFrom("plain", "path"), case: fc.constantFrom("folded", "exact") };
  const rule = list === "bucket_types" ? flags : {};
  const declarationFrom = (min: number): fc.Arbitrary<object> =>
    fc.record(
      { number: fc.integer({ min, max: min + 5 }), ...rule },
      { requiredKeys: ["number"], noNullPrototype: true },
    );
  const others = fc.record(
    { FZ_ONE: declarationFrom(100), FZ_TWO: declarationFrom(200) },
    { requiredKeys: [], noNullPrototype: true },
  );
  return others.map((some) => ({ ...known, ...some })) as fc.Arbitrary<Tree>;
}

/** The claims of a rule for tokens. */
const claimsOf = (value: z.ZodType): fc.Arbitrary<Tree> =>
  fc.record(
    { sub: valuesOf(value), repository: valuesOf(value) },
    { requiredKeys: ["sub"], noNullPrototype: true },
  ) as fc.Arbitrary<Tree>;

function numbersOf(schema: z.ZodType): fc.Arbitrary<number> {
  const bounds = checksOf(schema);
  const least = bounds.find(({ check }) => check === "greater_than")?.value ?? Number.MIN_SAFE_INTEGER;
  const most = bounds.find(({ check }) => check === "less_than")?.value ?? Number.MAX_SAFE_INTEGER;
  const near = Math.min(most, least + 1_000);
  const usual =
    least > 0 ? fc.integer({ min: least, max: near }) : fc.integer({ min: Math.max(least, -20), max: 20 });
  return checked(
    schema,
    fc.oneof(
      { weight: 5, arbitrary: usual },
      { weight: 1, arbitrary: fc.maxSafeInteger() },
      fc.constantFrom(least, most),
    ),
  );
}

function stringsOf(
  schema: z.ZodType,
  name: string,
  { id = "", pattern, format, examples }: Hints,
): fc.Arbitrary<string> {
  const checks = checksOf(schema);
  const minLength = checks.find(({ check }) => check === "min_length")?.minimum ?? 0;
  const maxLength = Math.min(checks.find(({ check }) => check === "max_length")?.maximum ?? 40, 300);
  const patterns = [
    ...checks.flatMap((check) => check.pattern ?? []),
    ...(pattern === undefined ? [] : [new RegExp(pattern)]),
  ];
  const types = pools[id];
  if (types !== undefined)
    return fc.oneof({ weight: 30, arbitrary: fc.constantFrom(...types) }, fc.constant("UNDECLARED"));
  const known = pools[name] ?? [];
  const shown = (examples ?? []).filter((example) => typeof example === "string");
  const proposals: fc.WeightedArbitrary<string>[] = [
    ...(known.length > 0 ? [{ weight: 8, arbitrary: fc.constantFrom(...known) }] : []),
    ...(shown.length > 0 ? [{ weight: 1, arbitrary: fc.constantFrom(...shown) }] : []),
    // The pattern's flags are ignored. The mutations cover what they would add.
    ...patterns.map((each) => ({ weight: 2, arbitrary: fc.stringMatching(new RegExp(each.source)) })),
    ...(format === "date-time" ? [{ weight: 4, arbitrary: moments }] : []),
    { weight: 1, arbitrary: fc.string({ unit: "grapheme", minLength, maxLength }) },
    { weight: 1, arbitrary: fc.string({ minLength, maxLength }) },
  ];
  return fc.oneof(...proposals);
}

const moments = fc
  .tuple(
    fc.date({ min: new Date(0), max: new Date("9999-12-31T00:00:00Z"), noInvalidDate: true }),
    fc.constantFrom("Z", "+23:59", "-23:59"),
  )
  .map(([date, offset]) => date.toISOString().replace("Z", offset));

/** Filters proposals by the schema. Throws if no proposal fits, instead of searching for ever. */
function checked<T extends Tree>(schema: z.ZodType, proposals: fc.Arbitrary<T>): fc.Arbitrary<T> {
  const fits = (value: T): boolean => takes(schema, value);
  if (!fc.sample(proposals, { numRuns: 300, seed: 1 }).some(fits)) {
    throw new Error(
      `none of 300 proposals fits the schema, for example ` +
        JSON.stringify(fc.sample(proposals, { numRuns: 1, seed: 1 })[0]),
    );
  }
  return proposals.filter(fits);
}

function defined<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("zod's definition has an unexpected shape");
  return value;
}
