/** The routes and handlers of all capabilities. Objects and the simulator do not load them. */
import { merged } from "../kernel/merged.ts";
import * as audit from "./audit/edge/handlers.ts";
import * as cells from "./cells/edge/handlers.ts";
import * as classify from "./classify/edge/handlers.ts";
import * as credentials from "./keys/edge/credentials-handler.ts";
import * as feed from "./feed/edge/handlers.ts";
import * as growth from "./growth/edge/handlers.ts";
import * as identities from "./identities/edge/handlers.ts";
import * as keys from "./keys/edge/handlers.ts";
import * as loss from "./loss/edge/handlers.ts";
import * as metrics from "./metrics/edge/handlers.ts";
import * as operations from "./operations/edge/handlers.ts";
import * as pastClaims from "./past-claims/edge/handlers.ts";
import * as records from "./records/edge/handlers.ts";
import * as removal from "./removal/edge/handlers.ts";
import * as reports from "./reports/edge/handlers.ts";
import * as scrub from "./scrub/edge/handlers.ts";
import * as slots from "./slots/edge/handlers.ts";
import * as status from "./status/edge/handlers.ts";
import * as transfer from "./transfer/edge/handlers.ts";
import * as types from "./types/edge/handlers.ts";
import * as upgrade from "./upgrade/edge/handlers.ts";
import * as webhooks from "./webhooks/edge/handlers.ts";

/** Their order is that of their routes in `openapi.json`. */
const edges = [
  records,
  feed,
  transfer,
  reports,
  classify,
  slots,
  status,
  cells,
  removal,
  growth,
  operations,
  upgrade,
  keys,
  identities,
  credentials,
  types,
  pastClaims,
  audit,
  webhooks,
  loss,
  scrub,
  metrics,
] as const;

export const edgeRoutes = merged(
  "routes",
  edges.map(({ routes }) => routes),
);
export const edgeHandlers = merged(
  "handlers",
  edges.map(({ handlers }) => handlers),
);
