import { MAX_VALUE_LENGTH, type Fields, type Findings } from "./fields.ts";
import {
  compileRegularExpression,
  compileTemplate,
  type RegularExpression,
  type Template,
  type Variables,
} from "./pattern.ts";

const TRANSFORM_TYPES = [
  "routable-token-payload",
  "routable-json",
  "decode-base64-match",
  "base64-line-delimited",
] as const;

/** Makes texts of texts. Returns null if its input has another form. Then the rule doesn't match. */
export interface Transform {
  readonly type: (typeof TRANSFORM_TYPES)[number];
  /** Its regular expression, if it has one, with the path in the document. */
  readonly expressions: readonly { readonly path: string; readonly source: string }[];
  /** The names of the texts that it makes. Null: any name under `output`. */
  readonly names: readonly string[] | null;
  readonly output: string | null;
  apply(variables: Variables): Variables | null;
}

export const TRANSFORM_FIELDS = ["type", "input", "output", "regexValue", "regex_value"];

/** The name of a transform's output. Its fields are used as `${name.field}`. */
const OUTPUT = /^[A-Za-z_]\w*$/;

/** Compiles a transform. Returns undefined, with findings, if it is wrong. */
export function compileTransform(
  fields: Fields,
  isDefined: (variable: string) => boolean,
  findings: Findings,
): Transform | undefined {
  const type = fields.choice("type", TRANSFORM_TYPES, true);
  const output = fields.text("output", type !== undefined && type !== "decode-base64-match");
  if (output !== undefined && !OUTPUT.test(output))
    findings.add(fields.at("output"), "must have only letters, digits and _, and begin with no digit");
  const inputs = readInputs(fields, type === "routable-token-payload" ? 2 : 1, isDefined, findings);
  const source = fields.oneOf(["regexValue", "regex_value"], type === "decode-base64-match");
  let expression: RegularExpression | undefined;
  if (source !== undefined && type !== "decode-base64-match")
    findings.add(fields.at(source), "is only for the type decode-base64-match");
  else if (source !== undefined) {
    const text = fields.text(source);
    if (text !== undefined) expression = compileRegularExpression(text, fields.at(source), findings);
  }
  if (type === undefined || inputs === undefined) return undefined;
  if (type === "decode-base64-match" && expression === undefined) return undefined;
  const prefix = output === undefined ? "" : `${output}.`;
  return {
    type,
    expressions:
      source === undefined || expression === undefined
        ? []
        : [{ path: fields.at(source), source: expression.source }],
    names: expression?.groups.map((name) => prefix + name) ?? null,
    output: output ?? null,
    apply(variables) {
      const texts = inputs.map((input) => input.fill(variables));
      if (!texts.every((text) => text !== undefined)) return null;
      const made = decode(type, texts, expression);
      return made && new Map([...made].map(([name, text]) => [prefix + name, text]));
    },
  };
}

function readInputs(
  fields: Fields,
  count: number,
  isDefined: (variable: string) => boolean,
  findings: Findings,
): Template[] | undefined {
  const entries = fields.oneOrMore("input", count);
  if (entries.length !== count) {
    if (!Array.isArray(fields.get("input")) || entries.length > 0 || !fields.has("input"))
      findings.add(fields.at("input"), `must have ${count === 1 ? "one text" : `${count} texts`}`);
    return undefined;
  }
  const templates = entries.flatMap(([entry, path]) => {
    if (typeof entry === "string") return compileTemplate(entry, path, isDefined, findings) ?? [];
    findings.add(path, "must be a string");
    return [];
  });
  return templates.length === count ? templates : undefined;
}

function decode(
  type: Transform["type"],
  [text = "", length = ""]: readonly string[],
  expression: RegularExpression | undefined,
): Variables | null {
  switch (type) {
    case "routable-token-payload":
      return tokenPayload(text, length);
    case "routable-json":
      return routableJson(text);
    case "base64-line-delimited":
      return lines(text);
    case "decode-base64-match": {
      const bytes = fromBase64(text);
      return bytes && (expression?.exec(utf8(bytes)) ?? null);
    }
  }
}

/** Random bytes at the start of a token's payload. */
const RANDOM_BYTES = 16;

/**
 * The payload of a routable token: random bytes, lines such as `c:1`, and the number of bytes in those lines.
 * Its length in the token, in base 36, says where it begins, because the text may have a prefix.
 */
function tokenPayload(text: string, length36: string): Variables | null {
  const length = base36(length36);
  if (length === null || length === 0n || length > BigInt(text.length)) return null;
  const bytes = fromBase64(text.slice(-Number(length)));
  if (bytes === null || bytes.length <= RANDOM_BYTES) return null;
  const size = bytes.at(-1) ?? 0;
  if (size !== bytes.length - RANDOM_BYTES - 1) return null;
  const result = new Map<string, string>();
  for (const [key, value] of pairs(utf8(bytes.subarray(RANDOM_BYTES, -1)))) {
    const decimal = toDecimal(key, value);
    if (decimal !== null) result.set(key, decimal);
  }
  return result;
}

/** A JSON object, itself or in base 64 as in the payload of a JSON web token. */
function routableJson(text: string): Variables | null {
  const bytes = text.startsWith("{") ? null : fromBase64(text);
  const json = bytes === null ? text : utf8(bytes);
  let parsed: unknown;
  try {
    parsed = JSON.parse(json);
  } catch {
    return null;
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) return null;
  const result = new Map<string, string>();
  for (const [name, value] of Object.entries(parsed) as [string, unknown][]) {
    const decimal = typeof value === "string" ? toDecimal(name, value) : null;
    // A number of JSON is in base 10, as numbers of JSON are.
    if (decimal !== null) result.set(name, decimal);
    else if (Number.isSafeInteger(value)) result.set(name, String(value));
  }
  return result;
}

function lines(text: string): Variables | null {
  const bytes = fromBase64(text);
  return bytes && pairs(utf8(bytes));
}

const pairs = (text: string): Map<string, string> =>
  new Map(
    text.split("\n").flatMap((line): [string, string][] => {
      const colon = line.indexOf(":");
      return colon < 1 ? [] : [[line.slice(0, colon), line.slice(colon + 1)]];
    }),
  );

/** The keys of a routable token, such as the cell. Their values are numbers in base 36. */
const ROUTING_KEYS = new Set(["c", "g", "o", "p", "u", "t"]);

/** Writes numbers in base 10, as ids are written everywhere else. Returns null for what is not a number. */
function toDecimal(key: string, text: string): string | null {
  if (!ROUTING_KEYS.has(key)) return text;
  return base36(text)?.toString() ?? null;
}

/** A number of at most 64 bits has at most 13 digits in base 36. */
const BASE36 = /^[0-9a-z]{1,13}$/;

function base36(text: string): bigint | null {
  if (!BASE36.test(text)) return null;
  let number = 0n;
  for (const digit of text) number = number * 36n + BigInt(Number.parseInt(digit, 36));
  return number;
}

/** Decodes base 64 in either alphabet, with or without padding. Returns null if it is none. */
function fromBase64(text: string): Uint8Array | null {
  if (text.length > MAX_VALUE_LENGTH) return null;
  try {
    const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    return Uint8Array.from(binary, (character) => character.codePointAt(0) ?? 0);
  } catch {
    return null;
  }
}

const utf8 = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
