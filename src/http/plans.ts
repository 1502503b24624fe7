import type { Plans } from "./handler.ts";
import { cellPlans } from "./plans/cells.ts";
import { exportPlans } from "./plans/export.ts";
import { keyPlans } from "./plans/keys.ts";
import { leasePlans } from "./plans/leases.ts";
import { recordPlans } from "./plans/records.ts";
import { servicePlans } from "./plans/service.ts";
import { verificationPlans } from "./plans/verification.ts";

/** What each route does: one plan per row of the contract, or this does not compile. */
export const plans: Plans = {
  ...leasePlans,
  ...recordPlans,
  ...exportPlans,
  ...verificationPlans,
  ...cellPlans,
  ...keyPlans,
  ...servicePlans,
};
