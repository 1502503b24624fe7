/** Services of `@grpc/grpc-js` for descriptors of protobuf-es. */
import {
  create,
  fromBinary,
  toBinary,
  type DescMessage,
  type DescMethod,
  type DescService,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { MethodDefinition, ServiceDefinition } from "@grpc/grpc-js";
import { binaryFault, type MessageFault } from "../../coordinator/wire/message-fault.ts";
import { MAX_KEYLESS_BYTES } from "./call-limits.ts";
import { Health } from "../../coordinator/wire/generated/grpc/health/v1/health_pb.js";
import { ServerReflection } from "../../coordinator/wire/generated/grpc/reflection/v1/reflection_pb.js";
import {
  CellService,
  ClaimService,
  ClassifyService,
  HealthService,
} from "../../coordinator/wire/protobuf.ts";

const asIs = (bytes: Buffer): Buffer => bytes;

export const pathOf = (method: DescMethod): string => `/${method.parent.typeName}/${method.name}`;

/** A service whose messages stay bytes, so that fields of any generation reach the coordinator. */
export const rawService = ({ methods }: DescService): ServiceDefinition =>
  Object.fromEntries(methods.map((method) => [method.localName, definitionOf(method, asIs, asIs)]));

/** A service whose messages are decoded, and are short. A handler may answer the fields of a message. */
export const typedService = ({ methods }: DescService): ServiceDefinition =>
  Object.fromEntries(
    methods.map((method) => [
      method.localName,
      definitionOf(
        method,
        (bytes) => decoded(method.input, bytes),
        (fields) => encoded(method.output, fields as MessageInitShape<DescMessage>),
      ),
    ]),
  );

/** Stands for a message that cannot be read. The library would not say why. */
export class FaultyMessage {
  readonly fault: MessageFault;

  constructor(fault: MessageFault) {
    this.fault = fault;
  }
}

/** The library answers what it throws with a status. */
function decoded(schema: DescMessage, bytes: Buffer): MessageShape<DescMessage> | FaultyMessage {
  if (bytes.length > MAX_KEYLESS_BYTES) throw new RangeError("the message has become too large");
  const fault = binaryFault(schema, bytes);
  return fault === undefined ? fromBinary(schema, bytes) : new FaultyMessage(fault);
}

const encoded = (schema: DescMessage, fields: MessageInitShape<DescMessage>): Buffer =>
  Buffer.from(toBinary(schema, create(schema, fields)));

const definitionOf = <Request, Response>(
  method: DescMethod,
  read: (bytes: Buffer) => Request,
  write: (message: Response) => Buffer,
): MethodDefinition<Request, Response> => ({
  path: pathOf(method),
  requestStream: method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming",
  responseStream: method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming",
  requestDeserialize: read,
  responseSerialize: write,
  // Only clients use these two.
  requestSerialize: () => Buffer.alloc(0),
  responseDeserialize: (bytes) => bytes as unknown as Response,
});

/** The services whose calls go to the coordinator. All of their methods are unary. */
export const forwarded: readonly DescService[] = [ClaimService, ClassifyService, CellService, HealthService];

/** All services of the server, as reflection lists them. */
export const services: readonly DescService[] = [...forwarded, Health, ServerReflection];
