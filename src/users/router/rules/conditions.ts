import type { Fields, Findings } from "./fields.ts";
import {
  compileRegularExpression,
  compileWhole,
  matchPattern,
  patternNames,
  readPattern,
  type PatternPart,
  type RegularExpression,
  type Variables,
} from "./pattern.ts";
import type { RoutedRequest } from "./types.ts";

/** The parts of one request that conditions read, each parsed when it is first needed. */
export class RequestParts {
  readonly #headers: Headers;
  readonly #url: URL | null;
  #segments: readonly string[] | undefined;
  #cookies: readonly (readonly [name: string, value: string])[] | undefined;

  constructor({ url, headers }: RoutedRequest) {
    this.#headers = headers;
    this.#url = typeof url === "string" ? (URL.canParse(url) ? new URL(url) : null) : url;
  }

  /** The path as it was sent, percent-encoded. */
  get pathname(): string {
    return this.#url?.pathname ?? "/";
  }

  /** The segments of the path, decoded. Empty ones are left out, so slashes at the end don't count. */
  get segments(): readonly string[] {
    this.#segments ??= this.pathname.split("/").flatMap((text) => (text === "" ? [] : decoded(text)));
    return this.#segments;
  }

  /** The host name in lower case, without the port and without a dot at the end. */
  get host(): string {
    const { hostname = "" } = this.#url ?? {};
    return hostname.endsWith(".") ? hostname.slice(0, -1) : hostname;
  }

  /** The header of a name, in a list of at most one. */
  header(name: string): string[] {
    const value = this.#headers.get(name);
    return value === null ? [] : [value];
  }

