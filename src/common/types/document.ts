import { patternFault } from "../canonical/pattern.ts";
import type { CanonicalRule } from "../canonical/rule.ts";
import { ok, refused, shortened, type Result } from "../../coordinator/kernel/refusal.ts";
import { TYPE_KINDS, type TypeEntry, type TypeKind } from "./types.ts";

/** A set of types as people write it, such as the contents of `leasehold.types.json`. */
export interface TypesDocument {
  readonly $schema?: string;
  readonly bucket_types: Readonly<Record<string, BucketTypeDeclaration>>;
  readonly subject_types: Readonly<Record<string, TypeDeclaration>>;
  readonly source_types: Readonly<Record<string, TypeDeclaration>>;
}

interface TypeDeclaration {
  /** From 1 to 2^31 - 1, unique among the types of its kind. */
  readonly number: number;
}

export interface BucketTypeDeclaration extends TypeDeclaration {
  /**
   * `plain` by default: the value is one name. `path`: slashes separate names. `email` and `domain`:
   * addresses and domains are only accepted in one spelling.
   */
  readonly form?: "plain" | "path" | "email" | "domain" | (string & {});
  /** `single` by default: look-alikes of other scripts are the same name. `any`: every visible character. */
  readonly script?: "single" | "any" | (string & {});
  /** `folded` by default: upper and lower case are the same. `exact`: they differ. */
  readonly case?: "folded" | "exact" | (string & {});
  /** A regular expression in RE2's syntax that must match the whole canonical form. */
  readonly pattern?: string;
  /** The least number of characters of the canonical form. */
  readonly min_length?: number;
  /** The largest number of characters of the canonical form. */
  readonly max_length?: number;
}

/** The most types of one kind. Every isolate keeps the whole set in memory. */
export const MAX_TYPES = 256;

export const MAX_TYPE_NUMBER = 2 ** 31 - 1;

export const TYPE_NAME = /^[A-Z][A-Z0-9_]{0,63}$/;

/** The largest length bound. The limit on the bytes of a value is smaller in practice. */
export const MAX_LENGTH = 65_536;

export const LISTS = { bucket: "bucket_types", subject: "subject_types", source: "source_types" } as const;

export const FLAGS = {
  form: ["plain", "path", "email", "domain"],
  script: ["single", "any"],
  case: ["folded", "exact"],
} as const satisfies Partial<Record<keyof CanonicalRule, readonly string[]>>;

const BUCKET_FIELDS = ["number", ...Object.keys(FLAGS), "pattern", "min_length", "max_length"];

/**
 * Reads a declared set of types. A refusal names the entry, such as `bucket_types.HANDLES.case`.
 *
 *     typesOf({ bucket_types: { HANDLES: { number: 1 } }, subject_types: {}, source_types: {} });
 */
export function typesOf(document: unknown): Result<TypeEntry[]> {
  if (!isObject(document)) return invalid("types", "must be an object");
  const known: string[] = ["$schema", ...Object.values(LISTS)];
  const surplus = Object.keys(document).find((name) => !known.includes(name));
  if (surplus !== undefined)
    return invalid(shortened(surplus), `is unknown; a set of types has ${known.join(", ")}`);
  const entries: TypeEntry[] = [];
  for (const kind of TYPE_KINDS) {
    const read = entriesOf(kind, document[LISTS[kind]]);
    if (!read.ok) return read;
    entries.push(...read.value);
  }
  return ok(entries);
}

/** Returns the document of a set, with every rule in full. */
export function documentOf(entries: readonly TypeEntry[]): TypesDocument {
  const list = (kind: TypeKind): Record<string, BucketTypeDeclaration> => {
    const ofKind = entries.filter((entry) => entry.kind === kind).toSorted((a, b) => a.number - b.number);
    return Object.fromEntries(ofKind.map((entry) => [entry.name, declarationOf(entry)]));
  };
  return { bucket_types: list("bucket"), subject_types: list("subject"), source_types: list("source") };
}

/** The place of an entry in a set, such as `bucket_types.HANDLES`. */
export const entryText = (kind: TypeKind, name: string): string => `${LISTS[kind]}.${name}`;

/** Returns one entry as a set of types has it, with its rule in full. */
export const declarationOf = ({ number, rule }: TypeEntry): BucketTypeDeclaration => ({
  number,
  ...(rule === null ? {} : flagsOf(rule)),
});

