import { describe, expect, it } from "vitest";
import {
  type CellAddress,
  type Name,
  type RouteAnswer,
  type Routes,
  RoutesUnavailableError,
} from "../../../../src/users/router/lookups/routes.ts";
import { chooseCell, classify } from "../../../../src/users/router/rules/classify.ts";
import { compileRuleset } from "../../../../src/users/router/rules/ruleset.ts";
import type { Match } from "../../../../src/users/router/rules/types.ts";

const cell = (id: string): CellAddress => ({ id, address: `https://cell-${id}.example.com` });

const origin = { shard: 3, position: 40, settled: true, ageMs: 0, layer: "memory" } as const;
const found = (id: string): RouteAnswer => ({
  kind: "found",
  cell: cell(id),
  epoch: 5,
  isStale: false,
  ...origin,
});
const none: RouteAnswer = { kind: "none", ...origin };
const unavailable: RouteAnswer = { kind: "unavailable", detail: "no answer", retryAfterMs: 250 };
const invalid = (field: string): RouteAnswer => ({ kind: "invalid", detail: `bad ${field}`, field });

/** Routes that answer from a table, by value. Other names don't exist. */
function fakeRoutes(
  answers: Readonly<Record<string, RouteAnswer>>,
  cells: readonly string[] | Error = [],
): Routes & { asked: string[] } {
  const asked: string[] = [];
  const find = async ({ value }: Name): Promise<RouteAnswer> => {
    asked.push(value);
    return answers[value] ?? none;
  };
  return {
    asked,
    find,
    findMany: (names) => Promise.all(names.map((name) => find(name))),
    refresh: () => Promise.reject(new Error("not used")),
    cells: async () => {
      if (cells instanceof Error) throw cells;
      return new Map(cells.map((id) => [id, cell(id)]));
    },
    refreshCells() {},
    close() {},
  };
}

const names = (...values: string[]): Match => ({
  rule: "r",
  action: "classify",
  continues: false,
  candidates: values.map((value) => ({ type: "ROUTES", value })),
});

describe("a chain of names", () => {
  it("case 18: the first name that exists decides, and the answer says which", async () => {
    const routes = fakeRoutes({ "a/b": found("7"), a: found("8") });
    expect(await classify(names("a/b/c", "a/b", "a"), routes)).toEqual({
      kind: "cell",
      rule: "r",
      action: "classify",
      cell: cell("7"),
      matchedName: { type: "ROUTES", value: "a/b" },
      answer: found("7"),
      isFallback: false,
    });
    expect(routes.asked).toEqual(["a/b/c", "a/b", "a"]);
  });

  it("has no cell if no name exists", async () => {
    expect(await classify(names("a", "b"), fakeRoutes({}))).toMatchObject({ kind: "none", rule: "r" });
  });

  it("Q8 is unavailable if an earlier name is, so a later one or `not found` is never guessed", async () => {
    const answer = { kind: "unavailable", rule: "r", detail: "no answer", retryAfterMs: 250 };
    expect(await classify(names("a", "b"), fakeRoutes({ a: unavailable, b: found("7") }))).toEqual(answer);
    expect(await classify(names("a", "b"), fakeRoutes({ b: unavailable }))).toEqual(answer);
    expect(await classify(names("a", "b"), fakeRoutes({ a: found("7"), b: unavailable }))).toMatchObject({
      kind: "cell",
    });
  });

  it("treats a value that no name can have like a name that doesn't exist", async () => {
    const routes = fakeRoutes({ "a b": invalid("value"), a: found("7") });
    expect(await classify(names("a b", "a"), routes)).toMatchObject({ kind: "cell", cell: cell("7") });
    expect(await classify(names("a b"), routes)).toMatchObject({ kind: "none" });
  });

  it("reports an undeclared type as a mistake in the rules, and not as a missing name", async () => {
    const routes = fakeRoutes({ a: invalid("bucket_type"), b: found("7") });
    expect(await classify(names("a", "b"), routes)).toEqual({
      kind: "misconfigured",
      rule: "r",
      detail: "bad bucket_type",
    });
  });
});

