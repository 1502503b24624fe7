import type { Name } from "../lookups/routes.ts";
import { MAX_CANDIDATES } from "./limits.ts";
import type { Template, Variables } from "./template.ts";

/** A name that a rule makes of a request. */
export interface Claim {
  readonly type: string;
  readonly value: Template;
  /** The segments of the longest name. Each shorter one follows. Null: only the whole value. */
  readonly prefixDepth: number | null;
  /** The path of the type in the document. */
  readonly typePath: string;
}

/** The names to look up, without duplicates: claims in their order, the longest name of each first. */
export function candidatesOf(claims: readonly Claim[], alternatives: readonly Variables[]): Name[] {
  const names = new Map<string, Name>();
  for (const { type, value, prefixDepth } of claims) {
    const texts = alternatives.flatMap((variables) => value.fill(variables) ?? []);
    for (const text of prefixDepth === null ? texts : prefixes(texts, prefixDepth)) {
      if (names.size === MAX_CANDIDATES) return [...names.values()];
      const key = `${type} ${text}`;
      if (!names.has(key)) names.set(key, { type, value: text });
    }
  }
  return [...names.values()];
}

/** `a/b/c` has the prefixes `a/b/c`, `a/b` and `a`. Alternatives of one length stay beside each other. */
function prefixes(texts: readonly string[], depth: number): string[] {
  const paths = texts.map((text) => text.split("/").filter((segment) => segment !== ""));
  const longest = Math.min(depth, Math.max(0, ...paths.map((path) => path.length)));
  return Array.from({ length: longest }, (_, n) => longest - n).flatMap((length) =>
    paths.flatMap((path) => (path.length < length ? [] : path.slice(0, length).join("/"))),
  );
}
