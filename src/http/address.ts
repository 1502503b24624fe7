import { ok, refused, type Result } from "../core/refusal.ts";
import { parameterNames, type Route } from "./contract/route.ts";
import { fieldPath } from "./json.ts";

/** The path as it was sent, before anything decodes it. */
export function rawPath(url: string): string {
  const start = url.indexOf("/", url.indexOf("://") + 3);
  const path = start < 0 ? "/" : url.slice(start);
  const end = path.search(/[?#]/);
  return end < 0 ? path : path.slice(0, end);
}

/** Where a route's parameters stand among the segments of its path. */
interface PathParameter {
  name: string;
  index: number;
  /** This segment and all behind it. */
  isRest: boolean;
}

export function pathParametersOf(route: Pick<Route, "path" | "rest">): PathParameter[] {
  const [last] = parameterNames(route).slice(-1);
  return [...route.path.split("/").entries()].flatMap(([index, part]) => {
    const name = /^\{(\w+)\}$/.exec(part)?.[1];
    return name === undefined ? [] : [{ name, index, isRest: route.rest === true && name === last }];
  });
}

/** The parameters of a path that is known to fit the route, still percent-encoded. */
export function rawParameters(parameters: readonly PathParameter[], path: string): Map<string, string> {
  const segments = path.split("/");
  return new Map(
    parameters.map(({ name, index, isRest }) => [
      name,
      (isRest ? segments.slice(index).join("/") : segments[index]) ?? "",
    ]),
  );
}

/** As hono routes it. A rest may be empty, which its fast router does not know in one pattern. */
export function routingPaths({ path, rest }: Pick<Route, "path" | "rest">): string[] {
  const pattern = path.replaceAll(/\{(\w+)\}/g, ":$1");
  return rest ? [`${pattern}{.+}`, pattern.replace(/:\w+$/, "")] : [pattern];
}

/** Whether a path, as it was sent, is one of the route's. */
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

/** One value per name, but for those that may be repeated: they get a list. */
export function parseQuery(
  url: string,
  repeatable: readonly string[],
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
    if (repeatable.includes(name)) query.set(name, [...(typeof before === "object" ? before : []), value]);
    else if (before === undefined) query.set(name, value);
    else return wrongName(name, "is given twice");
  }
  return ok(Object.fromEntries(query));
}

const badEncoding = (name: string): Result<never> => wrongName(name, "is not percent-encoded UTF-8");

/** Names are the caller's own text: of any length, and none at all. */
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
