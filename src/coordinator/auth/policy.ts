import type { Role } from "../kernel/role.ts";
import type { Principal } from "./principal.ts";

/** The roles that may call a route. */
export type Roles = "anyone" | readonly Role[];

/**
 * Decides whether a caller may use a route, before anything is looked up, so the answer doesn't reveal what
 * exists. `pathCell` is the cell in the path as it was sent, or undefined if the path has none. A cell key
 * may only use the paths of its own cell.
 */
export function isAllowed({ role, cell }: Principal, roles: Roles, pathCell: string | undefined): boolean {
  if (roles === "anyone") return true;
  if (!roles.includes(role)) return false;
  return role !== "cell" || pathCell === undefined || pathCell === cell;
}
