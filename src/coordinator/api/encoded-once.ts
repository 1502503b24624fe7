import type { WallClock } from "../runtime.ts";

/** Bytes of a document that are sent at a time. */
const CHUNK_BYTES = 65_536;

/** The pause before each piece. Without it, callers who read as fast as we send leave others no time. */
const PAUSE_MS = 1;

const encoder = new TextEncoder();

const shared = new WeakSet<Uint8Array>();

/** Whether all answers with these bytes send the same memory, however many callers have not read them. */
export const isShared = (bytes: unknown): boolean => bytes instanceof Uint8Array && shared.has(bytes);

/** The bytes of a document, in the pieces that are sent one after the other. */
export type EncodedDocument = readonly Uint8Array[];

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
