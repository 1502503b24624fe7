import { decodeUtf8 } from "../auth/base64url.ts";
import type { Limits } from "../core/limits.ts";
import { ok, refused, type Result } from "../core/refusal.ts";
import type { RouteBody } from "./contract/route.ts";
import type { WallClock } from "../runtime.ts";
import { parseJson } from "./json.ts";
import type { Bounds } from "./list-limits.ts";
import type { Failure } from "./problem.ts";

/** Bodies up to this size are read in one call. Longer ones are counted while they are read. */
const SMALL_BYTES = 65_536;

interface BodyRules {
  limits: Limits;
  bounds: Bounds;
  clock: WallClock;
}

/**
 * Reads a request's JSON. The value is undefined if there is no body and none is required. The body's size is
 * checked before anything in it is parsed, and its `bounds` before any value of it is built.
 */
export async function readBody(
  request: Request,
  { required }: RouteBody,
  { limits, bounds, clock }: BodyRules,
): Promise<Result<unknown>> {
  const isJson = isJsonBody(request);
  if (required && !isJson) return notJson();
  const encoding = request.headers.get("content-encoding") ?? "identity";
  if (encoding.toLowerCase() !== "identity")
    return unsupported("the body must not be compressed; send it without `Content-Encoding`");
  const bytes = await readInTime(request, limits, clock);
  if (!bytes.ok) return bytes;
  if (bytes.value.length === 0 && !required) return ok(undefined);
  if (!isJson) return notJson();
  const text = decodeUtf8(bytes.value);
  if (text === undefined) return refused("INVALID_ARGUMENT", "the body must be UTF-8", { field: "body" });
  return parseJson(text, bounds);
}

/** How much larger a compressed message is. A typical batch of claims shrinks to an eighth. */
const COMPRESSION = 8;

/** About how large a message is, before its body is read. Undefined if the caller doesn't say it. */
export function sizeBeforeReading(request: Request): number | undefined {
  const { headers, method } = request;
  if (method === "GET" || method === "HEAD") return 0;
  const declared = headers.get("content-length");
  // Only such a request is asked for its body, because that makes a stream, which takes time in Node.
  if (declared === null) return request.body === null ? 0 : undefined;
  const isCompressed = headers.has("content-encoding") || headers.has("grpc-encoding");
  const sizeBytes = Number(declared);
  if (!(sizeBytes >= 0)) return undefined;
  return isCompressed ? COMPRESSION * sizeBytes : sizeBytes;
}

export const isJsonBody = ({ headers }: Request): boolean =>
  /^application\/json *(; *charset="?utf-8"? *)?$/i.test(headers.get("content-type") ?? "");

/** A body that is being read. `cancel` stops it, as far as that is possible. */
interface Reading {
  bytes: Promise<Result<Uint8Array>>;
  cancel: () => void;
}

/** Stops waiting at the deadline. Otherwise a caller who sends a byte now and then keeps a connection. */
export async function readInTime(
  request: Request,
  { bodyBytes, bodyReadMs }: Pick<Limits, "bodyBytes" | "bodyReadMs">,
  clock: WallClock,
): Promise<Result<Uint8Array>> {
  const reading = startReading(request, bodyBytes);
  if (reading === undefined) return ok(new Uint8Array());
  return new Promise((resolve) => {
    const cancelTimer = clock.after(bodyReadMs, () => {
      resolve(tooSlow(bodyReadMs));
      reading.cancel();
    });
    void reading.bytes
      // The caller went away or cut the body short, which is not a fault of the coordinator.
      .catch(() => CUT_SHORT)
      .then((bytes) => {
        cancelTimer();
        resolve(bytes);
      });
  });
}

/**
 * Reads at most `maxBytes`, whatever Content-Length says. It never holds much more than that, or than a small
 * body, in memory. Undefined: there is no body.
 */
function startReading(request: Request, maxBytes: number): Reading | undefined {
  const declared = request.headers.get("content-length");
  if (declared === "0") return undefined;
  if (declared === null || !(Number(declared) <= SMALL_BYTES)) {
    const { body } = request;
    return body === null ? undefined : readChunks(body, maxBytes);
  }
  // Nearly all bodies are small: reading them in one call is faster than by chunk, and in Node the stream
  // costs a quarter of a request. HTTP ends a body at its declared length, so it cannot be longer.
  return { bytes: readAtOnce(request, maxBytes), cancel: () => {} };
}

async function readAtOnce(request: Request, maxBytes: number): Promise<Result<Uint8Array>> {
  const bytes = new Uint8Array(await request.arrayBuffer());
  return bytes.length > maxBytes ? tooLarge(maxBytes) : ok(bytes);
}

/** Counts bytes while reading, and cancels the stream at the limit. */
export function readChunks(body: ReadableStream<Uint8Array>, maxBytes: number): Reading {
  const reader = body.getReader();
  const cancel = (): void => void reader.cancel().catch(() => {});
  const read = async (): Promise<Result<Uint8Array>> => {
    const chunks: Uint8Array[] = [];
    let length = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      length += value.length;
      if (length > maxBytes) {
        cancel();
        return tooLarge(maxBytes);
      }
      chunks.push(value);
    }
    return ok(joined(chunks, length));
  };
  return { bytes: read(), cancel };
}

export function joined(chunks: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
  }
  return bytes;
}

const CUT_SHORT = refused("INVALID_ARGUMENT", "the body ended before its declared length; send it again", {
  field: "body",
});

const tooLarge = (maxBytes: number): Result<never> => {
  const detail = `the body is larger than ${maxBytes} bytes (limit \`body_bytes\`); split the request`;
  return refused("RESOURCE_EXHAUSTED", detail, { reason: "BODY_TOO_LARGE" });
};

const tooSlow = (bodyReadMs: number): Result<never> => {
  const detail = `the body did not arrive within ${bodyReadMs} ms (limit \`body_read_ms\`); send it again`;
  return refused("RESOURCE_EXHAUSTED", detail, { reason: "BODY_TOO_SLOW", retryAfterMs: 1_000 });
};

export const notJson = (): { ok: false; refusal: Failure } =>
  unsupported("the body must be JSON, with `Content-Type: application/json`");

const unsupported = (detail: string): { ok: false; refusal: Failure } => ({
  ok: false,
  refusal: { code: "INVALID_ARGUMENT", status: 415, detail },
});
