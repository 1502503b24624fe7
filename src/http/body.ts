import { decodeUtf8 } from "../auth/base64url.ts";
import type { Limits } from "../core/limits.ts";
import { ok, refused, type Result } from "../core/refusal.ts";
import type { RouteBody } from "./contract/route.ts";
import { parseJson } from "./json.ts";
import type { Failure } from "./problem.ts";

/** What is read in one piece; longer bodies are counted while they come. */
const SMALL_BYTES = 65_536;

/** The JSON of a request, or undefined when there is none and none is needed. Nothing of the body is looked at before it is counted. */
export async function readBody(
  request: Request,
  { required }: RouteBody,
  limits: Limits,
): Promise<Result<unknown>> {
  const isJson = /^application\/json *(; *charset="?utf-8"? *)?$/i.test(
    request.headers.get("content-type") ?? "",
  );
  if (required && !isJson) return notJson();
  const encoding = request.headers.get("content-encoding") ?? "identity";
  if (encoding.toLowerCase() !== "identity") return unsupported("bodies must not be compressed");
  const bytes = await readBytes(request, limits.bodyBytes);
  if (!bytes.ok) return bytes;
  if (bytes.value.length === 0 && !required) return ok(undefined);
  if (!isJson) return notJson();
  const text = decodeUtf8(bytes.value);
  if (text === undefined) return refused("INVALID_ARGUMENT", "the body is not UTF-8", { field: "body" });
  return parseJson(text, limits.jsonDepth);
}

/** Never more than `maxBytes`, whatever Content-Length says; and never much more than that, or than a small body, in memory. */
async function readBytes(request: Request, maxBytes: number): Promise<Result<Uint8Array>> {
  if (request.body === null) return ok(new Uint8Array());
  try {
    const declared = request.headers.get("content-length");
    if (declared === null || Number(declared) > SMALL_BYTES) return await readChunks(request.body, maxBytes);
    // Nearly all of them: one call instead of several for each chunk. HTTP ends a body where its length says.
    const bytes = new Uint8Array(await request.arrayBuffer());
    return bytes.length > maxBytes ? tooLarge(maxBytes) : ok(bytes);
  } catch {
    // The caller went away, or cut the body short: no fault of ours.
    return refused("INVALID_ARGUMENT", "the body ended early", { field: "body" });
  }
}

/** Counts while it reads, and stops at the limit. */
async function readChunks(body: ReadableStream<Uint8Array>, maxBytes: number): Promise<Result<Uint8Array>> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  // `for await` cancels the stream when the loop is left.
  for await (const chunk of body) {
    length += chunk.length;
    if (length > maxBytes) return tooLarge(maxBytes);
    chunks.push(chunk);
  }
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
  }
  return ok(bytes);
}

const tooLarge = (maxBytes: number): Result<never> =>
  refused("RESOURCE_EXHAUSTED", `the body is larger than ${maxBytes} bytes`, { reason: "BODY_TOO_LARGE" });

const notJson = (): { ok: false; refusal: Failure } =>
  unsupported("send JSON, as `Content-Type: application/json`");

const unsupported = (detail: string): { ok: false; refusal: Failure } => ({
  ok: false,
  refusal: { code: "INVALID_ARGUMENT", status: 415, detail },
});
