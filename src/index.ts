import { app } from "./http/app.ts";
import type { Env } from "./env.ts";
import { runCron } from "./projections/cron.ts";

export { CellLedger } from "./objects/cell-ledger.ts";
export { ClaimShard } from "./objects/claim-shard.ts";
export { Directory } from "./objects/directory.ts";

export default {
  fetch: (request, env, context) => app.fetch(request, env, context),
  scheduled: async (event, env) => {
    await runCron(env, event.scheduledTime);
  },
} satisfies ExportedHandler<Env>;
