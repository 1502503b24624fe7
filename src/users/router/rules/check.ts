import type { Condition, PatternCondition } from "./conditions.ts";
import type { PatternPart } from "./pattern.ts";
import type { Rule } from "./rule.ts";
import { readDocument } from "./ruleset.ts";

/** Something in a document of rules that is wrong, or that does nothing. */
export interface RuleProblem {
  /** The rule's id, or its place in the document (`rules[3]`). Null for the document as a whole. */
  readonly rule: string | null;
  /** The path of the field, as in `rules[3].match.regexValue`. */
  readonly field: string;
  readonly kind: "invalid" | "unreachable" | "backtracking" | "undeclared_type" | "no_fallback";
  /** What is wrong, and what to do. */
  readonly message: string;
}

export interface CheckOptions {
  /** The bucket types that the deployment declares. Undefined: types are not compared. */
  readonly bucketTypes?: readonly string[] | undefined;
  /** Says why a regular expression can take too long, or null if it cannot. Undefined: not checked. */
  readonly slowness?: ((source: string) => string | null) | undefined;
}

/** Finds mistakes in a document of rules, and rules that do nothing, in the order of the document. */
export function checkRules(document: unknown, options: CheckOptions = {}): RuleProblem[] {
  const { rules, findings } = readDocument(document);
  const problems: RuleProblem[] = findings
    .all()
    .map(({ rule = null, field, message }) => ({ rule, field, kind: "invalid", message }));
  const earlier = new EarlierRules();
  for (const rule of rules) {
    const covering = earlier.covering(rule);
    if (covering !== undefined) problems.push(unreachable(rule, covering));
    earlier.add(rule);
    problems.push(...slowExpressions(rule, options), ...undeclaredTypes(rule, options));
  }
  if (findings.isEmpty && !rules.some(matchesEverything)) problems.push(noFallback);
  return problems;
}

const noFallback: RuleProblem = {
  rule: null,
  field: "rules",
  kind: "no_fallback",
  message:
    "have no fallback, so some requests match no rule. End them with a rule without `match`: the action " +
    "`first_cell`, `proxy` or `cell` for a default cell, or `not_found` if there is none",
};

function unreachable(rule: Rule, covering: Rule): RuleProblem {
  const other = covering.id === covering.path ? covering.id : `${covering.path} (${covering.id})`;
  return {
    rule: rule.id,
    field: rule.path,
    kind: "unreachable",
    message:
      covering.key === rule.key
        ? `does the same as \`${other}\`: remove it`
        : `is never reached, because \`${other}\` matches all of its requests: move it up or remove it`,
  };
}

function slowExpressions(rule: Rule, { slowness }: CheckOptions): RuleProblem[] {
  if (slowness === undefined) return [];
  return rule.expressions.flatMap(({ path, source }) => {
    const reason = slowness(source);
    if (reason === null) return [];
    const message =
      `can hold up the router: ${reason}. Begin with \`^\`, ` +
      "and let two repetitions never match the same text";
    return [{ rule: rule.id, field: path, kind: "backtracking" as const, message }];
  });
}

function undeclaredTypes(rule: Rule, { bucketTypes }: CheckOptions): RuleProblem[] {
  if (bucketTypes === undefined) return [];
  return rule.bucketTypes.flatMap(({ type, path }) => {
    if (bucketTypes.includes(type)) return [];
    const message = `names ${type}, which is not declared; declared: ${bucketTypes.join(", ")}`;
    return [{ rule: rule.id, field: path, kind: "undeclared_type" as const, message }];
  });
}

/** Whether no request passes a rule. */
const matchesEverything = ({ conditions, isPartial }: Rule): boolean =>
  !isPartial &&
  conditions.every(
    ({ type, pattern }) =>
      type === "path" &&
      pattern?.notUnder.length === 0 &&
      pattern.parts[0]?.kind === "rest" &&
      pattern.parts[0].name === null,
  );

/** Rules by the parts of their path patterns. */
interface PathNode {
  readonly literals: Map<string, PathNode>;
  one: PathNode | undefined;
  /** Rules whose pattern ends here, or has a rest here. */
  readonly rules: Rule[];
}

const newNode = (): PathNode => ({ literals: new Map(), one: undefined, rules: [] });

