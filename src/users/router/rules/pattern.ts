import { quoted } from "./fields.ts";
import type { Findings } from "./findings.ts";
import { MAX_PATTERN_SEGMENTS } from "./limits.ts";
import type { Variables } from "./template.ts";

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
