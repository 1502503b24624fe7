import type { ErrorCode } from "../kernel/refusal.ts";
import { cellRoutes, keyRoutes } from "../capabilities/cells/edge/routes.ts";
import { changeRoutes } from "../capabilities/feed/edge/routes.ts";
import { auditRoutes } from "../capabilities/audit/edge/routes.ts";
import { classifyRoutes } from "../capabilities/classify/edge/routes.ts";
import { credentialRoutes } from "../capabilities/keys/edge/routes.ts";
import { growthRoutes } from "../capabilities/growth/edge/routes.ts";
import { historyRoutes } from "../capabilities/past-claims/edge/routes.ts";
import { identityRoutes } from "../capabilities/identities/edge/routes.ts";
import { operationRoutes } from "../capabilities/operations/edge/routes.ts";
import { partRoutes } from "../capabilities/loss/edge/routes.ts";
import { scrubRoutes } from "../capabilities/scrub/edge/routes.ts";
import { leaseRoutes } from "./contract/lease-routes.ts";
import { metricsRoutes } from "../capabilities/metrics/edge/routes.ts";
import { recordRoutes } from "../capabilities/records/edge/routes.ts";
import { removalRoutes } from "../capabilities/removal/edge/routes.ts";
import type { Route, RouteError } from "./contract/route.ts";
import { routingRoutes } from "../capabilities/reports/edge/routes.ts";
import { serviceRoutes } from "./contract/service-routes.ts";
import { statusRoutes } from "../capabilities/status/edge/routes.ts";
import { transferRoutes } from "../capabilities/transfer/edge/routes.ts";
import { typeRoutes } from "../capabilities/types/edge/routes.ts";
import { webhookRoutes } from "../capabilities/webhooks/edge/routes.ts";
import { upgradeRoutes } from "../capabilities/upgrade/edge/routes.ts";
import { verificationRoutes } from "../capabilities/slots/edge/routes.ts";

/** The whole HTTP API: every route by its id. */
export const routes = {
  ...leaseRoutes,
  ...recordRoutes,
  ...changeRoutes,
  ...transferRoutes,
  ...routingRoutes,
  ...classifyRoutes,
  ...verificationRoutes,
  ...statusRoutes,
  ...cellRoutes,
  ...removalRoutes,
  ...growthRoutes,
  ...operationRoutes,
  ...upgradeRoutes,
  ...keyRoutes,
  ...identityRoutes,
  ...credentialRoutes,
  ...typeRoutes,
  ...historyRoutes,
  ...auditRoutes,
  ...webhookRoutes,
  ...partRoutes,
  ...scrubRoutes,
  ...metricsRoutes,
  ...serviceRoutes,
} as const satisfies Record<string, Route>;

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
