import type { Role } from "../core/directory/directory.ts";
import type { Principal } from "./principal.ts";

/** Who may use a route. */
export type Roles = "anyone" | readonly Role[];

/**
 * Decides before anything is looked up, so the answer tells nothing about what exists. `pathCell` is the path's cell as it was written, or
 * undefined when the path has none: a cell reaches its own path and no other.
 */
export function isAllowed({ role, cell }: Principal, roles: Roles, pathCell: string | undefined): boolean {
  if (roles === "anyone") return true;
  if (!roles.includes(role)) return false;
  return role !== "cell" || pathCell === undefined || pathCell === cell;
}
