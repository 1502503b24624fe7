/** A transport of Connect over `@grpc/grpc-js`, so that a suite of its clients runs over native gRPC. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { Metadata, type Client, type ServiceError } from "@grpc/grpc-js";

const asIs = (bytes: Buffer): Buffer => bytes;

export interface Sent {
  metadata?: Readonly<Record<string, string>>;
  deadlineMs?: number;
  signal?: AbortSignal | undefined;
}

/** Makes a unary call with the bytes of a message. */
export const callBytes = (
  client: Client,
  path: string,
  message: Uint8Array,
  { metadata = {}, deadlineMs, signal }: Sent = {},
): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const sent = new Metadata();
    for (const [name, value] of Object.entries(metadata)) sent.set(name, value);
    const options = deadlineMs === undefined ? {} : { deadline: Date.now() + deadlineMs };
    const call = client.makeUnaryRequest(
      path,
      asIs,
      asIs,
      Buffer.from(message),
      sent,
      options,
      (error, answer) => {
        if (error !== null) reject(error);
        else resolve(answer ?? Buffer.alloc(0));
      },
    );
    signal?.addEventListener("abort", () => call.cancel());
  });

/** The error that a client of Connect would see. */
function asConnectError({ code, details, metadata }: ServiceError): ConnectError {
  const trailer = new Headers({ "grpc-status": String(code), "grpc-message": encodeURIComponent(details) });
  const [detail] = metadata.get("grpc-status-details-bin");
  if (detail !== undefined) trailer.set("grpc-status-details-bin", Buffer.from(detail).toString("base64"));
  return findTrailerError(trailer) ?? new ConnectError("the call failed with status 0", Code.Internal);
}

/** @param keyOf the key of each call, or undefined for none */
export const nativeTransport = (client: Client, keyOf: () => Promise<string | undefined>): Transport => ({
  async unary(method, signal, timeoutMs, header, input) {
    const metadata: Record<string, string> = Object.fromEntries(new Headers(header));
    const key = await keyOf();
    if (key !== undefined) metadata["authorization"] = `Bearer ${key}`;
    const path = `/${method.parent.typeName}/${method.name}`;
    const message = toBinary(method.input, create(method.input, input));
    const sent = { metadata, signal, ...(timeoutMs === undefined ? {} : { deadlineMs: timeoutMs }) };
    const answer = await callBytes(client, path, message, sent).catch((error: ServiceError) => {
      throw asConnectError(error);
    });
    return {
      stream: false,
      service: method.parent,
      method,
      header: new Headers(),
      trailer: new Headers(),
      message: fromBinary(method.output, Uint8Array.from(answer)),
    };
  },
  stream: () => Promise.reject(new Error("the services of the coordinator have no streams")),
});
