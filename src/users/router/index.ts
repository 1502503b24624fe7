/** Who owns which name, for routers in front of cells: `fetch`, and nothing else. */
export type {
  FailureEvent,
  ForwardedEvent,
  ProxyHooks,
  RefusedEvent,
  ReportEvent,
  RouteEvent,
  RouterHooks,
} from "./hooks.ts";
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
export type { RouterFetch, RouterResponse } from "./lookups/http-source.ts";
export {
  workersCache,
  type RouteCache,
  type SharedCache,
  type SharedHit,
  type WorkersCacheOptions,
} from "./lookups/shared-cache.ts";
export { ProxyMetrics, RouterMetrics } from "./metrics.ts";
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
export type { ProxyOptions } from "./proxy/options.ts";
export { createProxy, type Proxy, type ProxyContext } from "./proxy/proxy.ts";
export { chooseCell, classify } from "./rules/classify.ts";
export { RulesetError } from "./rules/fields.ts";
export { compileRuleset } from "./rules/ruleset.ts";
export type { Classification, Match, RoutedRequest, RuleFinding, Ruleset } from "./rules/types.ts";