/** The rules before one. Rules with path patterns are in a tree, so that few of them are compared. */
class EarlierRules {
  readonly #root = newNode();
  readonly #withoutPath: Rule[] = [];
  readonly #byKey = new Map<string, Rule>();

  add(rule: Rule): void {
    // A rule that lets requests go on, even if it cannot find a cell for them, hides nothing.
    if (rule.continues) return;
    if (!this.#byKey.has(rule.key)) this.#byKey.set(rule.key, rule);
    if (rule.isPartial) return;
    const [parts] = pathPatterns(rule);
    if (parts === undefined) this.#withoutPath.push(rule);
    else this.#nodeOf(parts).rules.push(rule);
  }

  /** Returns an earlier rule that matches every request that this one matches. */
  covering(rule: Rule): Rule | undefined {
    const same = this.#byKey.get(rule.key);
    if (same !== undefined) return same;
    const similar = pathPatterns(rule).flatMap((parts) => similarRules(this.#root, parts, 0));
    return [...this.#withoutPath, ...similar].find((other) =>
      other.conditions.every((condition) => rule.conditions.some((one) => covers(condition, one))),
    );
  }

  #nodeOf(parts: readonly PatternPart[]): PathNode {
    let node = this.#root;
    for (const part of parts) {
      if (part.kind === "rest") break;
      let next = part.kind === "one" ? node.one : node.literals.get(part.text);
      if (next === undefined) {
        next = newNode();
        if (part.kind === "one") node.one = next;
        else node.literals.set(part.text, next);
      }
      node = next;
    }
    return node;
  }
}

/** Rules that may match all paths of a pattern, because each of their parts matches its part. */
function similarRules({ rules, literals, one }: PathNode, parts: readonly PatternPart[], n: number): Rule[] {
  const part = parts[n];
  if (part === undefined || part.kind === "rest") return rules;
  const next = [part.kind === "literal" ? literals.get(part.text) : undefined, one];
  return [...rules, ...next.flatMap((node) => (node === undefined ? [] : similarRules(node, parts, n + 1)))];
}

const pathPatterns = ({ conditions }: Rule): (readonly PatternPart[])[] =>
  conditions.flatMap(({ type, pattern }) => (type === "path" && pattern !== null ? [pattern.parts] : []));

/** Whether the first condition holds whenever the second does. Says no if it is not sure. */
function covers(a: Condition, b: Condition): boolean {
  if (a.key === b.key) return true;
  if (a.type !== b.type || a.pattern === null || b.pattern === null) return false;
  return (
    coversParts(a.pattern.parts, b.pattern.parts) &&
    coversStart(a.pattern, b.pattern) &&
    coversRest(a.pattern, b.pattern) &&
    coversFormats(a.pattern, b.pattern)
  );
}

function coversParts(a: readonly PatternPart[], b: readonly PatternPart[]): boolean {
  for (const [n, part] of a.entries()) {
    const other = b[n];
    if (part.kind === "rest")
      return part.name === null || (other !== undefined && (other.kind !== "rest" || other.name !== null));
    if (other === undefined || other.kind === "rest") return false;
    if (part.kind === "literal" && (other.kind !== "literal" || other.text !== part.text)) return false;
  }
  return a.length === b.length;
}

const isSubset = (a: readonly string[], b: readonly string[]): boolean => a.every((text) => b.includes(text));

/** `notUnder` of the first must not exclude what the second matches. */
function coversStart(a: PatternCondition, b: PatternCondition): boolean {
  const [first] = b.parts;
  return first?.kind === "literal" ? !a.notUnder.includes(first.text) : isSubset(a.notUnder, b.notUnder);
}

/** With `until`, the rest of the first must have a segment left. */
function coversRest(a: PatternCondition, b: PatternCondition): boolean {
  if (a.until.length === 0) return true;
  const other = b.parts[a.parts.length - 1];
  if (other?.kind === "literal") return !a.until.includes(other.text);
  return other?.kind === "rest" && isSubset(a.until, b.until);
}

/** A format that only the second cuts off must not be at the end of a literal segment of the first. */
function coversFormats(a: PatternCondition, b: PatternCondition): boolean {
  if (isSubset(b.formats, a.formats)) return true;
  const last = b.parts.findLastIndex(({ kind }) => kind !== "rest");
  return a.parts[last]?.kind !== "literal" && last !== -1;
}
