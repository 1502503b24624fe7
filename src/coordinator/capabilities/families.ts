/** The families of metrics of all capabilities. */
import * as feed from "./feed/edge/metrics.ts";
import * as growth from "./growth/edge/metrics.ts";
import * as identities from "./identities/edge/metrics.ts";
import * as keys from "./keys/edge/metrics.ts";
import * as loss from "./loss/edge/metrics.ts";
import type { ListedFamily } from "./metrics/edge/family.ts";
import * as kernel from "./metrics/edge/metrics.ts";
import * as records from "./records/edge/metrics.ts";
import * as reports from "./reports/edge/metrics.ts";
import * as scrub from "./scrub/edge/metrics.ts";
import * as slots from "./slots/edge/metrics.ts";
import * as status from "./status/edge/metrics.ts";
import * as transfer from "./transfer/edge/metrics.ts";
import * as waiting from "./waiting/edge/metrics.ts";
import * as webhooks from "./webhooks/edge/metrics.ts";

/** Their order is that of their families. */
const edges = [
  kernel,
  growth,
  loss,
  scrub,
  waiting,
  transfer,
  status,
  reports,
  feed,
  records,
  keys,
  identities,
  slots,
  webhooks,
];

function inOrder(): Readonly<Record<string, ListedFamily>> {
  const all: [string, ListedFamily][] = [];
  for (const { before, families } of edges.flatMap((edge) => edge.families)) {
    const at = all.findIndex(([name]) => name === before);
    all.splice(at < 0 ? all.length : at, 0, ...Object.entries(families));
  }
  return Object.fromEntries(all);
}

/** docs/reference/metrics.md lists the same families; a test compares them. */
export const families = inOrder();

export const readsOfD1 = [keys.readD1, webhooks.readD1];
