import type { Routes } from "./contract.ts";
import type { Handlers } from "./handler.ts";
import { auditHandlers } from "../capabilities/audit/edge/handlers.ts";
import { cellHandlers } from "../capabilities/cells/edge/handlers.ts";
import { changeHandlers } from "../capabilities/feed/edge/handlers.ts";
import { credentialHandlers } from "../capabilities/keys/edge/credentials-handler.ts";
import { growthHandlers } from "../capabilities/growth/edge/handlers.ts";
import { historyHandlers } from "../capabilities/past-claims/edge/handlers.ts";
import { identityHandlers } from "../capabilities/identities/edge/handlers.ts";
import { keyHandlers } from "../capabilities/keys/edge/handlers.ts";
import { leaseHandlers } from "./handlers/leases.ts";
import { metricsHandlers } from "../capabilities/metrics/edge/handlers.ts";
import { upgradeHandlers } from "../capabilities/upgrade/edge/handlers.ts";
import { operationHandlers } from "../capabilities/operations/edge/handlers.ts";
import { partHandlers } from "../capabilities/loss/edge/handlers.ts";
import { scrubHandlers } from "../capabilities/scrub/edge/handlers.ts";
import { recordHandlers } from "../capabilities/records/edge/handlers.ts";
import { classifyHandlers } from "../capabilities/classify/edge/handlers.ts";
import { removalHandlers } from "../capabilities/removal/edge/handlers.ts";
import { routingHandlers } from "../capabilities/reports/edge/handlers.ts";
import { serviceHandlers } from "./handlers/service.ts";
import { statusHandlers } from "../capabilities/status/edge/handlers.ts";
import { transferHandlers } from "../capabilities/transfer/edge/handlers.ts";
import { typeHandlers } from "../capabilities/types/edge/handlers.ts";
import { webhookHandlers } from "../capabilities/webhooks/edge/handlers.ts";
import { verificationHandlers } from "../capabilities/slots/edge/handlers.ts";

/** The handler of each route. It doesn't compile if a route of the contract has none. */
export const handlers: Handlers<Routes> = {
  ...leaseHandlers,
  ...recordHandlers,
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
