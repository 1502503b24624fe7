import type { ErrorCode } from "../core/refusal.ts";
import { cellRoutes, keyRoutes } from "./contract/admin-routes.ts";
import { leaseRoutes } from "./contract/lease-routes.ts";
import { recordRoutes } from "./contract/record-routes.ts";
import type { Route, RouteError } from "./contract/route.ts";
import { serviceRoutes } from "./contract/service-routes.ts";
import { verificationRoutes } from "./contract/verification-routes.ts";

/** The whole HTTP API: every route by its id. */
export const routes = {
  ...leaseRoutes,
  ...recordRoutes,
  ...verificationRoutes,
  ...cellRoutes,
  ...keyRoutes,
  ...serviceRoutes,
} as const satisfies Record<string, Route>;

export type Routes = typeof routes;
export type RouteId = keyof Routes;

export const routeIds = Object.keys(routes) as RouteId[];

/** How a call of this route can fail: what holds for every route of its kind, then its own. */
export function errorsOf(route: Route): RouteError[] {
  const errors: RouteError[] = [
    { code: "INVALID_ARGUMENT", when: "The request is malformed. `field` names the part." },
  ];
  const isCellPath = route.path.startsWith("/v1/cells/");
  if (route.roles !== "anyone") {
    errors.push({
      code: "UNAUTHENTICATED",
      when: "No key, or one that is not valid, has expired or was revoked.",
    });
    const cells = isCellPath ? ", or is another cell's" : "";
    errors.push({
      code: "PERMISSION_DENIED",
      when: `The key's role may not do this${cells}. Tells nothing about what exists.`,
    });
  }
  if (route.method !== "GET") {
    errors.push({ code: "INVALID_ARGUMENT", status: 415, when: "The body is not JSON, or is compressed." });
    errors.push({
      code: "RESOURCE_EXHAUSTED",
      reason: "BODY_TOO_LARGE",
      when: "The body is larger than `body_bytes` (413).",
    });
  }
  if (isCellPath)
    errors.push({
      code: "NOT_FOUND",
      reason: "CELL_UNKNOWN",
      when: "To operators: no such cell is registered.",
    });
  errors.push(...route.errors);
  errors.push({ code: "INTERNAL", when: "A fault of the coordinator. The request id finds it in the log." });
  if (route.roles === "anyone") return errors;
  const has = (code: ErrorCode): boolean => route.errors.some((error) => error.code === code);
  if (!has("UNAVAILABLE")) errors.push({ code: "UNAVAILABLE", when: "A part cannot be reached." });
  if (!has("DEADLINE_EXCEEDED"))
    errors.push({ code: "DEADLINE_EXCEEDED", when: "A part did not answer in time." });
  return errors;
}
