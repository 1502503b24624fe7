import { ok, type Result } from "../kernel/refusal.ts";
import type { WaitUntil } from "../runtime.ts";
import type { Deployment } from "../isolate/deployment.ts";
import { bodyOf, type EncodedDocument } from "./encoded-once.ts";

interface DocumentAnswer {
  status: 200;
  body: ReadableStream<Uint8Array>;
  headers: Record<string, string>;
}

/** What a document counts as the size of a body, in bytes: two are sent at a time while others call. */
const COUNTED_BYTES = 1_024;

/** After this time, the request ends in the share, even if the caller has not read the document. */
const SENDING_MS = 100;

/**
 * Sends a document to anybody. All callers without a key have one share of the isolate together (M8), also
 * while it is sent: half a megabyte takes longer to send than most requests take to carry out.
 */
export function sendDocument(
  { fairShares, clock }: Pick<Deployment, "fairShares" | "clock">,
  chunks: EncodedDocument,
  waitUntil: WaitUntil,
  headers: Readonly<Record<string, string>> = {},
): Promise<Result<DocumentAnswer>> {
  return new Promise((resolve, reject) => {
    const sent = fairShares.run(null, COUNTED_BYTES, waitUntil, () => {
      const ended = Promise.withResolvers<void>();
      clock.after(SENDING_MS, ended.resolve);
      resolve(
        ok({
          status: 200,
          body: bodyOf(chunks, clock, ended.resolve),
          headers: { "cache-control": "public, max-age=300", ...headers },
        }),
      );
      return ended.promise;
    });
    sent.then((run) => run.ok || resolve(run), reject);
  });
}
