import type { Findings } from "./findings.ts";
import { quoted } from "./fields.ts";
import { MAX_VALUE_LENGTH } from "./limits.ts";

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
