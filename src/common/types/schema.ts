import { MAX_PATTERN_LENGTH } from "../canonical/pattern.ts";
import { FLAGS, LISTS, MAX_LENGTH, MAX_TYPE_NUMBER, MAX_TYPES, TYPE_NAME } from "./document.ts";

type Schema = Readonly<Record<string, unknown>>;

const number: Schema = {
  type: "integer",
  minimum: 1,
  maximum: MAX_TYPE_NUMBER,
  description: "Unique among the types of its kind. It never changes while the type is in use.",
};

const flagDescriptions: Record<keyof typeof FLAGS, string> = {
  form:
    "`plain`, the default: the value is one name. `path`: slashes separate names. `email` and `domain`: an " +
    "address or a domain is only accepted in one spelling, with the domain in ASCII.",
  script:
    "`single`, the default: a name has characters of one script, and look-alikes of other scripts are the " +
    "same name. `any`: all visible characters.",
  case: "`folded`, the default: upper and lower case are the same. `exact`: they differ.",
};

const flag = (name: keyof typeof FLAGS): Schema => ({
  enum: FLAGS[name],
  default: FLAGS[name][0],
  description: flagDescriptions[name],
});

const length = (which: string): Schema => ({
  type: "integer",
  minimum: 1,
  maximum: MAX_LENGTH,
  description: `The ${which} number of characters of the canonical form.`,
});

const list = (description: string, properties: Schema): Schema => ({
  type: "object",
  description,
  minProperties: 1,
  maxProperties: MAX_TYPES,
  propertyNames: { pattern: TYPE_NAME.source },
  additionalProperties: {
    type: "object",
    properties,
    required: ["number"],
    additionalProperties: false,
  },
});

/** The lists of a set of types. `typesOf` also checks what a schema cannot say. */
export const typesSchemaProperties = {
  [LISTS.bucket]: list("What must be unique, such as usernames.", {
    number,
    form: flag("form"),
    script: flag("script"),
    case: flag("case"),
    pattern: {
      type: "string",
      minLength: 1,
      maxLength: MAX_PATTERN_LENGTH,
      description: "A regular expression in RE2's syntax that must match the whole canonical form.",
    },
    min_length: length("least"),
    max_length: length("largest"),
  }),
  [LISTS.subject]: list("Whom a name is about, such as a user.", { number }),
  [LISTS.source]: list("The table that a name comes from.", { number }),
} as const;

/** The JSON schema of `leasehold.types.json`, for editors. */
export const typesSchema: Schema = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  title: "Types of a Leasehold deployment",
  type: "object",
  properties: { $schema: { type: "string" }, ...typesSchemaProperties },
  required: Object.values(LISTS),
  additionalProperties: false,
};