const flagsOf = ({ form, script, case: letters, pattern, minLength, maxLength }: CanonicalRule) => ({
  form,
  script,
  case: letters,
  ...(pattern === undefined ? {} : { pattern }),
  ...(minLength === undefined ? {} : { min_length: minLength }),
  ...(maxLength === undefined ? {} : { max_length: maxLength }),
});

function entriesOf(kind: TypeKind, given: unknown): Result<TypeEntry[]> {
  const list = LISTS[kind];
  if (!isObject(given)) return invalid(list, "must be an object with one field per type");
  const names = Object.keys(given);
  if (names.length === 0) return invalid(list, "must declare at least one type");
  if (names.length > MAX_TYPES)
    return invalid(list, `declares ${names.length} types, and the limit is ${MAX_TYPES}`);
  const entries: TypeEntry[] = [];
  const nameByNumber = new Map<number, string>();
  for (const name of names) {
    const field = `${list}.${shortened(name)}`;
    if (!TYPE_NAME.test(name))
      return invalid(field, "is not a type's name: it must match [A-Z][A-Z0-9_]{0,63}");
    const declared = given[name];
    if (!isObject(declared)) return invalid(field, 'must be an object, such as { "number": 1 }');
    const { number } = declared;
    if (!isWholeNumber(number, 1, MAX_TYPE_NUMBER))
      return invalid(`${field}.number`, `must be a whole number from 1 to ${MAX_TYPE_NUMBER}`);
    const other = nameByNumber.get(number);
    if (other !== undefined) return invalid(`${field}.number`, `is ${number}, which ${other} has already`);
    nameByNumber.set(number, name);
    const rule = kind === "bucket" ? ruleOf(field, declared) : ruleless(field, declared);
    if (!rule.ok) return rule;
    entries.push({ kind, number, name, rule: rule.value, isInUse: false });
  }
  return ok(entries);
}

function ruleless(field: string, declared: Record<string, unknown>): Result<null> {
  const surplus = Object.keys(declared).find((name) => name !== "number");
  return surplus === undefined
    ? ok(null)
    : invalid(`${field}.${shortened(surplus)}`, "is unknown; only bucket types have more than a number");
}

function ruleOf(field: string, declared: Record<string, unknown>): Result<CanonicalRule> {
  const surplus = Object.keys(declared).find((name) => !BUCKET_FIELDS.includes(name));
  if (surplus !== undefined)
    return invalid(
      `${field}.${shortened(surplus)}`,
      `is unknown; a bucket type has ${BUCKET_FIELDS.join(", ")}`,
    );
  for (const [flag, values] of Object.entries(FLAGS)) {
    const value = declared[flag];
    if (value !== undefined && !(values as readonly unknown[]).includes(value))
      return invalid(`${field}.${flag}`, `must be one of ${values.join(", ")}`);
  }
  if (["email", "domain"].includes(declared["form"] as string) && declared["case"] === "exact")
    return invalid(`${field}.case`, "must be folded for email addresses and domains, which have no case");
  const { pattern, min_length: minLength, max_length: maxLength } = declared;
  for (const [name, value] of Object.entries({ min_length: minLength, max_length: maxLength }))
    if (value !== undefined && !isWholeNumber(value, 1, MAX_LENGTH))
      return invalid(`${field}.${name}`, `must be a whole number from 1 to ${MAX_LENGTH}`);
  if (typeof minLength === "number" && typeof maxLength === "number" && minLength > maxLength)
    return invalid(`${field}.min_length`, `must not be above \`max_length\`, which is ${maxLength}`);
  if (pattern !== undefined && typeof pattern !== "string")
    return invalid(`${field}.pattern`, "must be text");
  const fault = pattern === undefined ? undefined : patternFault(pattern, maxLength as number | undefined);
  if (fault !== undefined) return invalid(`${field}.pattern`, fault);
  return ok({
    form: (declared["form"] ?? "plain") as CanonicalRule["form"],
    script: (declared["script"] ?? "single") as CanonicalRule["script"],
    case: (declared["case"] ?? "folded") as CanonicalRule["case"],
    ...(pattern === undefined ? {} : { pattern }),
    ...(minLength === undefined ? {} : { minLength: minLength as number }),
    ...(maxLength === undefined ? {} : { maxLength: maxLength as number }),
  });
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isWholeNumber = (value: unknown, least: number, most: number): value is number =>
  Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most;

const invalid = (field: string, message: string): Result<never> =>
  refused("INVALID_ARGUMENT", `\`${field}\` ${message}`, { field });
