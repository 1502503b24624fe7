import { decodeUtf8 } from "../auth/base64url.ts";
import type { Limits } from "../../common/limits.ts";
import { ok, refused, type Result } from "../kernel/refusal.ts";
import type { RouteBody } from "./contract/route.ts";
import type { WallClock } from "../runtime.ts";
import type { Incoming, Reading } from "./incoming.ts";
import { parseJson } from "./json.ts";
import type { Bounds } from "./list-limits.ts";
import type { Failure } from "./problem.ts";

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
  incoming: Incoming,
  { required }: RouteBody,
  { limits, bounds, clock }: BodyRules,
): Promise<Result<unknown>> {
  const isJson = isJsonBody(incoming);
  if (required && !isJson) return notJson();
  const encoding = incoming.header("content-encoding") ?? "identity";
  if (encoding.toLowerCase() !== "identity")
    return unsupported("the body must not be compressed; send it without `Content-Encoding`");
  const bytes = await readInTime(incoming, limits, clock);
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
export function sizeBeforeReading(incoming: Incoming): number | undefined {
  const { method } = incoming;
  if (method === "GET" || method === "HEAD") return 0;
  const declared = incoming.header("content-length");
  if (declared === undefined) return incoming.hasBody ? undefined : 0;
  const isCompressed =
    (incoming.header("content-encoding") ?? incoming.header("grpc-encoding")) !== undefined;
  const sizeBytes = Number(declared);
  if (!(sizeBytes >= 0)) return undefined;
  return isCompressed ? COMPRESSION * sizeBytes : sizeBytes;
}

export const isJsonBody = (incoming: Incoming): boolean =>
  /^application\/json *(; *charset="?utf-8"? *)?$/i.test(incoming.header("content-type") ?? "");

/** Stops waiting at the deadline. Otherwise a caller who sends a byte now and then keeps a connection. */
export async function readInTime(
  incoming: Incoming,
  { bodyBytes, bodyReadMs }: Pick<Limits, "bodyBytes" | "bodyReadMs">,
  clock: WallClock,
): Promise<Result<Uint8Array>> {
  const reading = incoming.read(bodyBytes);
  if ("ok" in reading) return reading;
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

export const EMPTY = ok(new Uint8Array());

export const CUT_SHORT = refused(
  "INVALID_ARGUMENT",
  "the body ended before its declared length; send it again",
  {
    field: "body",
  },
);

export const tooLarge = (maxBytes: number): Result<never> => {
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
