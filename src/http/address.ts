import { ok, refused, type Result } from "../core/refusal.ts";
import { parameterNames, type Route } from "./contract/route.ts";
import { fieldPath } from "./json.ts";
import { tooManyItems, type Bounds } from "./list-limits.ts";

/** The path as it was sent, before it is decoded. */
export function rawPath(url: string): string {
  const start = url.indexOf("/", url.indexOf("://") + 3);
  const path = start < 0 ? "/" : url.slice(start);
  const end = path.search(/[?#]/);
  return end < 0 ? path : path.slice(0, end);
}

/** The place of a parameter among the segments of a route's path. */
interface PathParameter {
  name: string;
  index: number;
  /** True if the parameter takes this segment and all that follow. */
  isRest: boolean;
}

export function pathParametersOf(route: Pick<Route, "path" | "rest">): PathParameter[] {
  const [last] = parameterNames(route).slice(-1);
  return [...route.path.split("/").entries()].flatMap(([index, part]) => {
    const name = /^\{(\w+)\}$/.exec(part)?.[1];
    return name === undefined ? [] : [{ name, index, isRest: route.rest === true && name === last }];
  });
}

/** Reads the parameters of a path that matches the route. They stay percent-encoded. */
export function rawParameters(parameters: readonly PathParameter[], path: string): Map<string, string> {
  const segments = path.split("/");
  return new Map(
    parameters.map(({ name, index, isRest }) => [
      name,
      (isRest ? segments.slice(index).join("/") : segments[index]) ?? "",
    ]),
  );
}

/**
 * The patterns that hono routes to this route. A rest may be empty, which hono's fast router cannot express
 * in the same pattern.
 */
export function routingPaths({ path, rest }: Pick<Route, "path" | "rest">): string[] {
  const pattern = path.replaceAll(/\{(\w+)\}/g, ":$1");
  return rest ? [`${pattern}{.+}`, pattern.replace(/:\w+$/, "")] : [pattern];
}

/** Makes a test for whether a path, as it was sent, matches the route. */
export function isPathOf({ path, rest }: Pick<Route, "path" | "rest">): (sent: string) => boolean {
  const literal = path.replaceAll(".", "\\.");
  const segments = rest ? literal.replace(/\{\w+\}$/, "[^]*") : literal;
  const pattern = new RegExp(`^${segments.replaceAll(/\{\w+\}/g, "[^/]+")}$`);
  return (sent) => pattern.test(sent);
}

export function decodeParameters(raw: ReadonlyMap<string, string>): Result<Record<string, string>> {
  const decoded: Record<string, string> = {};
  for (const [name, text] of raw) {
    const value = percentDecode(text);
    if (value === undefined) return badEncoding(name);
    decoded[name] = value;
  }
  return ok(decoded);
}

/** Parses the query. A parameter has one value, except those with a bound, which always get a list. */
export function parseQuery(
  url: string,
  { items }: Pick<Bounds, "items">,
): Result<Record<string, string | string[]>> {
  const query = new Map<string, string | string[]>();
  const start = url.indexOf("?");
  const text = start < 0 ? "" : url.slice(start + 1).replace(/#.*$/s, "");
  for (const pair of text.split("&")) {
    if (pair === "") continue;
    const [rawName = "", ...rest] = pair.split("=");
    const name = percentDecode(rawName.replaceAll("+", " "));
    if (name === undefined) return badEncoding("query");
    const value = percentDecode(rest.join("=").replaceAll("+", " "));
    if (value === undefined) return badEncoding(name);
    const before = query.get(name);
    const bound = items(name);
    if (bound !== undefined) {
      const list = typeof before === "object" ? before : [];
      if (list.length >= bound.most) return wrongName(`${name}[${list.length}]`, tooManyItems(bound));
      list.push(value);
      query.set(name, list);
    } else if (before === undefined) query.set(name, value);
    else return wrongName(name, "is given twice; give it once");
  }
  return ok(Object.fromEntries(query));
}

const badEncoding = (name: string): Result<never> => wrongName(name, "must be percent-encoded UTF-8");

/** `name` is the caller's own text, so it may be empty or of any length. */
function wrongName(name: string, message: string): Result<never> {
  const field = fieldPath([name]) || "query";
  return refused("INVALID_ARGUMENT", `\`${field}\` ${message}`, { field });
}

function percentDecode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
