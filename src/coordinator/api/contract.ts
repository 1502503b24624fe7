import { edgeRoutes } from "../capabilities/edges.ts";
import type { ErrorCode } from "../kernel/refusal.ts";
import { leaseRoutes } from "./contract/lease-routes.ts";
import type { Route, RouteError } from "./contract/route.ts";
import { serviceRoutes } from "./contract/service-routes.ts";

/** The whole HTTP API: every route by its id. */
export const routes = { ...leaseRoutes, ...edgeRoutes, ...serviceRoutes } satisfies Record<string, Route>;

export type Routes = typeof routes;
export type RouteId = keyof Routes;

export const routeIds = Object.keys(routes) as RouteId[];

/** Every way in which a call of this route can fail: the errors of all routes of its kind, then its own. */
export function errorsOf(route: Route): RouteError[] {
  const errors: RouteError[] = [
    { code: "INVALID_ARGUMENT", when: "The request is not valid. `field` names the wrong part." },
  ];
  const isCellPath = route.path.startsWith("/v1/cells/");
  if (route.roles !== "anyone") {
    errors.push({
      code: "UNAUTHENTICATED",
      when: "The key is missing, not valid, expired or revoked.",
    });
    const cells = isCellPath ? ", or the key belongs to another cell" : "";
    errors.push({
      code: "PERMISSION_DENIED",
      when: `The key's role may not call this route${cells}.`,
    });
  }
  if (route.method !== "GET") {
    errors.push({ code: "INVALID_ARGUMENT", status: 415, when: "The body is not JSON, or is compressed." });
    errors.push({
      code: "RESOURCE_EXHAUSTED",
      reason: "BODY_TOO_LARGE",
      when: "The body is larger than the limit `body_bytes`.",
    });
    errors.push({
      code: "RESOURCE_EXHAUSTED",
      reason: "BODY_TOO_SLOW",
      when: "The body did not arrive within the limit `body_read_ms`. Nothing was done. Send it again.",
    });
  }
  if (isCellPath && route.roles !== "anyone" && route.roles.includes("operator"))
    errors.push({
      code: "NOT_FOUND",
      reason: "CELL_UNKNOWN",
      when: "The cell is not registered. Only operators and viewers get this error.",
    });
  errors.push(...route.errors);
  errors.push({
    code: "INTERNAL",
    when: "The coordinator failed unexpectedly. Search its log for the request id.",
  });
  if (route.roles === "anyone") return errors;
  const has = (code: ErrorCode): boolean => route.errors.some((error) => error.code === code);
  if (!has("UNAVAILABLE"))
    errors.push({ code: "UNAVAILABLE", when: "A part of the coordinator cannot be reached." });
  if (!has("DEADLINE_EXCEEDED"))
    errors.push({ code: "DEADLINE_EXCEEDED", when: "A part of the coordinator did not answer in time." });
  return errors;
}
