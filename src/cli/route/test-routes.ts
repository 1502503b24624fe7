import { chooseCell, compileRuleset, createRoutes, RulesetError } from "../../users/router/index.ts";
import type { Classification, Match, RoutedRequest, RouterFetch, Ruleset } from "../../users/router/index.ts";
import { usageError, exitCodes, type ExitCode } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { listResult, type Result } from "../output/result.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { readRules } from "./read-rules.ts";

interface TestOptions {
  rules: string;
  header?: readonly string[];
  method: string;
  offline?: boolean;
}

interface Tested {
  url: string;
  /** The rule that decided. Null: none matches. */
  rule: string | null;
  action: string | null;
  /** The names that are looked up, in this order. */
  names: readonly { type: string; value: string }[];
  result: Classification["kind"] | "offline";
  cell: string | null;
  address: string | null;
  detail: string | null;
}

const MAX_URLS = 100;

/** The rules of one request that are shown. */
const MAX_NAMES = 64;

/** Asks what a router with these rules would do. No request is sent to a cell. */
export async function testRoutes(
  context: Context,
  urls: readonly string[],
  options: TestOptions,
): Promise<Result> {
  if (urls.length > MAX_URLS) throw usageError(`give at most ${MAX_URLS} URLs`);
  const requests = urls.map((url) => requestOf(url, options));
  const ruleset = compiled(options.rules, await readRules(options.rules));
  const tested =
    options.offline === true
      ? requests.map((request) => matchOnly(ruleset, request))
      : await askAll(context, ruleset, requests);
  return listResult<Tested>({
    name: "urls",
    items: tested,
    isCut: false,
    columns: [
      { title: "URL", value: ({ url }) => url },
      { title: "RULE", value: ({ rule }) => rule },
      { title: "ACTION", value: ({ action }) => action },
      { title: "NAMES", value: ({ names }) => names.map(({ type, value }) => `${type} ${value}`).join(", ") },
      { title: "CELL", value: ({ cell }) => cell },
      { title: "ADDRESS", value: ({ address }) => address },
      { title: "DETAIL", value: ({ detail }) => detail },
    ],
    empty: "",
    nextSteps: [commandLine("route", "check", options.rules)],
    exitCode: exitCodeOf(tested),
  });
}

function requestOf(url: string, { header = [], method }: TestOptions): RoutedRequest {
  if (!URL.canParse(url) || !/^https?:/i.test(url))
    throw usageError(`${JSON.stringify(url)} is not an absolute http or https URL`);
  const headers = new Headers();
  for (const line of header) {
    const [, name, value] = /^([^:\s]+):\s*(.*)$/.exec(line) ?? [];
    if (name === undefined || value === undefined)
      throw usageError("--header must be a line such as `Cookie: a=b`");
    try {
      headers.append(name, value);
    } catch {
      throw usageError(`--header has an invalid name or value: ${JSON.stringify(name)}`);
    }
  }
  return { url, headers, method: method.toUpperCase() };
}

function compiled(file: string, document: unknown): Ruleset {
  try {
    return compileRuleset(document);
  } catch (error) {
    if (!(error instanceof RulesetError)) throw error;
    const [first] = error.findings;
    throw usageError(`${file}: ${first?.field}: ${first?.message}`, [commandLine("route", "check", file)]);
  }
}

const namesOf = (match: Match | undefined): Tested["names"] =>
  match?.action === "classify" ? match.candidates.slice(0, MAX_NAMES) : [];

function matchOnly(ruleset: Ruleset, request: RoutedRequest): Tested {
  const match = ruleset.match(request) ?? undefined;
  return {
    url: String(request.url),
    rule: match?.rule ?? null,
    action: match?.action ?? null,
    names: namesOf(match),
    result: match === undefined ? "none" : "offline",
    cell: null,
    address: null,
    detail: match === undefined ? "no rule matches" : null,
  };
}

/** Every question reaches the coordinator: nothing is remembered from before, and no reports are read. */
async function askAll(
  context: Context,
  ruleset: Ruleset,
  requests: readonly RoutedRequest[],
): Promise<Tested[]> {
  const { url, key } = await context.target();
  const { fetch, signal } = context.io;
  const routes = createRoutes({ url, key, fetch: fetch as RouterFetch, reports: false });
  try {
    const tested: Tested[] = [];
    for (const request of requests)
      tested.push(testedOf(ruleset, request, await chooseCell(ruleset, request, routes, { signal })));
    return tested;
  } finally {
    routes.close();
  }
}

function testedOf(ruleset: Ruleset, request: RoutedRequest, choice: Classification): Tested {
  // The rule that decided may come after others that found no cell.
  const match = [...ruleset.matches(request)].find(({ rule }) => rule === choice.rule);
  const isCell = choice.kind === "cell";
  return {
    url: String(request.url),
    rule: choice.rule,
    action: match?.action ?? null,
    names: namesOf(match),
    result: choice.kind,
    cell: isCell ? choice.cell.id : null,
    address: isCell ? choice.cell.address : null,
    detail: isCell ? (choice.isFallback ? "the fallback" : null) : choice.detail,
  };
}

/** The worst result of all URLs decides. */
function exitCodeOf(tested: readonly Tested[]): ExitCode {
  const has = (kind: Tested["result"]): boolean => tested.some(({ result }) => result === kind);
  if (has("misconfigured")) return exitCodes.usage;
  if (has("unavailable")) return exitCodes.unavailable;
  return has("none") ? exitCodes.notFound : exitCodes.ok;
}
