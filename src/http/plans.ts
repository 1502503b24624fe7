import type { Plans } from "./handler.ts";
import { cellPlans } from "./plans/cells.ts";
import { keyPlans } from "./plans/keys.ts";
import { leasePlans } from "./plans/leases.ts";
import { recordPlans } from "./plans/records.ts";
import { servicePlans } from "./plans/service.ts";

/** What each route does: one plan per row of the contract, or this does not compile. */
export const plans: Plans = { ...leasePlans, ...recordPlans, ...cellPlans, ...keyPlans, ...servicePlans };
