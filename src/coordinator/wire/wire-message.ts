/** Takes the message out of a request's body, and puts it back after it was rewritten. */
import { base64Decode } from "@bufbuild/protobuf/wire";
import { createRegistry, type DescMessage } from "@bufbuild/protobuf";
import { StringValueSchema } from "@bufbuild/protobuf/wkt";
import { ok, refused, type Result } from "../kernel/refusal.ts";
import { readChunks } from "../api/body.ts";
import type { Incoming } from "../api/incoming.ts";
import { binaryFault, jsonFault, type MessageFault } from "./message-fault.ts";
import { modernized } from "./oldest-generation.ts";

/** How a body has its message. */
interface Framing {
  /** gRPC-Web: a byte of flags and the length are in front of the message. */
  isEnveloped: boolean;
  /** gRPC-Web for older clients in browsers: the whole body is base64, and so is that of the answer. */
  isText: boolean;
  /** The message may be of the oldest generation. */
  isBinary: boolean;
  /** The compression of the message, if its flags or headers say that it is compressed. */
  encoding: string;
}

const ENVELOPE_BYTES = 5;
const COMPRESSED = 1;

/** What a body is by its headers. Undefined: the protocols leave it as it is, or refuse it. */
export function framingOf(incoming: Incoming): Framing | undefined {
  const type = (incoming.header("content-type") ?? "").toLowerCase().split(";")[0]?.trim();
  switch (type) {
    case "application/proto":
    case "application/json":
      return {
        isEnveloped: false,
        isText: false,
        isBinary: type === "application/proto",
        encoding: incoming.header("content-encoding") ?? "identity",
      };
    case "application/grpc-web":
    case "application/grpc-web+proto":
    case "application/grpc-web+json":
    case "application/grpc-web-text":
    case "application/grpc-web-text+proto":
      return {
        isEnveloped: true,
        isText: type.startsWith("application/grpc-web-text"),
        isBinary: !type.endsWith("json"),
        encoding: incoming.header("grpc-encoding") ?? "identity",
      };
    default:
      return undefined;
  }
}

/** A body without compression, in the newest form. It is the body itself if that is so already. */
export interface Plain {
  bytes: Uint8Array;
  /** Whether it was of the oldest generation. */
  isOldest: boolean;
}

/** The protocol refuses an envelope that is cut. */
export async function plainBody(
  read: Uint8Array,
  { isEnveloped, isText, isBinary, encoding }: Framing,
  method: string,
  maxBytes: number,
): Promise<Result<Plain>> {
  const decoded = isText ? ofBase64(new TextDecoder().decode(read), "body") : ok(read);
  if (!decoded.ok) return decoded;
  const body = decoded.value;
  if (isEnveloped && !isWholeEnvelope(body)) return ok({ bytes: body, isOldest: false });
  const sent = isEnveloped ? body.subarray(ENVELOPE_BYTES) : body;
  const isCompressed = isEnveloped ? ((body[0] ?? 0) & COMPRESSED) === COMPRESSED : encoding !== "identity";
  const message = isCompressed ? await decompressed(sent, encoding, maxBytes) : ok(sent);
  if (!message.ok) return message;
  const made = isBinary ? newest(method, message.value) : message.value;
  return ok({ bytes: isEnveloped ? enveloped(made) : made, isOldest: made !== message.value });
}

/** Clients may send it in parts, each with its own padding. */
function ofBase64(text: string, field: string): Result<Uint8Array> {
  try {
    return ok(base64Decode(text));
  } catch {
    return refused("INVALID_ARGUMENT", `the ${field} is not base64`, { field });
  }
}

/** A message that cannot be read is left to the protocol, which refuses it. */
function newest(method: string, message: Uint8Array): Uint8Array {
  try {
    return modernized(method, message);
  } catch {
    return message;
  }
}

/** `next` of a page is a text in a message of any type. */
export const jsonOptions = { ignoreUnknownFields: false, registry: createRegistry(StringValueSchema) };

/** A message as it was sent, without compression. */
export interface Sent extends Pick<Framing, "isEnveloped" | "isBinary"> {
  bytes: Uint8Array;
}

/** Why it is no message of this schema. Undefined: it is one. */
export function faultOf(
  { bytes, isEnveloped, isBinary }: Sent,
  schema: DescMessage,
): MessageFault | undefined {
  if (isEnveloped && !isWholeEnvelope(bytes))
    return { field: "", detail: "must be in one envelope, which has a flag, the length and the content" };
  const message = isEnveloped ? bytes.subarray(ENVELOPE_BYTES) : bytes;
  return isBinary
    ? binaryFault(schema, message)
    : jsonFault(schema, new TextDecoder().decode(message), jsonOptions);
}

/** The message of a call of Connect that is a GET. Undefined: the protocol refuses the call. */
export function queryMessage(url: string): Result<Sent | undefined> {
  const { searchParams: query } = new URL(url);
  const encoding = query.get("encoding");
  const isPlain = (query.get("compression") ?? "identity") === "identity";
  if (!isPlain || (encoding !== "proto" && encoding !== "json")) return ok(undefined);
  const message = query.get("message") ?? "";
  const decoded =
    query.get("base64") === "1" ? ofBase64(message, "message") : ok(new TextEncoder().encode(message));
  if (!decoded.ok) return decoded;
  return ok({ bytes: decoded.value, isEnveloped: false, isBinary: encoding === "proto" });
}

const isWholeEnvelope = (body: Uint8Array): boolean =>
  body.length >= ENVELOPE_BYTES &&
  new DataView(body.buffer, body.byteOffset).getUint32(1) === body.length - ENVELOPE_BYTES;

function enveloped(message: Uint8Array): Uint8Array {
  const body = new Uint8Array(ENVELOPE_BYTES + message.length);
  new DataView(body.buffer).setUint32(1, message.length);
  body.set(message, ENVELOPE_BYTES);
  return body;
}

async function decompressed(
  bytes: Uint8Array,
  encoding: string,
  maxBytes: number,
): Promise<Result<Uint8Array>> {
  if (encoding !== "gzip" || bytes.length === 0)
    return refused("INVALID_ARGUMENT", "the message may only be compressed with gzip", { field: "body" });
  const stream = new Blob([bytes as Uint8Array<ArrayBuffer>])
    .stream()
    .pipeThrough(new DecompressionStream("gzip"));
  // It counts while it reads, so a small body never becomes a large message.
  return readChunks(stream, maxBytes).bytes.catch(() => NO_GZIP);
}

const NO_GZIP = refused("INVALID_ARGUMENT", "the message is not gzip, or is cut", { field: "body" });
