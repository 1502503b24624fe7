import { app } from "./http/app.ts";
import type { Env } from "./env.ts";
import { runCron } from "./projections/cron.ts";

export { CellLedger, ClaimShard, Directory } from "./objects/durable-objects.ts";

export default {
  fetch: (request, env, context) => app.fetch(request, env, context),
  scheduled: async (event, env) => {
    await runCron(env, event.scheduledTime);
  },
} satisfies ExportedHandler<Env>;
