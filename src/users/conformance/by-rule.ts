import type { CheckResult } from "./run-checks.ts";

/** The results of all checks of a rule. */
export interface RuleResult {
  rule: string;
  /** Failed if a check failed, skipped if no check ran. */
  result: CheckResult["result"];
  passed: number;
  failed: number;
  skipped: number;
}

/** The results by rule, in the order of the rules. */
export function byRule(results: readonly CheckResult[]): RuleResult[] {
  const counts = new Map<string, RuleResult>();
  for (const { rules, result } of results) {
    for (const rule of rules) {
      const count = counts.get(rule) ?? { rule, result, passed: 0, failed: 0, skipped: 0 };
      count[result] += 1;
      counts.set(rule, count);
    }
  }
  for (const count of counts.values())
    count.result = count.failed > 0 ? "failed" : count.passed > 0 ? "passed" : "skipped";
  return [...counts.values()].toSorted((a, b) => compareRules(a.rule, b.rule));
}

/** B2 comes before B10, and conventions come last. */
export function compareRules(a: string, b: string): number {
  const [first, second] = [keyOf(a), keyOf(b)];
  return first < second ? -1 : Number(first > second);
}

function keyOf(rule: string): string {
  const [, letter, number = ""] = /^([A-Z])(\d+)$/.exec(rule) ?? [];
  return letter === undefined ? `~${rule}` : `${letter}${number.padStart(3, "0")}`;
}
