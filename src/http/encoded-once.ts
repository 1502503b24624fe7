const encoder = new TextEncoder();

const shared = new WeakSet<Uint8Array>();

/** Whether all answers with these bytes send the same memory, however many callers have not read them. */
export const isShared = (bytes: unknown): boolean => bytes instanceof Uint8Array && shared.has(bytes);

/**
 * Encodes a document at its first request, and keeps the bytes until the document changes. All answers then
 * send the same memory, while Node and workerd keep a copy of a text for each caller that has not read it.
 */
export function encodedOnce<Document extends object>(
  textOf: (document: Document) => string,
): (document: Document) => Uint8Array {
  let made: { document: Document; bytes: Uint8Array } | undefined;
  return (document) => {
    if (made?.document !== document) {
      made = { document, bytes: encoder.encode(textOf(document)) };
      shared.add(made.bytes);
    }
    return made.bytes;
  };
}
