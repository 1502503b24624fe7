import type { Findings } from "./findings.ts";
import { MAX_VALUE_LENGTH } from "./limits.ts";
import type { Variables } from "./template.ts";

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
