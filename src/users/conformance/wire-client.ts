/** Calls of the protobuf wire, made from its messages and nothing else. */
import {
  create,
  createRegistry,
  fromBinary,
  fromJson,
  toBinary,
  toJson,
  type DescMessage,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { StringValueSchema } from "@bufbuild/protobuf/wkt";
import { ErrorInfoSchema, type ErrorInfo } from "../../coordinator/wire/protobuf.ts";
import type { Api, Received, Who } from "./api.ts";
import { describe, expectThat, Nonconformity } from "./nonconformity.ts";

export const wireProtocols = ["Connect", "Connect JSON", "gRPC-Web"] as const;
export type WireProtocol = (typeof wireProtocols)[number];

export interface WireAnswer<Message> {
  received: Received;
  /** Such as `NOT_FOUND`. Null: it succeeded. */
  code: string | null;
  /** Undefined: it failed. */
  message: Message | undefined;
  /** What Connect says about a failure. */
  info: ErrorInfo | undefined;
}

interface WireSent {
  who: Who;
  headers?: Readonly<Record<string, string>>;
}

/** Pages of leases go on with a token that is packed like this. */
const json = { registry: createRegistry(StringValueSchema) };

const mediaTypes: Readonly<Record<WireProtocol, string>> = {
  Connect: "application/proto",
  "Connect JSON": "application/json",
  "gRPC-Web": "application/grpc-web+proto",
};

export async function callWire<Input extends DescMessage, Output extends DescMessage>(
  api: Api,
  protocol: WireProtocol,
  method: DescMethodUnary<Input, Output>,
  input: MessageInitShape<Input>,
  sent: WireSent,
): Promise<WireAnswer<MessageShape<Output>>> {
  const message = create(method.input, input);
  const raw =
    protocol === "Connect JSON"
      ? JSON.stringify(toJson(method.input, message, json))
      : new Uint8Array(toBinary(method.input, message));
  const received = await sendWire(api, protocol, method, raw, sent);
  return protocol === "gRPC-Web"
    ? readWeb(method.output, received)
    : readConnect(method.output, protocol, received);
}

/** Sends a message that may be malformed. */
export function sendWire(
  api: Api,
  protocol: WireProtocol,
  { parent, name }: DescMethodUnary,
  raw: string | Uint8Array<ArrayBuffer>,
  { who, headers = {} }: WireSent,
): Promise<Received> {
  const isWeb = protocol === "gRPC-Web";
  return api.send("POST", `/grpc/${parent.typeName}/${name}`, {
    who,
    raw: isWeb && typeof raw !== "string" ? framed(raw) : raw,
    headers: {
      accept: "*/*",
      "content-type": mediaTypes[protocol],
      ...(isWeb ? { "x-grpc-web": "1" } : { "connect-protocol-version": "1" }),
      ...headers,
    },
  });
}

const HEADER_BYTES = 5;
const TRAILERS = 0x80;

function framed(message: Uint8Array): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(HEADER_BYTES + message.length);
  new DataView(frame.buffer).setUint32(1, message.length);
  frame.set(message, HEADER_BYTES);
  return frame;
}

interface ConnectFailure {
  code?: string;
  details?: { type: string; value: string }[];
}

function readConnect<Output extends DescMessage>(
  output: Output,
  protocol: WireProtocol,
  received: Received,
): WireAnswer<MessageShape<Output>> {
  if (received.status === 200) {
    const message = decoded(received, () =>
      protocol === "Connect"
        ? fromBinary(output, received.bytes)
        : fromJson(output, JSON.parse(received.text), json),
    );
    return { received, code: null, message, info: undefined };
  }
  const { code, details = [] } = (received.json ?? {}) as ConnectFailure;
  expectThat(typeof code === "string", `${describe(received)}; an error of Connect must have a code`);
  const packed = details.find(({ type }) => type === ErrorInfoSchema.typeName);
  const info =
    packed === undefined
      ? undefined
      : decoded(received, () => fromBinary(ErrorInfoSchema, Uint8Array.from(atob(packed.value), byteOf)));
  return { received, code: code.toUpperCase(), message: undefined, info };
}

const byteOf = (char: string): number => char.codePointAt(0) ?? 0;

/** The names of the statuses of gRPC, by their numbers. */
const STATUSES =
  "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED " +
  "RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE " +
  "DATA_LOSS UNAUTHENTICATED";

function readWeb<Output extends DescMessage>(
  output: Output,
  received: Received,
): WireAnswer<MessageShape<Output>> {
  const { body, trailers } = decoded(received, () => framesOf(received.bytes));
  const status = received.header("grpc-status") ?? /^grpc-status: *(\d+)/im.exec(trailers)?.[1];
  const code = STATUSES.split(" ")[Number(status ?? NaN)];
  expectThat(code !== undefined, `${describe(received)}; an answer of gRPC-Web must have a grpc-status`);
  if (code !== "OK") return { received, code, message: undefined, info: undefined };
  expectThat(body !== undefined, `${describe(received)}; a success of gRPC-Web must have a message`);
  return {
    received,
    code: null,
    message: decoded(received, () => fromBinary(output, body)),
    info: undefined,
  };
}

function framesOf(bytes: Uint8Array): { body: Uint8Array | undefined; trailers: string } {
  let body: Uint8Array | undefined;
  let trailers = "";
  for (let at = 0; at < bytes.length;) {
    const view = new DataView(bytes.buffer, bytes.byteOffset + at);
    const end = at + HEADER_BYTES + view.getUint32(1);
    if (end > bytes.length) throw new Error("a frame is longer than the answer");
    const content = bytes.subarray(at + HEADER_BYTES, end);
    if ((view.getUint8(0) & TRAILERS) === 0) body = content;
    else trailers += new TextDecoder().decode(content);
    at = end;
  }
  return { body, trailers };
}

function decoded<T>(received: Received, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Nonconformity(`${describe(received)}; the answer can't be decoded: ${why}`);
  }
}
