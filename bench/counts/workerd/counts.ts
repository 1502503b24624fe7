import { COUNTS_PATH, emptyCounts, type RawCounts } from "../raw-counts.ts";

/** The counts of the isolate, which contains the Worker and all objects when it runs on one machine. */
export const counts: { current: RawCounts } = { current: emptyCounts() };

/** Answers a request for the counts; undefined for all other requests. */
export function answerCounts({ method, url }: Pick<Request, "method" | "url">): Response | undefined {
  if (new URL(url).pathname !== COUNTS_PATH) return undefined;
  const answer = Response.json(counts.current);
  if (method === "POST") counts.current = emptyCounts();
  return answer;
}
