/** The Worker of the peer `d1-only`, with a D1 that counts. */
import peer from "../peers/d1-only-worker.ts";
import { countedD1 } from "./workerd/counted-d1.ts";
import { answerCounts } from "./workerd/counts.ts";

interface Env {
  DB: D1Database;
}

export default {
  fetch: async (request, env, context) =>
    answerCounts(request) ?? peer.fetch(request, { DB: countedD1(env.DB) }, context),
} satisfies ExportedHandler<Env>;
