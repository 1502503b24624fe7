import { RequestParts } from "./conditions.ts";
import { DOCUMENT, Fields, Findings, MAX_DOCUMENT_BYTES, MAX_RULES, RulesetError } from "./fields.ts";
import { compileRule, type Rule } from "./rule.ts";
import type { Match, RoutedRequest, Ruleset } from "./types.ts";

/** A document of rules, read. */
interface ReadDocument {
  readonly rules: readonly Rule[];
  readonly findings: Findings;
}

/**
 * Compiles a document of routing rules.
 *
 * @param document The parsed JSON document: a list of rules, or an object with `rules` and `defaultCell`.
 *   `docs/reference/routing-rules.md` describes it.
 * @throws {RulesetError} if the document has a mistake. Its `findings` list all of them.
 * @example
 * ```ts
 * import { compileRuleset } from "leasehold/router";
 *
 * const ruleset = compileRuleset([
 *   {
 *     id: "groups",
 *     match: { type: "path", pattern: "/groups/:name/*" },
 *     action: "classify",
 *     classify: { type: "ROUTES", value: "${name}" },
 *   },
 *   { id: "other", action: "not_found" },
 * ]);
 * const match = ruleset.match(new Request("https://app.example.com/groups/acme/activity"));
 * ```
 */
export function compileRuleset(document: unknown): Ruleset {
  const { rules, findings } = readDocument(document);
  if (!findings.isEmpty) throw new RulesetError(findings.all());
  return new CompiledRuleset(rules);
}

/** Reads a document, with everything that is wrong with it. */
export function readDocument(document: unknown): ReadDocument {
  const findings = new Findings();
  const rules: Rule[] = [];
  const { entries, defaultCell } = readEntries(document, findings);
  const paths = new Map<string, string>();
  for (const [n, entry] of entries.entries()) {
    findings.rule = undefined;
    const rule = compileRule(entry, `rules[${n}]`, defaultCell, findings);
    if (rule === undefined) continue;
    const other = paths.get(rule.id);
    if (other !== undefined)
      findings.add(`${rule.path}.id`, `is also the id of \`${other}\`: ids are unique`);
    paths.set(rule.id, rule.path);
    rules.push(rule);
  }
  findings.rule = undefined;
  return { rules, findings };
}

function readEntries(
  document: unknown,
  findings: Findings,
): { entries: readonly unknown[]; defaultCell: string | null } {
  const size = sizeOf(document);
  if (size === null || size > MAX_DOCUMENT_BYTES) {
    findings.add(
      "rules",
      size === null
        ? "must be a JSON document"
        : `have ${size} bytes; at most ${MAX_DOCUMENT_BYTES} are allowed`,
    );
    return { entries: [], defaultCell: null };
  }
  const fields = Fields.of(
    Array.isArray(document) ? { rules: document } : document,
    DOCUMENT,
    ["$schema", "rules", "defaultCell"],
    findings,
  );
  if (fields === undefined) return { entries: [], defaultCell: null };
  const defaultCell = fields.text("defaultCell") ?? null;
  const entries = fields.list("rules", MAX_RULES).map(([entry]) => entry);
  if (entries.length === 0) findings.add("rules", "must be a list of at least one rule");
  return { entries, defaultCell };
}

/** The bytes of a document as JSON, or null if it cannot be written as JSON. */
function sizeOf(document: unknown): number | null {
  try {
    const json: string | undefined = JSON.stringify(document);
    return json === undefined ? null : new TextEncoder().encode(json).length;
  } catch {
    return null;
  }
}

class CompiledRuleset implements Ruleset {
  readonly rules: readonly string[];
  readonly bucketTypes: readonly string[];
  readonly #rules: readonly Rule[];

  constructor(rules: readonly Rule[]) {
    this.#rules = rules;
    this.rules = rules.map(({ id }) => id);
    this.bucketTypes = [...new Set(rules.flatMap((rule) => rule.bucketTypes.map(({ type }) => type)))];
  }

  match(request: RoutedRequest): Match | null {
    const [first] = this.matches(request);
    return first ?? null;
  }

  *matches(request: RoutedRequest): Generator<Match> {
    const parts = new RequestParts(request);
    for (const rule of this.#rules) {
      const match = rule.match(parts);
      if (match === null) continue;
      yield match;
      if (!match.continues) return;
    }
  }
}
