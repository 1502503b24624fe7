import {
  type CellAddress,
  type FindOptions,
  type Name,
  type RouteAnswer,
  type Routes,
  RoutesUnavailableError,
} from "../lookups/routes.ts";
import type { Classification, Match, RoutedRequest, Ruleset } from "./types.ts";

/**
 * Finds the cell for a match. The first candidate that exists decides. If it is not known whether an earlier
 * one exists, the result is `unavailable`, and never a later candidate or "not found".
 *
 * @throws the signal's reason if `options.signal` aborts. Outages are results.
 * @example
 * ```ts
 * import { classify, compileRuleset, type Routes } from "leasehold/router";
 *
 * declare const routes: Routes;
 * const ruleset = compileRuleset([{ id: "all", action: "first_cell" }]);
 * const match = ruleset.match(new Request("https://app.example.com/acme/app"));
 * if (match !== null) console.log((await classify(match, routes)).kind);
 * ```
 */
export async function classify(
  match: Match,
  routes: Routes,
  options: FindOptions = {},
): Promise<Classification> {
  if (match.action === "classify") return classifyNames(match.rule, match.candidates, routes, options);
  if (match.action === "not_found")
    return { kind: "none", rule: match.rule, detail: "the rules give this request no cell" };
  let cell: CellAddress | undefined;
  try {
    cell = cellOf(match, await routes.cells(options));
    // The list may be old. Only a new one shows that there is no such cell (Q8).
    cell ??= cellOf(match, await routes.cells({ ...options, mustBeNew: true }));
  } catch (error) {
    if (!(error instanceof RoutesUnavailableError)) throw error;
    const { message, retryAfterMs } = error;
    return { kind: "unavailable", rule: match.rule, detail: message, retryAfterMs };
  }
  if (cell === undefined) return { kind: "none", rule: match.rule, detail: missingCell(match) };
  return {
    kind: "cell",
    rule: match.rule,
    action: match.action,
    cell,
    matchedName: null,
    answer: null,
    isFallback: match.action === "first_cell" || (match.action === "cell" && match.isFallback),
  };
}

/**
 * Finds the cell for a request: goes through the rules that match, and stops at the first that finds a cell,
 * or that doesn't continue.
 *
 * @throws the signal's reason if `options.signal` aborts. Outages are results.
 * @example
 * ```ts
 * import { chooseCell, compileRuleset, type Routes } from "leasehold/router";
 *
 * declare const routes: Routes;
 * const ruleset = compileRuleset([{ id: "all", action: "first_cell" }]);
 * const request = new Request("https://app.example.com/acme/app");
 * const choice = await chooseCell(ruleset, request, routes);
 * if (choice.kind === "cell") console.log(choice.cell.address);
 * ```
 */
export async function chooseCell(
  ruleset: Ruleset,
  request: RoutedRequest,
  routes: Routes,
  options: FindOptions = {},
): Promise<Classification> {
  let last: Classification = { kind: "none", rule: null, detail: "no rule matches this request" };
  for (const match of ruleset.matches(request)) {
    last = await classify(match, routes, options);
    if (last.kind !== "none") return last;
  }
  return last;
}

async function classifyNames(
  rule: string,
  candidates: readonly Name[],
  routes: Routes,
  options: FindOptions,
): Promise<Classification> {
  const [only] = candidates;
  const answers: RouteAnswer[] =
    only !== undefined && candidates.length === 1
      ? [await routes.find(only, options)]
      : await routes.findMany(candidates, options);
  for (const [n, answer] of answers.entries()) {
    switch (answer.kind) {
      case "found":
        return {
          kind: "cell",
          rule,
          action: "classify",
          cell: answer.cell,
          matchedName: candidates[n] ?? null,
          answer,
          isFallback: false,
        };
      case "unavailable": {
        const { detail, retryAfterMs } = answer;
        return { kind: "unavailable", rule, detail, retryAfterMs };
      }
      case "invalid":
        // A value that no name can have doesn't exist. Everything else is a mistake in the rules or settings.
        if (answer.field !== "value") return { kind: "misconfigured", rule, detail: answer.detail };
        break;
      case "none":
    }
  }
  return { kind: "none", rule, detail: "no cell owns a name of this request" };
}

function cellOf(
  match: Exclude<Match, { action: "classify" | "not_found" }>,
  cells: ReadonlyMap<string, CellAddress>,
): CellAddress | undefined {
  switch (match.action) {
    case "cell":
      return cells.get(match.cell);
    case "session_prefix":
      return cells.get(match.value) ?? cells.get(match.value.replace(/^cell-/, ""));
    case "first_cell":
      return [...cells.values()].toSorted(byId)[0];
  }
}

/** Ids are numbers of up to 64 bits without leading zeros, so a shorter one is smaller. */
function byId({ id: a }: CellAddress, { id: b }: CellAddress): number {
  if (a.length !== b.length) return a.length - b.length;
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function missingCell(match: Exclude<Match, { action: "classify" | "not_found" }>): string {
  switch (match.action) {
    case "cell":
      return "there is no cell with the id that the rule names";
    case "session_prefix":
      return "there is no cell with the session prefix of this request";
    case "first_cell":
      return "there are no cells";
  }
}
