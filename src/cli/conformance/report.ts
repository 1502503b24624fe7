import {
  byRule,
  compareRules,
  type CheckResult,
  type RuleResult,
  type RunReport,
} from "../../users/conformance/run-checks.ts";
import type { Check, NameTypes } from "../../users/conformance/check-context.ts";
import { escapeLines } from "../../common/text/escape.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { exitCodes, type ExitCode } from "../framework/command-error.ts";
import type { Result } from "../output/result.ts";
import type { Style } from "../output/style.ts";
import { table, type Column } from "../output/table.ts";

interface Reported extends RunReport {
  url: string;
  cell: string;
  otherCell: string | undefined;
  types: NameTypes;
  prefix: string;
  seed: number;
  isInterrupted: boolean;
}

const columns: readonly Column<RuleResult>[] = [
  { title: "RULE", value: ({ rule }) => rule },
  { title: "RESULT", value: ({ result }) => (result === "failed" ? "FAILED" : result) },
  { title: "PASSED", value: ({ passed }) => passed, isNumber: true },
  { title: "FAILED", value: ({ failed }) => failed, isNumber: true },
  { title: "SKIPPED", value: ({ skipped }) => skipped, isNumber: true },
];

/** The result of a run: by rule for people, and by check for programs. */
export function reportOf(reported: Reported): Result {
  const { results, left, cleaned, url, cell, otherCell, types, prefix, seed, isInterrupted } = reported;
  const rules = byRule(results);
  const count = (wanted: CheckResult["result"]): number =>
    results.filter(({ result }) => result === wanted).length;
  const isOk = count("failed") === 0 && left.length === 0 && count("passed") > 0;
  return {
    document: {
      url,
      cell,
      other_cell: otherCell ?? null,
      types,
      prefix,
      seed,
      ok: isOk && !isInterrupted,
      interrupted: isInterrupted,
      rules,
      checks: results,
      clean_up: cleaned,
      left,
    },
    lines: results,
    text: (style) => [table(rules, columns, style), ...failuresOf(results, style)].join("\n\n"),
    notes: [
      ...skippedBecause(results),
      `${count("passed")} checks passed, ${count("failed")} failed, ${count("skipped")} skipped.`,
      ...left.map((what) => `It is left: ${what}`),
      ...(left.length === 0
        ? [`All names were given up: ${cleaned.released} claims, and ${cleaned.rolled_back} open leases.`]
        : []),
    ],
    nextSteps: left.length === 0 ? [] : [commandLine("conformance", "--clean-up", prefix)],
    exitCode: exitCodeOf(isOk, isInterrupted),
  };
}

function exitCodeOf(isOk: boolean, isInterrupted: boolean): ExitCode {
  if (isInterrupted) return exitCodes.interrupted;
  return isOk ? exitCodes.ok : exitCodes.failed;
}

const failuresOf = (results: readonly CheckResult[], style: Style): string[] =>
  results
    .filter(({ result }) => result === "failed")
    .map(({ id, rules, title, reason }) =>
      [
        `${style.bad("FAILED")} ${id} [${rules.join(", ")}]`,
        title,
        ...escapeLines(reason ?? "").split("\n"),
      ].join("\n  "),
    );

/** One line for each reason. */
function skippedBecause(results: readonly CheckResult[]): string[] {
  const counts = new Map<string, number>();
  for (const { result, reason } of results)
    if (result === "skipped") counts.set(reason ?? "", (counts.get(reason ?? "") ?? 0) + 1);
  return [...counts].map(([reason, count]) => `Skipped ${count}: ${reason}.`);
}

const checkColumns: readonly Column<Check>[] = [
  { title: "CHECK", value: ({ id }) => id },
  { title: "RULES", value: ({ rules }) => rules.toSorted(compareRules).join(" ") },
  { title: "NEEDS", value: ({ needs = [] }) => needs.join(" ") },
  { title: "WHAT CONFORMS", value: ({ title }) => title },
];

export function listOfChecks(checks: readonly Check[]): Result {
  const lines = checks.map(({ id, rules, title, needs = [] }) => ({ id, rules, needs, title }));
  return {
    document: { checks: lines },
    lines,
    text: (style) => table(checks, checkColumns, { ...style, isTerminal: false }),
  };
}
