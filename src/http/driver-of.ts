import { Database } from "../projections/database.ts";
import type { GrowthDriver } from "../projections/growth-driver.ts";
import type { Deployment } from "./deployment.ts";

/** A request that works as the cron does. Its messages always have the newest placement that it knows. */
export const driverOf = (deployment: Deployment): GrowthDriver => ({
  get envelope() {
    return { ...deployment.envelope, placement: deployment.placement.current };
  },
  objects: deployment.objects,
  database: new Database(deployment.env),
  limits: deployment.config.limits,
  clock: deployment.clock,
});
