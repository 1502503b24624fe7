import * as z from "zod";
import { listLimitsOf, type ListLimit } from "./contract/lists.ts";
import type { Route, RouteBody } from "./contract/route.ts";

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
