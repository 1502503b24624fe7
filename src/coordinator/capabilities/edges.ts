/** The routes and handlers of all capabilities. Objects and the simulator do not load them. */
import * as audit from "./audit/edge/index.ts";
import * as cells from "./cells/edge/index.ts";
import * as classify from "./classify/edge/index.ts";
import * as credentials from "./keys/edge/credentials.ts";
import * as feed from "./feed/edge/index.ts";
import * as growth from "./growth/edge/index.ts";
import * as identities from "./identities/edge/index.ts";
import * as keys from "./keys/edge/index.ts";
import * as loss from "./loss/edge/index.ts";
import * as metrics from "./metrics/edge/index.ts";
import * as operations from "./operations/edge/index.ts";
import * as pastClaims from "./past-claims/edge/index.ts";
import * as records from "./records/edge/index.ts";
import * as removal from "./removal/edge/index.ts";
import * as reports from "./reports/edge/index.ts";
import * as scrub from "./scrub/edge/index.ts";
import * as slots from "./slots/edge/index.ts";
import * as status from "./status/edge/index.ts";
import * as transfer from "./transfer/edge/index.ts";
import * as types from "./types/edge/index.ts";
import * as upgrade from "./upgrade/edge/index.ts";
import * as webhooks from "./webhooks/edge/index.ts";

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

type Edge = (typeof edges)[number];

/** The intersection of a union's members. */
type All<T> = (T extends unknown ? (one: T) => void : never) extends (one: infer Each) => void ? Each : never;

function join(kind: keyof Edge): unknown {
  const all: Record<string, unknown> = {};
  for (const edge of edges)
    for (const [name, value] of Object.entries(edge[kind])) {
      if (name in all) throw new TypeError(`two capabilities have ${kind} with the name ${name}`);
      all[name] = value;
    }
  return all;
}

export const edgeRoutes = join("routes") as All<Edge["routes"]>;
export const edgeHandlers = join("handlers") as All<Edge["handlers"]>;
