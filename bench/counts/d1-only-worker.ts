/** The Worker of the peer `d1-only`, with a D1 that counts. */
import peer from "../peers/d1-only-worker.ts";
import { countedD1 } from "./workerd/counted-d1.ts";
import { answerCounts, counts } from "./workerd/counts.ts";

interface Env {
  DB: D1Database;
}

export default {
  fetch: async (request, env, context) => {
    const answer = answerCounts(request);
    if (answer !== undefined) return answer;
    counts.current.worker.requests += 1;
    return peer.fetch(request, { DB: countedD1(env.DB) }, context);
  },
} satisfies ExportedHandler<Env>;
