/** Services of `@grpc/grpc-js` for descriptors of protobuf-es. */
import {
  create,
  fromBinary,
  toBinary,
  type DescMessage,
  type DescMethod,
  type DescService,
  type MessageInitShape,
} from "@bufbuild/protobuf";
import type { MethodDefinition, ServiceDefinition } from "@grpc/grpc-js";

const asIs = (bytes: Buffer): Buffer => bytes;

export const pathOf = (method: DescMethod): string => `/${method.parent.typeName}/${method.name}`;

/** A service whose messages stay bytes, so that fields of any generation reach the coordinator. */
export const rawService = ({ methods }: DescService): ServiceDefinition =>
  Object.fromEntries(methods.map((method) => [method.localName, definitionOf(method, asIs, asIs)]));

/** A service whose messages are decoded. A handler may answer the fields of a message. */
export const typedService = ({ methods }: DescService): ServiceDefinition =>
  Object.fromEntries(
    methods.map((method) => [
      method.localName,
      definitionOf(
        method,
        (bytes) => fromBinary(method.input, bytes),
        (fields) => encoded(method.output, fields as MessageInitShape<DescMessage>),
      ),
    ]),
  );

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
