import { COUNTS_PATH, emptyCounts, type RawCounts } from "../raw-counts.ts";

/** Of the isolate: on one machine it holds the Worker and all objects. */
export const counts: { current: RawCounts } = { current: emptyCounts() };

/** The answer to a request for the counts; undefined when it is for something else. */
export function answerCounts({ method, url }: Pick<Request, "method" | "url">): Response | undefined {
  if (new URL(url).pathname !== COUNTS_PATH) return undefined;
  const answer = Response.json(counts.current);
  if (method === "POST") counts.current = emptyCounts();
  return answer;
}
