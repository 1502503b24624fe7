import { ok, refused, type Result } from "../kernel/refusal.ts";
import { fieldPath } from "./json.ts";
import { tooManyItems, type Bounds } from "./list-limits.ts";

/** The path of a target as it was sent, before it is decoded. */
export function pathOf(target: string): string {
  const end = target.search(/[?#]/);
  return end < 0 ? target : target.slice(0, end);
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
  target: string,
  { items }: Pick<Bounds, "items">,
): Result<Record<string, string | string[]>> {
  const query = new Map<string, string | string[]>();
  const start = target.indexOf("?");
  const text = start < 0 ? "" : target.slice(start + 1).replace(/#.*$/s, "");
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
