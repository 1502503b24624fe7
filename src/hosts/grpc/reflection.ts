/** Server reflection: tools such as grpcurl learn the services and messages from the server itself. */
import { toBinary, type DescFile, type MessageInitShape } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { status, type ServerDuplexStream } from "@grpc/grpc-js";
import {
  type ServerReflectionRequest,
  type ServerReflectionResponseSchema,
} from "../../coordinator/wire/generated/grpc/reflection/v1/reflection_pb.js";
import { services } from "./raw-service.ts";

type Answer = MessageInitShape<typeof ServerReflectionResponseSchema>;

/** The files of the services and everything that these import, by their paths. */
const files = new Map<string, DescFile>();
/** Anybody may ask for the files, so they are encoded once. */
const encoded = new Map<DescFile, Uint8Array>();
/** The file that declares a service, method, message or enum, by its full name. */
const declaredIn = new Map<string, DescFile>();

function add(file: DescFile): void {
  if (files.has(file.proto.name)) return;
  files.set(file.proto.name, file);
  encoded.set(file, toBinary(FileDescriptorProtoSchema, file.proto));
  const addMessages = (messages: DescFile["messages"]): void => {
    for (const { typeName, nestedMessages, nestedEnums } of messages) {
      declaredIn.set(typeName, file);
      for (const { typeName: name } of nestedEnums) declaredIn.set(name, file);
      addMessages(nestedMessages);
    }
  };
  addMessages(file.messages);
  for (const { typeName } of file.enums) declaredIn.set(typeName, file);
  for (const { typeName, methods } of file.services) {
    declaredIn.set(typeName, file);
    for (const { name } of methods) declaredIn.set(`${typeName}.${name}`, file);
  }
  for (const dependency of file.dependencies) add(dependency);
}

for (const { file } of services) add(file);

/** Answers each request of the stream, and ends with it. */
export function reflect(stream: ServerDuplexStream<ServerReflectionRequest, Answer>): void {
  stream.on("data", (request: ServerReflectionRequest) => {
    const messageResponse = answerTo(request.messageRequest);
    // A client that asks and reads nothing is read no further.
    stream.pause();
    stream.write({ validHost: request.host, originalRequest: request, messageResponse }, () =>
      stream.resume(),
    );
  });
  stream.on("end", () => stream.end());
  stream.on("error", () => stream.end());
}

type Asked = ServerReflectionRequest["messageRequest"];
type Answered = NonNullable<Answer["messageResponse"]>;

function answerTo(asked: Asked): Answered {
  switch (asked.case) {
    case "listServices":
      return {
        case: "listServicesResponse",
        value: { service: services.map(({ typeName }) => ({ name: typeName })) },
      };
    case "fileByFilename":
      return described(files.get(asked.value), asked.value);
    case "fileContainingSymbol":
      return described(declaredIn.get(asked.value), asked.value);
    case "allExtensionNumbersOfType":
      if (!declaredIn.has(asked.value)) return missing(asked.value);
      return { case: "allExtensionNumbersResponse", value: { baseTypeName: asked.value } };
    case "fileContainingExtension":
      return missing(`${asked.value.containingType} ${asked.value.extensionNumber}`);
    default:
      return failure(status.INVALID_ARGUMENT, "the request asks for nothing that this server knows");
  }
}

/** The file, with everything that it imports before it. */
function described(file: DescFile | undefined, name: string): Answered {
  if (file === undefined) return missing(name);
  const needed = new Set<DescFile>();
  const visit = (each: DescFile): void => {
    if (needed.has(each)) return;
    for (const dependency of each.dependencies) visit(dependency);
    needed.add(each);
  };
  visit(file);
  const protos = [...needed].flatMap((each) => encoded.get(each) ?? []);
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto: protos } };
}

const missing = (name: string): Answered => failure(status.NOT_FOUND, `${name} is not known here`);

const failure = (errorCode: number, errorMessage: string): Answered => ({
  case: "errorResponse",
  value: { errorCode, errorMessage },
});
