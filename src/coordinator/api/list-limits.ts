import { apiLimitName, type LimitName, type Limits } from "../../common/limits.ts";
import { listLimitsOf, type ListLimit } from "./contract/lists.ts";
import * as z from "zod";
import type { Route, RouteBody } from "./contract/route.ts";

/**
 * More than the fields and items that one item of any list has. The largest is a replace with an epoch: 11.
 */
const VALUES_PER_ITEM = 16;

/** The fields of a body outside of its lists, with room for mistakes that deserve their own message. */
const OTHER_VALUES = 64;

/** How much a request may contain, in this deployment. It bounds the work of parsing and validation. */
export interface Bounds {
  /** The most levels of nesting. */
  depth: number;
  /** The most values: fields of objects, and items of lists, of all levels together. */
  values: number;
  /** The most items of the list at a path without indexes. Other lists are only bounded by `values`. */
  items: (path: string) => { most: number; limit?: LimitName } | undefined;
}

export function boundsOf(lists: ReadonlyMap<string, ListLimit>, limits: Limits): Bounds {
  let items = 0;
  for (const limit of lists.values()) items += mostOf(limit, limits);
  return {
    depth: limits.jsonDepth,
    values: OTHER_VALUES + VALUES_PER_ITEM * items,
    items: (path) => {
      const limit = lists.get(path);
      if (limit === undefined) return undefined;
      const most = mostOf(limit, limits);
      return typeof limit === "number" ? { most } : { most, limit };
    },
  };
}

const mostOf = (limit: ListLimit, limits: Limits): number =>
  typeof limit === "number" ? limit : limits[limit];

/** Completes a sentence that begins with the path of the first item that is too many. */
export function tooManyItems({ most, limit }: { most: number; limit?: LimitName }): string {
  const named = limit === undefined ? "" : ` (limit \`${apiLimitName(limit)}\`)`;
  return `is beyond the limit of ${most} items in one list${named}; send fewer`;
}

/** Finds the first item that its list has too many, in a value that was not parsed from JSON. */
export function findLongList(
  value: unknown,
  paths: Iterable<string>,
  { items }: Pick<Bounds, "items">,
): { field: string; message: string } | undefined {
  for (const path of paths) {
    const bound = items(path);
    if (bound === undefined) continue;
    for (const { at, length } of listsAt(value, path.split("."), ""))
      if (length > bound.most) return { field: `${at}[${bound.most}]`, message: tooManyItems(bound) };
  }
  return undefined;
}

interface FoundList {
  at: string;
  length: number;
}

/** The lists at a path without indexes, each with its own indexes. */
function listsAt(value: unknown, [name = "", ...rest]: readonly string[], before: string): FoundList[] {
  if (typeof value !== "object" || value === null) return [];
  const key = name.replace(/\[\]$/, "");
  const found = (value as Record<string, unknown>)[key];
  const at = before === "" ? key : `${before}.${key}`;
  if (key !== name)
    return Array.isArray(found) ? found.flatMap((item, index) => listsAt(item, rest, `${at}[${index}]`)) : [];
  if (rest.length > 0) return listsAt(found, rest, at);
  if (typeof found !== "object" || found === null) return [];
  return [{ at, length: Array.isArray(found) ? found.length : Object.keys(found).length }];
}

/**
 * The body of a route without one. A body with fields is refused, because ignoring it would hide that the
 * caller asked for something that is not done.
 */
export const NO_BODY: RouteBody = { required: false, schema: z.strictObject({}) };

/** The limits of the lists that a request may contain. */
export interface RequestLists {
  query: ReadonlyMap<string, ListLimit>;
  body: ReadonlyMap<string, ListLimit>;
}

const requestLists = new WeakMap<Route, RequestLists>();

export function requestListsOf(route: Route): RequestLists {
  const made = requestLists.get(route);
  if (made !== undefined) return made;
  const { query, body } = route;
  const lists = { query: listLimitsOf(query), body: listLimitsOf((body ?? NO_BODY).schema) };
  requestLists.set(route, lists);
  return lists;
}
