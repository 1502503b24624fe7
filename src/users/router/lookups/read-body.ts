/** The part of a standard `ReadableStream` of bytes that the router needs. */
interface BodyStream {
  getReader(): {
    read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>;
    cancel(): Promise<unknown>;
  };
}

export interface RouterResponse {
  status: number;
  headers: { get(name: string): string | null };
  body: BodyStream | null;
}

/** More than any answer for routers has. */
const MAX_BYTES = 4 * 2 ** 20;

/** Reads a body of JSON. Throws if it is longer than 4 MiB, or if it is no JSON. */
export async function readJson({ body }: RouterResponse): Promise<unknown> {
  const reader = body?.getReader();
  if (reader === undefined) throw new TypeError("the answer has no body");
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });
  let text = "";
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return JSON.parse(text + decoder.decode());
    bytes += value?.byteLength ?? 0;
    if (bytes > MAX_BYTES) {
      // Whether the rest can be cancelled does not matter.
      reader.cancel().catch(() => {});
      throw new RangeError(`the answer has more than ${MAX_BYTES} bytes`);
    }
    text += decoder.decode(value, { stream: true });
  }
}

/**
 * How long an answer was in HTTP caches, in milliseconds. `Age` has whole seconds, so up to one more may have
 * passed. A hit without `Age` counts as old as its `Cache-Control` allows.
 */
export function cachedMs(headers: RouterResponse["headers"]): number {
  const age = secondsOf(headers.get("age"));
  if (age !== undefined) return (age + 1) * 1_000;
  const status = headers.get("cf-cache-status") ?? headers.get("x-cache") ?? "";
  if (!/\b(hit|stale|updating|revalidated)\b/i.test(status)) return 0;
  const [, maxAge] = /\bmax-age=(\d+)/i.exec(headers.get("cache-control") ?? "") ?? [];
  return maxAge === undefined ? Infinity : Number(maxAge) * 1_000;
}

/** A header of whole seconds, or undefined. */
export const secondsOf = (text: string | null): number | undefined =>
  text !== null && /^\d{1,9}$/.test(text.trim()) ? Number(text) : undefined;
