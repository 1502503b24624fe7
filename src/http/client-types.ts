import { routeIds, routes } from "./contract.ts";
import type { Route } from "./contract/route.ts";
import { openApiOf } from "./openapi.ts";

/** The part of JSON Schema that the contract's schemas are made of. */
interface Schema {
  $ref?: string;
  type?: string | readonly string[];
  description?: string;
  const?: unknown;
  enum?: readonly unknown[];
  anyOf?: readonly Schema[];
  items?: Schema;
  properties?: Readonly<Record<string, Schema>>;
  required?: readonly string[];
  additionalProperties?: unknown;
}

interface Operation {
  operationId: string;
  requestBody?: { required: boolean; content: { "application/json": { schema: Schema } } };
  responses: Readonly<Record<string, { content: Readonly<Record<string, { schema: Schema }>> }>>;
}

interface Document {
  paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  components: { schemas: Readonly<Record<string, Schema>> };
}

/** Pages for people, and what would only repeat itself: the client makes the ids of its leases, so that a begin can be repeated. */
const LEFT_OUT: ReadonlySet<string> = new Set(["getDocs", "getOpenApi", "getRoot", "beginLeaseWithNewId"]);

/**
 * The client's view of the contract as a TypeScript module: a type for every schema, and for every operation its route, what it takes and what
 * it answers. The client thereby has the server's own schemas without carrying the library that they are written in.
 */
export function clientTypesOf(): string {
  const document = openApiOf("") as unknown as Document;
  const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));
  const known = operations.filter(({ operationId }) => !LEFT_OUT.has(operationId));
  return [
    "// Made from the contract in src/http by `npm run generate:client`; do not edit.\n",
    ...Object.entries(document.components.schemas).map(([name, schema]) => declarationOf(name, schema)),
    "/** Every operation: what it takes in its body, and what it answers. */",
    `export interface Operations {\n${known.map(operationType).join("\n")}\n}\n`,
    "/** Every operation's route, and the least that its answer must hold. */",
    `export const operations = {\n${known.map((each) => operationValue(each, document)).join("\n")}\n} as const;\n`,
  ].join("\n");
}

const declarationOf = (name: string, schema: Schema): string =>
  `${comment(schema, "")}export ${isPlainObject(schema) ? `interface ${name} ` : `type ${name} = `}${typeOf(schema, "")}${isPlainObject(schema) ? "" : ";"}\n`;

const isPlainObject = ({ type, properties }: Schema): boolean =>
  type === "object" && properties !== undefined;

const comment = ({ description }: Schema, indent: string): string =>
  description === undefined ? "" : `${indent}/** ${description} */\n`;

function typeOf(schema: Schema, indent: string): string {
  if (schema.$ref !== undefined) return nameOf(schema.$ref);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ type }, indent)).join(" | ");
  if (schema.anyOf !== undefined)
    return [...new Set(schema.anyOf.map((each) => typeOf(each, indent)))].join(" | ");
  switch (schema.type) {
    case "array":
      return `readonly ${grouped(typeOf(schema.items ?? {}, indent))}[]`;
    case "object":
      return objectType(schema, indent);
    case "integer":
      return "number";
    case "string":
    case "number":
    case "boolean":
    case "null":
      return schema.type;
    default:
      throw new TypeError(`the client's types do not know this schema: ${JSON.stringify(schema)}`);
  }
}

const grouped = (type: string): string => (type.includes(" | ") ? `(${type})` : type);

const nameOf = (ref: string): string => ref.slice(ref.lastIndexOf("/") + 1);

function objectType({ properties = {}, required = [] }: Schema, indent: string): string {
  const inner = `${indent}  `;
  const fields = Object.entries(properties).map(([name, schema]) => {
    const isRequired = required.includes(name);
    // What may be left out may be undefined too: JSON leaves it out.
    const type = `${typeOf(schema, inner)}${isRequired ? "" : " | undefined"}`;
    return `${comment(schema, inner)}${inner}${name}${isRequired ? "" : "?"}: ${type};`;
  });
  return fields.length === 0 ? "Record<string, never>" : `{\n${fields.join("\n")}\n${indent}}`;
}

const answerOf = ({ responses }: Operation): Schema => {
  const status = Object.keys(responses).find((each) => each.startsWith("2"));
  // Of JSON, or of a line of it.
  const schema = Object.values(responses[status ?? ""]?.content ?? {})[0]?.schema;
  if (schema === undefined) throw new TypeError("an operation without an answer");
  return schema;
};

function operationType(operation: Operation): string {
  const body = operation.requestBody?.content["application/json"].schema;
  const bodyType =
    body === undefined
      ? "undefined"
      : `${typeOf(body, "    ")}${operation.requestBody?.required === true ? "" : " | undefined"}`;
  return `  ${operation.operationId}: { body: ${bodyType}; answer: ${typeOf(answerOf(operation), "  ")} };`;
}

function operationValue(operation: Operation, document: Document): string {
  const route: Route = routes[routeIds.find((id) => id === operation.operationId) ?? "getRoot"];
  const shape = JSON.stringify(shapeOf(answerOf(operation), document));
  return `  ${operation.operationId}: { method: "${route.method}", path: "${route.path}", shape: ${shape} },`;
}

/** What must be there, and of what kind: enough that a client never takes a stranger's document for an answer, and a newer server's for a fault. */
function shapeOf(schema: Schema, document: Document): unknown {
  if (schema.$ref !== undefined)
    return shapeOf(document.components.schemas[nameOf(schema.$ref)] ?? {}, document);
  switch (schema.type) {
    case "array":
      return [shapeOf(schema.items ?? {}, document)];
    case "object": {
      const required = Object.entries(schema.properties ?? {}).filter(([name]) =>
        schema.required?.includes(name),
      );
      return Object.fromEntries(required.map(([name, each]) => [name, shapeOf(each, document)]));
    }
    case "integer":
      return "number";
    case "string":
    case "number":
    case "boolean":
      return schema.type;
    default:
      return "any";
  }
}
