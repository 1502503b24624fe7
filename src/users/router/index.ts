/** Who owns which name, for routers in front of cells: `fetch`, and nothing else. */
export type { FailureEvent, ReportEvent, RouteEvent, RouterHooks } from "./hooks.ts";
export {
  formatPositions,
  mergePositions,
  parsePositions,
  POSITION_COOKIE,
  positionCookie,
  positionsFromCookie,
  type Positions,
} from "./positions.ts";
export type { RouterClock } from "./lookups/clock.ts";
export { createRoutes, type RoutesOptions } from "./lookups/create-routes.ts";
export type { RouterFetch } from "./lookups/http-source.ts";
export type { RouterResponse } from "./lookups/read-body.ts";
export type { SharedCache, SharedHit } from "./lookups/shared-cache.ts";
export { workersCache, type RouteCache, type WorkersCacheOptions } from "./lookups/workers-cache.ts";
export { RouterMetrics } from "./metrics.ts";
export {
  RoutesUnavailableError,
  type AnswerOrigin,
  type CellAddress,
  type CellsOptions,
  type FindOptions,
  type FoundRoute,
  type InvalidName,
  type Name,
  type NoRoute,
  type RouteAnswer,
  type RouteLayer,
  type Routes,
  type RouteUnavailable,
  type WrongRoute,
} from "./lookups/routes.ts";
export type { FailureKind, ProxyFailure } from "./proxy/failure.ts";
export type { ForwardedEvent, ProxyHooks, RefusedEvent } from "./proxy/hooks.ts";
export { ProxyMetrics } from "./proxy/metrics.ts";
export type { ProxyOptions } from "./proxy/options.ts";
export { createProxy, type Proxy, type ProxyContext } from "./proxy/proxy.ts";
export { chooseCell, classify } from "./rules/classify.ts";
export { RulesetError } from "./rules/findings.ts";
export { compileRuleset } from "./rules/ruleset.ts";
export type { Classification, Match, RoutedRequest, RuleFinding, Ruleset } from "./rules/types.ts";