describe("a match that names a cell", () => {
  const common = { rule: "r", continues: false };

  it("finds a cell by id", async () => {
    const match: Match = { ...common, action: "cell", cell: "2", isFallback: false };
    expect(await classify(match, fakeRoutes({}, ["1", "2"]))).toMatchObject({
      kind: "cell",
      cell: cell("2"),
      matchedName: null,
      answer: null,
      isFallback: false,
    });
    expect(await classify(match, fakeRoutes({}, ["1"]))).toMatchObject({ kind: "none", rule: "r" });
  });

  it("finds a cell by the prefix of its sessions, with or without `cell-`", async () => {
    const match = (value: string): Match => ({ ...common, action: "session_prefix", value });
    const routes = fakeRoutes({}, ["1", "2"]);
    expect(await classify(match("cell-1"), routes)).toMatchObject({ cell: cell("1") });
    expect(await classify(match("1"), routes)).toMatchObject({ cell: cell("1") });
    expect(await classify(match("cell-3"), routes)).toMatchObject({ kind: "none" });
  });

  it("case 21: the first cell has the smallest id, and counts as a fallback", async () => {
    const match: Match = { ...common, action: "first_cell" };
    const ids = ["9223372036854775807", "10", "9", "9223372036854775806"];
    expect(await classify(match, fakeRoutes({}, ids))).toMatchObject({ cell: cell("9"), isFallback: true });
    expect(await classify(match, fakeRoutes({}, [ids[0] ?? "", ids[3] ?? ""]))).toMatchObject({
      cell: cell("9223372036854775806"),
    });
    expect(await classify(match, fakeRoutes({}, []))).toMatchObject({ kind: "none" });
  });

  it("case 21: the default cell of `proxy` counts as a fallback of its rule", async () => {
    const ruleset = compileRuleset({ defaultCell: "1", rules: [{ id: "legacy", action: "proxy" }] });
    const request = new Request("https://app.example.com/");
    expect(await chooseCell(ruleset, request, fakeRoutes({}, ["1"]))).toMatchObject({
      kind: "cell",
      rule: "legacy",
      isFallback: true,
    });
  });

  it("Q8 is unavailable if the cells are not known", async () => {
    const routes = fakeRoutes({}, new RoutesUnavailableError("no copy", 1000));
    expect(await classify({ ...common, action: "first_cell" }, routes)).toEqual({
      kind: "unavailable",
      rule: "r",
      detail: "no copy",
      retryAfterMs: 1000,
    });
  });

  it.each<Match>([
    { ...common, action: "cell", cell: "2", isFallback: false },
    { ...common, action: "session_prefix", value: "cell-2" },
  ])("Q8 is not missing because an old list doesn't have it: $action", async (match) => {
    const old = new Map([["1", cell("1")]]);
    const routes = fakeRoutes({}, ["1", "2"]);
    const read = routes.cells.bind(routes);
    routes.cells = async (options) => (options?.mustBeNew === true ? read() : old);
    expect(await classify(match, routes)).toMatchObject({ kind: "cell", cell: cell("2") });
    routes.cells = async ({ mustBeNew } = {}) => {
      if (mustBeNew === true) throw new RoutesUnavailableError("no copy", 1000);
      return old;
    };
    expect(await classify(match, routes)).toMatchObject({ kind: "unavailable", retryAfterMs: 1000 });
  });

  it("throws what is not an outage", async () => {
    const routes = fakeRoutes({}, new DOMException("stop", "AbortError"));
    await expect(classify({ ...common, action: "first_cell" }, routes)).rejects.toThrow("stop");
  });

  it("has no cell if the rules say so, without a question", async () => {
    const routes = fakeRoutes({}, new Error("not asked"));
    expect(await classify({ ...common, action: "not_found" }, routes)).toMatchObject({ kind: "none" });
  });
});

describe("the rules of a request", () => {
  const rules = (onNotFound: string): unknown[] => [
    {
      id: "paths",
      match: { type: "path", pattern: "/*path" },
      action: "classify",
      classify: { type: "ROUTES", value: "${path}", prefixDepth: 2 },
      onNotFound,
    },
    { id: "legacy", action: "first_cell" },
  ];
  const request = new Request("https://app.example.com/a/b");

  it("stop at a rule whose names don't exist, unless it says `onNotFound: next`", async () => {
    const routes = fakeRoutes({}, ["1"]);
    expect(await chooseCell(compileRuleset(rules("stop")), request, routes)).toMatchObject({
      kind: "none",
      rule: "paths",
    });
    expect(await chooseCell(compileRuleset(rules("next")), request, routes)).toMatchObject({
      kind: "cell",
      rule: "legacy",
      isFallback: true,
    });
  });

  it("Q8 stop at a rule that is unavailable: the default cell is never used in silence", async () => {
    const routes = fakeRoutes({ a: unavailable }, ["1"]);
    expect(await chooseCell(compileRuleset(rules("next")), request, routes)).toMatchObject({
      kind: "unavailable",
      rule: "paths",
    });
  });

  it("stop at a mistake", async () => {
    const routes = fakeRoutes({ a: invalid("bucket_type") }, ["1"]);
    expect(await chooseCell(compileRuleset(rules("next")), request, routes)).toMatchObject({
      kind: "misconfigured",
      rule: "paths",
    });
  });

  it("say so if none matches", async () => {
    const ruleset = compileRuleset(rules("next").slice(0, 1));
    const root = new Request("https://app.example.com/");
    expect(await chooseCell(ruleset, root, fakeRoutes({}))).toMatchObject({ kind: "none", rule: null });
  });
});
