import { COUNTS_PATH, emptyTally, type Tally } from "../tally.ts";

/** Of the isolate: on one machine it holds the Worker and all objects. */
export const counts: { tally: Tally } = { tally: emptyTally() };

/** The answer to a request for the counts; undefined when it is for something else. */
export function answerCounts({ method, url }: Pick<Request, "method" | "url">): Response | undefined {
  if (new URL(url).pathname !== COUNTS_PATH) return undefined;
  const answer = Response.json(counts.tally);
  if (method === "POST") counts.tally = emptyTally();
  return answer;
}
