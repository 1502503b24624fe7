import type { Env } from "./env.ts";
import { serveRequest } from "./api/web-request.ts";
import { runCron } from "./cron/cron.ts";

export { CellLedger, ClaimShard, Directory } from "./objects/durable-objects.ts";

export default {
  fetch: serveRequest,
  scheduled: async (event, env) => {
    await runCron(env, event.scheduledTime);
  },
} satisfies ExportedHandler<Env>;