  headersNamed(isName: (name: string) => boolean): string[] {
    return [...this.#headers].flatMap(([name, value]) => (isName(name) ? value : []));
  }

  /** The values of the cookies of a name, in the order of the header. */
  cookiesNamed(isName: (name: string) => boolean): string[] {
    this.#cookies ??= parseCookies(this.#headers.get("cookie") ?? "");
    return this.#cookies.flatMap(([name, value]) => (isName(name) ? value : []));
  }
}

/** Cookies that are looked at. Browsers send at most some 180 to a site. */
const MAX_COOKIES = 256;

const parseCookies = (header: string): [name: string, value: string][] =>
  header.split(";", MAX_COOKIES).flatMap((pair): [name: string, value: string][] => {
    const equals = pair.indexOf("=");
    if (equals === -1) return [];
    const value = pair.slice(equals + 1).trim();
    const isQuoted = value.length > 1 && value.startsWith('"') && value.endsWith('"');
    return [[pair.slice(0, equals).trim(), isQuoted ? value.slice(1, -1) : value]];
  });

/** A segment that is not valid percent-encoding stays as it is. */
function decoded(segment: string): string {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

export const CONDITION_TYPES = ["path", "host", "header", "cookie"] as const;
type ConditionType = (typeof CONDITION_TYPES)[number];

/** One condition of a rule. */
export interface Condition {
  readonly type: ConditionType;
  /** The names that it captures. */
  readonly names: readonly string[];
  /** Its regular expressions, with their paths in the document. */
  readonly expressions: readonly { readonly path: string; readonly source: string }[];
  /** Present for a path or a host pattern. */
  readonly pattern: PatternCondition | null;
  /** Two conditions of the same key match the same requests and capture the same texts. */
  readonly key: string;
  /**
   * Returns what it captures, or nothing if it doesn't match. There are several results if the path can be
   * read in several ways: as it is, and without a format at the end.
   */
  match(request: RequestParts): readonly Variables[];
}

export interface PatternCondition {
  readonly parts: readonly PatternPart[];
  readonly until: readonly string[];
  readonly notUnder: readonly string[];
  readonly formats: readonly string[];
}

const PATTERN_FIELDS = ["pattern", "until", "notUnder", "formats"];
const NAME_FIELDS = ["name", "regexName", "regex_name"];
const VALUE_FIELDS = ["regexValue", "regex_value"];

/** The fields of conditions, by type. */
export const CONDITION_FIELDS: Readonly<Record<ConditionType, readonly string[]>> = {
  path: ["type", ...PATTERN_FIELDS, ...VALUE_FIELDS],
  host: ["type", "pattern", ...VALUE_FIELDS],
  header: ["type", ...NAME_FIELDS, ...VALUE_FIELDS],
  cookie: ["type", ...NAME_FIELDS, ...VALUE_FIELDS],
};

/** Compiles a condition. Returns undefined, with findings, if it is wrong. */
export function compileCondition(
  type: ConditionType,
  fields: Fields,
  findings: Findings,
): Condition | undefined {
  switch (type) {
    case "path":
      return fields.oneOf(["pattern", ...VALUE_FIELDS], true) === "pattern"
        ? pathCondition(fields, findings)
        : valueCondition(type, fields, (request) => [request.pathname], findings);
    case "host":
      return fields.oneOf(["pattern", ...VALUE_FIELDS], true) === "pattern"
        ? hostCondition(fields, findings)
        : valueCondition(type, fields, (request) => [request.host], findings);
    case "header":
    case "cookie":
      return namedCondition(type, fields, findings);
  }
}

function pathCondition(fields: Fields, findings: Findings): Condition | undefined {
  const text = fields.text("pattern");
  const pattern = {
    until: fields.texts("until"),
    notUnder: fields.texts("notUnder"),
    formats: fields.texts("formats"),
  };
  for (const name of VALUE_FIELDS)
    if (fields.has(name)) findings.add(fields.at(name), "cannot stand beside `pattern`");
  if (text === undefined) return undefined;
  if (!text.startsWith("/")) {
    findings.add(fields.at("pattern"), "must begin with a slash, as in `/groups/:name`");
    return undefined;
  }
  const texts = text.split("/").filter((part) => part !== "");
  const parts = readPattern(texts, fields.at("pattern"), "end", findings);
  if (parts === undefined) return undefined;
  const last = parts.at(-1);
  if (pattern.until.length > 0 && (last?.kind !== "rest" || last.name === null))
    findings.add(fields.at("until"), "ends a rest such as `*path`, which the pattern doesn't have");
  return {
    type: "path",
    names: patternNames(parts),
    expressions: [],
    pattern: { parts, ...pattern },
    key: JSON.stringify(["path", texts, pattern]),
    match: pathMatcher({ parts, ...pattern }),
  };
}

function pathMatcher({ parts, until, notUnder, formats }: PatternCondition): Condition["match"] {
  const excluded = new Set(notUnder);
  const ends = new Set(until);
  const restIndex = parts.length - 1;
  const suffixes = new Set(formats);
  const [first] = parts;
  // Most rules of a long list are refused by their first segment.
  const start = first?.kind === "literal" ? first.text : null;
  const read = (segments: readonly string[]): Variables[] => {
    if (excluded.has(segments[0] ?? "")) return [];
    let end = segments.length;
    if (ends.size > 0) for (let n = restIndex; n < end; n++) if (ends.has(segments[n] ?? "")) end = n;
    const captured = matchPattern(parts, end === segments.length ? segments : segments.slice(0, end), "/");
    return captured === null ? [] : [captured];
  };
  return ({ segments }) => {
    if (start !== null && segments.length > 1 && segments[0] !== start) return [];
    const stripped = suffixes.size === 0 ? null : withoutFormat(segments, suffixes);
    if (stripped === null) return read(segments);
    // `/admin.json` is the page `/admin` in another format, so it is excluded like it.
    if (excluded.has(stripped[0] ?? "")) return [];
    return [...read(segments), ...read(stripped)];
  };
}

/** Cuts one format off the last segment. Returns null if it has none of the formats. */
function withoutFormat(segments: readonly string[], formats: ReadonlySet<string>): string[] | null {
  const last = segments.at(-1) ?? "";
  const dot = last.lastIndexOf(".");
  if (dot < 1 || !formats.has(last.slice(dot + 1))) return null;
  return [...segments.slice(0, -1), last.slice(0, dot)];
}

function hostCondition(fields: Fields, findings: Findings): Condition | undefined {
  const text = fields.text("pattern");
  for (const name of VALUE_FIELDS)
    if (fields.has(name)) findings.add(fields.at(name), "cannot stand beside `pattern`");
  if (text === undefined) return undefined;
  const labels = text.split(".");
  if (labels.includes("")) {
    findings.add(fields.at("pattern"), "must be a host name, as in `:name.example.com`");
    return undefined;
  }
  const parts = readPattern(labels, fields.at("pattern"), "start", findings)?.map((part) =>
    part.kind === "literal" ? { ...part, text: part.text.toLowerCase() } : part,
  );
  if (parts === undefined) return undefined;
  // The rest of a host name is on the left, so labels are compared from the right.
  const reversed = parts.toReversed();
  const restName = parts[0]?.kind === "rest" ? parts[0].name : null;
  return {
    type: "host",
    names: patternNames(parts),
    expressions: [],
    pattern: { parts: reversed, until: [], notUnder: [], formats: [] },
    key: JSON.stringify(["host", parts]),
    match({ host }) {
      const captured = matchPattern(reversed, host.split(".").toReversed(), ".");
      if (captured === null) return [];
      const rest = restName === null ? undefined : captured.get(restName);
      if (restName === null || rest === undefined) return [captured];
      return [new Map([...captured, [restName, rest.split(".").toReversed().join(".")]])];
    },
  };
}

function valueCondition(
  type: ConditionType,
  fields: Fields,
  values: (request: RequestParts) => readonly string[],
  findings: Findings,
): Condition | undefined {
  for (const name of PATTERN_FIELDS)
    if (fields.has(name)) findings.add(fields.at(name), "cannot stand beside a regular expression");
  return expressionCondition(type, [type], [], fields, values, findings);
}

function namedCondition(
  type: "header" | "cookie",
  fields: Fields,
  findings: Findings,
): Condition | undefined {
  const field = fields.oneOf(NAME_FIELDS, true);
  if (field === undefined) return undefined;
  const text = fields.text(field);
  if (text === undefined) return undefined;
  // Names of headers have no upper and lower case, those of cookies do.
  const name = type === "header" ? text.toLowerCase() : text;
  if (field === "name") {
    if (!TOKEN.test(text)) {
      findings.add(fields.at("name"), `must be the name of a ${type}`);
      return undefined;
    }
    return expressionCondition(
      type,
      [type, "name", name],
      [],
      fields,
      (request) =>
        type === "header" ? request.header(name) : request.cookiesNamed((cookie) => cookie === name),
      findings,
    );
  }
  const expression = compileWhole(text, fields.at(field), findings);
  if (expression === undefined) return undefined;
  const isName = (other: string): boolean => expression.exec(other) !== null;
  return expressionCondition(
    type,
    [type, "regexName", text],
    [{ path: fields.at(field), source: expression.source }],
    fields,
    (request) => (type === "header" ? request.headersNamed(isName) : request.cookiesNamed(isName)),
    findings,
  );
}

/** The characters of a token in RFC 9110, of which names of headers and cookies consist. */
const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/;

/** A condition on values: the first value that matches counts. Without an expression, any value matches. */
function expressionCondition(
  type: ConditionType,
  key: readonly string[],
  expressions: Condition["expressions"],
  fields: Fields,
  values: (request: RequestParts) => readonly string[],
  findings: Findings,
): Condition | undefined {
  const field = fields.oneOf(VALUE_FIELDS);
  let expression: RegularExpression | undefined;
  if (field !== undefined) {
    const source = fields.text(field);
    if (source === undefined) return undefined;
    expression = compileRegularExpression(source, fields.at(field), findings);
    if (expression === undefined) return undefined;
  }
  return {
    type,
    names: expression?.groups ?? [],
    expressions:
      field === undefined || expression === undefined
        ? expressions
        : [...expressions, { path: fields.at(field), source: expression.source }],
    pattern: null,
    key: JSON.stringify([...key, expression?.source ?? null]),
    match(request) {
      for (const value of values(request)) {
        const captured = expression === undefined ? new Map<string, string>() : expression.exec(value);
        if (captured !== null) return [captured];
      }
      return [];
    },
  };
}
