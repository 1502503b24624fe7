import type { Handlers } from "./handler.ts";
import { auditHandlers } from "./handlers/audit.ts";
import { cellHandlers } from "./handlers/cells.ts";
import { changeHandlers } from "./handlers/changes.ts";
import { credentialHandlers } from "./handlers/credentials.ts";
import { exportHandlers } from "./handlers/export.ts";
import { growthHandlers } from "./handlers/growth.ts";
import { historyHandlers } from "./handlers/history.ts";
import { identityHandlers } from "./handlers/identities.ts";
import { keyHandlers } from "./handlers/keys.ts";
import { leaseHandlers } from "./handlers/leases.ts";
import { metricsHandlers } from "./handlers/metrics.ts";
import { upgradeHandlers } from "./handlers/upgrade.ts";
import { operationHandlers } from "./handlers/operations.ts";
import { partHandlers } from "./handlers/parts.ts";
import { scrubHandlers } from "./handlers/scrub.ts";
import { recordHandlers } from "./handlers/records.ts";
import { classifyHandlers } from "./handlers/classify.ts";
import { removalHandlers } from "./handlers/removal.ts";
import { routingHandlers } from "./handlers/routing.ts";
import { serviceHandlers } from "./handlers/service.ts";
import { statusHandlers } from "./handlers/status.ts";
import { transferHandlers } from "./handlers/transfers.ts";
import { typeHandlers } from "./handlers/types.ts";
import { webhookHandlers } from "./handlers/webhooks.ts";
import { verificationHandlers } from "./handlers/verification.ts";

/** The handler of each route. It doesn't compile if a route of the contract has none. */
export const handlers: Handlers = {
  ...leaseHandlers,
  ...recordHandlers,
  ...exportHandlers,
  ...changeHandlers,
  ...transferHandlers,
  ...routingHandlers,
  ...classifyHandlers,
  ...verificationHandlers,
  ...statusHandlers,
  ...cellHandlers,
  ...removalHandlers,
  ...growthHandlers,
  ...operationHandlers,
  ...upgradeHandlers,
  ...keyHandlers,
  ...identityHandlers,
  ...credentialHandlers,
  ...typeHandlers,
  ...historyHandlers,
  ...auditHandlers,
  ...webhookHandlers,
  ...partHandlers,
  ...scrubHandlers,
  ...metricsHandlers,
  ...serviceHandlers,
};
