import { MAX_PATTERN_SEGMENTS, MAX_VALUE_LENGTH, quoted, type Findings } from "./fields.ts";

/** What conditions captured and transforms decoded: texts by name, as in `payload` or `decoded.c`. */
export type Variables = ReadonlyMap<string, string>;

/** A text with `${name}` in it. */
export interface Template {
  readonly source: string;
  readonly variables: readonly string[];
  /** Returns the text, or undefined if a variable is missing, or the text would be empty or too long. */
  fill(variables: Variables): string | undefined;
}

/** The name of a captured text, or of a field that a transform decoded. */
const VARIABLE = /^[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)?$/;

/** Compiles a template. Returns undefined, with a finding, if it is wrong. */
export function compileTemplate(
  source: string,
  path: string,
  isDefined: (variable: string) => boolean,
  findings: Findings,
): Template | undefined {
  // Odd entries are the texts between `${` and `}`.
  const parts = source.split(/\$\{([^}]*)\}/);
  const names = parts.filter((_, n) => n % 2 === 1);
  for (const [n, part] of parts.entries())
    if (n % 2 === 0 && part.includes("${")) {
      findings.add(path, "has a `${` without a `}`");
      return undefined;
    }
  for (const name of names)
    if (!VARIABLE.test(name)) {
      findings.add(
        path,
        `has ${quoted(`\${${name}}`)}: write the name of a captured text between the braces`,
      );
      return undefined;
    } else if (!isDefined(name)) {
      findings.add(path, `uses \`\${${name}}\`, which no condition captures and no transform makes`);
      return undefined;
    }
  return {
    source,
    variables: names,
    fill(variables) {
      let text = "";
      for (const [n, part] of parts.entries()) {
        const next = n % 2 === 0 ? part : variables.get(part);
        if (next === undefined) return undefined;
        text += next;
      }
      return text === "" || text.length > MAX_VALUE_LENGTH ? undefined : text;
    },
  };
}

/** A regular expression of the document. JavaScript's own: the checker refuses those that backtrack. */
export interface RegularExpression {
  readonly source: string;
  /** The names of its groups. */
  readonly groups: readonly string[];
  /** Returns the texts of its named groups, or null if it doesn't match, or the value is too long. */
  exec(value: string): Variables | null;
}

/** Compiles a regular expression. Returns undefined, with a finding, if it is not one. */
export function compileRegularExpression(
  source: string,
  path: string,
  findings: Findings,
): RegularExpression | undefined {
  let expression: RegExp;
  let names: string[];
  try {
    // GitLab's rules are written for expressions without flags.
    expression = new RegExp(source);
    // With an empty alternative it matches the empty text, and the result has the names of all groups.
    names = Object.keys(new RegExp(`${source}|`).exec("")?.groups ?? {});
  } catch (error) {
    findings.add(path, `is not a regular expression: ${error instanceof Error ? error.message : "unknown"}`);
    return undefined;
  }
  return {
    source,
    groups: names,
    exec(value) {
      if (value.length > MAX_VALUE_LENGTH) return null;
      const match = expression.exec(value);
      if (match === null) return null;
      return new Map(
        Object.entries(match.groups ?? {}).filter(
          ([, text]: [string, string | undefined]) => text !== undefined,
        ),
      );
    },
  };
}

/** Compiles one that has to match the whole text, for names of cookies and headers. */
export const compileWhole = (
  source: string,
  path: string,
  findings: Findings,
): RegularExpression | undefined =>
  // The first call refuses what is only valid because of the group around it, such as `a)|(b`.
  compileRegularExpression(source, path, findings) &&
  compileRegularExpression(`^(?:${source})$`, path, findings);

/** One segment of a path pattern, or one label of a host pattern. */
export type PatternPart =
  | { readonly kind: "literal"; readonly text: string }
  /** `:name`: exactly one segment. */
  | { readonly kind: "one"; readonly name: string }
  /** `*name`: one or more segments. `*`: any number of them, which nothing captures. */
  | { readonly kind: "rest"; readonly name: string | null };

const NAME = /^[A-Za-z_]\w*$/;

/** Reads the parts of a pattern. Returns undefined, with a finding, if it is wrong. */
export function readPattern(
  texts: readonly string[],
  path: string,
  restAt: "end" | "start",
  findings: Findings,
): PatternPart[] | undefined {
  if (texts.length > MAX_PATTERN_SEGMENTS) {
    findings.add(path, `has ${texts.length} parts; at most ${MAX_PATTERN_SEGMENTS} are allowed`);
    return undefined;
  }
  const parts: PatternPart[] = [];
  const names = new Set<string>();
  const restIndex = restAt === "end" ? texts.length - 1 : 0;
  for (const [n, text] of texts.entries()) {
    if (!text.startsWith(":") && !text.startsWith("*")) {
      parts.push({ kind: "literal", text });
      continue;
    }
    const name = text.slice(1);
    if (name !== "" && !NAME.test(name)) {
      findings.add(path, `has ${quoted(text)}: a name has letters, digits and _, and begins with no digit`);
      return undefined;
    }
    if (names.has(name)) {
      findings.add(path, `has the name ${quoted(name)} twice`);
      return undefined;
    }
    names.add(name);
    if (text.startsWith("*")) {
      if (n !== restIndex) {
        findings.add(path, `has ${quoted(text)}, which is only allowed at the ${restAt}`);
        return undefined;
      }
      parts.push({ kind: "rest", name: name === "" ? null : name });
    } else if (name === "") {
      findings.add(path, "has a `:` without a name");
      return undefined;
    } else parts.push({ kind: "one", name });
  }
  return parts;
}

/** The names that a pattern captures. */
export const patternNames = (parts: readonly PatternPart[]): string[] =>
  parts.flatMap((part) => (part.kind === "literal" || part.name === null ? [] : part.name));

/**
 * Compares segments with a pattern whose rest, if any, is at the end. Returns what was captured, with the
 * rest joined by `separator`, or null.
 */
export function matchPattern(
  parts: readonly PatternPart[],
  segments: readonly string[],
  separator: string,
): Variables | null {
  // Most rules of a long list are refused here.
  if (parts.some((part, n) => part.kind === "literal" && part.text !== segments[n])) return null;
  const captured = new Map<string, string>();
  for (const [n, part] of parts.entries()) {
    if (part.kind === "rest") {
      if (part.name === null) return captured;
      if (n >= segments.length) return null;
      captured.set(part.name, segments.slice(n).join(separator));
      return captured;
    }
    const segment = segments[n];
    if (segment === undefined) return null;
    if (part.kind === "one") captured.set(part.name, segment);
  }
  return parts.length === segments.length ? captured : null;
}
