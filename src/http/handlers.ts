import type { Handlers } from "./handler.ts";
import { cellHandlers } from "./handlers/cells.ts";
import { exportHandlers } from "./handlers/export.ts";
import { keyHandlers } from "./handlers/keys.ts";
import { leaseHandlers } from "./handlers/leases.ts";
import { recordHandlers } from "./handlers/records.ts";
import { serviceHandlers } from "./handlers/service.ts";
import { verificationHandlers } from "./handlers/verification.ts";

/** What each route does: one handler per row of the contract, or this does not compile. */
export const handlers: Handlers = {
  ...leaseHandlers,
  ...recordHandlers,
  ...exportHandlers,
  ...verificationHandlers,
  ...cellHandlers,
  ...keyHandlers,
  ...serviceHandlers,
};
