import type { WallClock, WaitUntil } from "../runtime.ts";
import { ok, type Result } from "../kernel/refusal.ts";
import type { Deployment } from "../isolate/deployment.ts";

/** Bytes of a document that are sent at a time. */
const CHUNK_BYTES = 65_536;

/** The pause before each piece. Without it, callers who read as fast as we send leave others no time. */
const PAUSE_MS = 1;

const encoder = new TextEncoder();

const shared = new WeakSet<Uint8Array>();

/** Whether all answers with these bytes send the same memory, however many callers have not read them. */
export const isShared = (bytes: unknown): boolean => bytes instanceof Uint8Array && shared.has(bytes);

/** The bytes of a document, in the pieces that are sent one after the other. */
type EncodedDocument = readonly Uint8Array[];

/**
 * Encodes a document at its first request, and keeps the bytes until the document changes. All answers then
 * send the same memory.
 */
export function encodedOnce<Document extends object>(
  textOf: (document: Document) => string,
): (document: Document) => EncodedDocument {
  let made: { document: Document; chunks: EncodedDocument } | undefined;
  return (document) => {
    if (made?.document !== document) {
      made = { document, chunks: chunksOf(encoder.encode(textOf(document))) };
      for (const chunk of made.chunks) shared.add(chunk);
    }
    return made.chunks;
  };
}

const chunksOf = (bytes: Uint8Array): EncodedDocument =>
  Array.from({ length: Math.ceil(bytes.length / CHUNK_BYTES) }, (_, index) =>
    bytes.subarray(index * CHUNK_BYTES, (index + 1) * CHUNK_BYTES),
  );

/**
 * A body with the document. A piece is handed over only when the caller has taken those before it, because
 * workerd copies what it is given.
 *
 * @param ended called once, when all pieces are handed over, or the caller has gone
 */
export function bodyOf(
  chunks: EncodedDocument,
  clock: Pick<WallClock, "after">,
  ended: () => void,
): ReadableStream<Uint8Array> {
  const left = chunks.values();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        await new Promise<void>((resolve) => clock.after(PAUSE_MS, resolve));
        const { value, done } = left.next();
        if (done !== true) return controller.enqueue(value);
        controller.close();
        ended();
      },
      cancel: ended,
    },
    { highWaterMark: 0 },
  );
}

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
