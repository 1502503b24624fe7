import { apiLimitName, type Limits } from "../core/limits.ts";
import type { ListLimit } from "./contract/lists.ts";

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
  items: (path: string) => { most: number; limit?: string } | undefined;
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
      return typeof limit === "number" ? { most } : { most, limit: apiLimitName(limit) };
    },
  };
}

const mostOf = (limit: ListLimit, limits: Limits): number =>
  typeof limit === "number" ? limit : limits[limit];

/** Completes a sentence that begins with the path of the first item that is too many. */
export const tooManyItems = ({ most, limit }: { most: number; limit?: string }): string =>
  `is beyond the limit of ${most} items in one list${limit === undefined ? "" : ` (limit \`${limit}\`)`}; ` +
  "send fewer";
