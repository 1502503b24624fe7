/** Nearly valid requests: valid requests with one change, which may still be valid. */
import * as fc from "fast-check";
import type { RouteId } from "../../../src/coordinator/api/contract.ts";
import { repeatableOf, routeOf, validRequests, type FuzzRequest } from "./fuzz-request.ts";
import { at, isObject, Pairs, pathsIn, Raw, textIn, withChange, type TreePath, type Tree } from "./tree.ts";

/** Names that are not fields of any schema, some of which every JavaScript object has. */
const STRANGE_NAMES = [
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "__defineGetter__",
  "x",
  "",
  "Cell",
  "Creates",
  "creates ",
  "\u0000",
];

interface Mutation {
  note: string;
  /** Returns undefined to remove the value. */
  change: (before: Tree) => Tree | undefined;
  /** The status that it must get whatever the schema says. */
  must?: 400;
  /** True: a schema may ignore it at the top level of a body. */
  isIgnorable?: boolean;
}

const replaced = (note: string, value: Tree): Mutation => ({ note, change: () => value });
const ofText = (note: string, change: (text: string) => string): Mutation => ({
  note,
  change: (before) => (typeof before === "string" ? change(before) : before),
});

const TWICE: Mutation = {
  note: "a field twice",
  change: (before) => {
    const [first] = isObject(before) ? Object.entries(before) : [];
    return first === undefined
      ? new Pairs([
          ["x", 1],
          ["x", 1],
        ])
      : new Pairs([...Object.entries(before as object), first] as [string, Tree][]);
  },
  must: 400,
};

const strange = (name: string): Mutation => ({
  note: `a field named ${JSON.stringify(name)}`,
  change: (before) =>
    isObject(before) ? new Pairs([...Object.entries(before), [name, 1]]) : new Pairs([[name, 1]]),
  must: 400,
  isIgnorable: name !== "__proto__",
});

const MUTATIONS: readonly Mutation[] = [
  { note: "removed", change: () => undefined },
  TWICE,
  ...STRANGE_NAMES.map(strange),
  ...[null, true, 0, -1, 1.5, 2 ** 53, "", " ", "x", [], {}].map((value) =>
    replaced(`is ${JSON.stringify(value)}`, value),
  ),
  ...[
    "1e400",
    "-0",
    "1e-400",
    "1.0",
    "9007199254740993",
    "18446744073709551616",
    "0x1",
    "NaN",
    "01",
    "+1",
  ].map((text) => replaced(`is ${text}`, new Raw(text))),
  { note: "in a list", change: (before) => [before] },
  { note: "in an object", change: (before) => ({ x: before }) },
  {
    note: "twice, where it is in a list",
    change: (before) => (Array.isArray(before) ? [...before, ...before] : before),
  },
  ofText("with a trailing space", (text) => `${text} `),
  ofText("upper case", (text) => text.toUpperCase()),
  ofText("without its last letter", (text) => text.slice(0, -1)),
  ofText("with a NUL", (text) => `${text}\u0000`),
  ofText("with a lone surrogate", (text) => `${text}\ud800`),
  ofText("with a byte order mark", (text) => `\ufeff${text}`),
  // A URL that is longer than the runtime's limit never reaches the Worker.
  ofText("repeated many times", (text) => text.repeat(1_000).slice(0, 3_000)),
  { note: "a number as text", change: (before) => (typeof before === "number" ? String(before) : before) },
  {
    note: "text as a number",
    change: (before) => (typeof before === "string" && /^\d{1,15}$/.test(before) ? Number(before) : before),
  },
];

/** The number of mutations. */
export const MUTATION_COUNT = MUTATIONS.length;

/** Valid requests with one mutation, in the body, the query or the path: the nth one, or any. */
export function nearlyValidRequests(id: RouteId, nth?: number): fc.Arbitrary<FuzzRequest> {
  const parts = fc.record({
    request: validRequests(id),
    where: fc.nat(99),
    mutation: fc.constantFrom(...(nth === undefined ? MUTATIONS : MUTATIONS.slice(nth, nth + 1))),
    part: fc.nat(5),
  });
  return parts.map(({ request, where, mutation, part }) => {
    const { params, body } = routeOf(id);
    if (body !== undefined && part < 3) return inBody(request, where, mutation);
    const names = Object.keys((params as { shape?: object }).shape ?? {});
    return names.length > 0 && part < 5
      ? inPath(request, names[where % names.length] ?? "", mutation)
      : inQuery(request, where, mutation);
  });
}

function inBody(request: FuzzRequest, where: number, mutation: Mutation): FuzzRequest {
  const { note, change, must, isIgnorable = false } = mutation;
  const before = request.body ?? {};
  // Mutations of objects only apply to objects.
  const paths = pathsIn(before).filter((path) => must === undefined || isObject(at(before, path)));
  const path: TreePath = paths[where % paths.length] ?? [];
  const body = withChange(before, path, change);
  const isIgnored = isIgnorable && path.length === 0 && request.id === "classify";
  return {
    ...request,
    body,
    notes: [...request.notes, `body ${JSON.stringify(path)}: ${note}`],
    ...(must === undefined || isIgnored ? {} : { must }),
  };
}

function inPath(request: FuzzRequest, name: string, { note, change }: Mutation): FuzzRequest {
  const value = textIn(change(request.params[name] ?? ""));
  return {
    ...request,
    params: { ...request.params, [name]: value },
    notes: [...request.notes, `path ${name}: ${note}`],
  };
}

function inQuery(request: FuzzRequest, where: number, mutation: Mutation): FuzzRequest {
  const { note, change, must } = mutation;
  const index = where % (request.query.length + 1);
  const pair = request.query[index];
  if (pair === undefined || must !== undefined) {
    const name =
      mutation === TWICE ? (pair?.[0] ?? "x") : (STRANGE_NAMES[where % STRANGE_NAMES.length] ?? "x");
    const mayBeTwice = repeatableOf(request.id).includes(name);
    return {
      ...request,
      query: [...request.query, [name, "1"]],
      notes: [...request.notes, `query: ${name} more`],
      ...(mayBeTwice ? {} : { must: 400 }),
    };
  }
  const [name, value] = pair;
  const changed = change(value);
  const query = request.query.flatMap((each, at_): [string, string][] =>
    at_ !== index ? [each] : changed === undefined ? [] : [[name, textIn(changed)]],
  );
  return { ...request, query, notes: [...request.notes, `query ${name}: ${note}`] };
}
