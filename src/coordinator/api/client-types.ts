import { routeIds, routes } from "./contract.ts";
import type { Route } from "./contract/route.ts";
import { openApiOf } from "./openapi.ts";

/** The part of JSON Schema that the contract's schemas use. */
interface Schema {
  $ref?: string;
  type?: string | readonly string[];
  description?: string;
  const?: unknown;
  enum?: readonly unknown[];
  anyOf?: readonly Schema[];
  /** False for a tuple, whose items are `prefixItems`. */
  items?: Schema | false;
  prefixItems?: readonly Schema[];
  /** The documents of a stream of JSON lines. */
  contentSchema?: Schema;
  properties?: Readonly<Record<string, Schema>>;
  required?: readonly string[];
  additionalProperties?: Schema | false;
  propertyNames?: unknown;
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

/**
 * Routes that the client doesn't use: pages for people, metrics, failed copies, the search for a subject, the
 * history of names, the removal of cells, growing, restores, upgrades and webhooks, which only operators
 * need, and the begin without an id. The client chooses lease ids itself, so that it can repeat a begin.
 */
const LEFT_OUT: ReadonlySet<string> = new Set([
  "getDocs",
  "getOpenApi",
  "getRoot",
  "getMetrics",
  "listFailedCopies",
  "searchRecords",
  "listHistory",
  "eraseHistory",
  "getRemoval",
  "approveRemoval",
  "stepRemoval",
  "getGrowth",
  "startGrowth",
  "stepGrowth",
  "cutGrowth",
  "abortGrowth",
  "listOperations",
  "startRestore",
  "endRestore",
  "getUpgrade",
  "finishUpgrade",
  "listWebhooks",
  "addWebhook",
  "changeWebhook",
  "removeWebhook",
  "testWebhook",
  "listDeliveries",
  "beginLeaseWithNewId",
]);

/**
 * The client's part of the contract as a TypeScript module: a type for each schema, and for each operation
 * its route, its body and its answer. So the client has the server's own types, without the library in which
 * the schemas are written.
 */
export function clientTypesOf(): string {
  const document = openApiOf("") as unknown as Document;
  const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));
  const known = operations.filter(({ operationId }) => !LEFT_OUT.has(operationId));
  return [
    "// Generated from src/coordinator/api/contract by `npm run generate:client`. Do not edit.\n",
    'import type { DeclaredNames } from "./declared-types.ts";\n',
    ...Object.entries(document.components.schemas).map(([name, schema]) => declarationOf(name, schema)),
    "/** The body and the answer of every operation. */",
    `export interface Operations {\n${known.map(operationType).join("\n")}\n}\n`,
    "/** The route of every operation, and the fields that its answer must have. */",
    "export const operations = " +
      `{\n${known.map((each) => operationValue(each, document)).join("\n")}\n} as const;\n`,
  ].join("\n");
}

/** The names of types, whose values a deployment declares. */
const TYPE_NAMES = { BucketType: "bucket_types", SubjectType: "subject_types", SourceType: "source_types" };

function declarationOf(name: string, schema: Schema): string {
  if (name in TYPE_NAMES) {
    const list = TYPE_NAMES[name as keyof typeof TYPE_NAMES];
    const shipped = typeOf(schema, "");
    return `${comment(schema, "")}export type ${name} = DeclaredNames<"${list}", ${shipped}>;\n`;
  }
  const type = typeOf(schema, "");
  const declaration = isPlainObject(schema) ? `interface ${name} ${type}` : `type ${name} = ${type};`;
  return `${comment(schema, "")}export ${declaration}\n`;
}

const isPlainObject = ({ type, properties }: Schema): boolean =>
  type === "object" && properties !== undefined;

/** The formatter indents a comment within a union by up to 4 more columns, and does not wrap comments. */
const WIDTH = 106;

function comment({ description }: Schema, indent: string): string {
  if (description === undefined) return "";
  const oneLine = `${indent}/** ${description} */`;
  if (oneLine.length <= WIDTH) return `${oneLine}\n`;
  const lines: string[] = [];
  let line = `${indent} *`;
  for (const word of description.split(/\s+/)) {
    if (line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = `${indent} *`;
    }
    line += ` ${word}`;
  }
  return [`${indent}/**`, ...lines, line, `${indent} */`, ""].join("\n");
}

function typeOf(schema: Schema, indent: string): string {
  if (schema.$ref !== undefined) return nameOf(schema.$ref);
  if (schema.propertyNames !== undefined) return `{ readonly [name: string]: ${valueType(schema)} }`;
  if (Object.keys(schema).every((key) => key === "description")) return "unknown";
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ type }, indent)).join(" | ");
  if (schema.anyOf !== undefined)
    return [...new Set(schema.anyOf.map((each) => typeOf(each, indent)))].join(" | ");
  switch (schema.type) {
    case "array":
      return schema.prefixItems === undefined
        ? `readonly ${grouped(typeOf(schema.items || {}, indent))}[]`
        : `readonly [${schema.prefixItems.map((each) => typeOf(each, indent)).join(", ")}]`;
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
      throw new TypeError(
        `no TypeScript type for this schema; add it to \`typeOf\`: ${JSON.stringify(schema)}`,
      );
  }
}

/**
 * The values of a record. Objects stay unknown: in a JSON document that a program imports, their texts have
 * the type `string`, which is wider than an enumeration.
 */
const valueType = ({ additionalProperties: values }: Schema): string =>
  values && values.type !== "object" ? typeOf(values, "") : "unknown";

const grouped = (type: string): string => (/ \| |^readonly /.test(type) ? `(${type})` : type);

const nameOf = (ref: string): string => ref.slice(ref.lastIndexOf("/") + 1);

function objectType({ properties = {}, required = [] }: Schema, indent: string): string {
  const inner = `${indent}  `;
  const fields = Object.entries(properties).map(([name, schema]) => {
    const isRequired = required.includes(name);
    // A field that may be left out may also be undefined, because JSON omits undefined fields.
    const type = `${typeOf(schema, inner)}${isRequired ? "" : " | undefined"}`;
    return `${comment(schema, inner)}${inner}${name}${isRequired ? "" : "?"}: ${type};`;
  });
  return fields.length === 0 ? "Record<string, never>" : `{\n${fields.join("\n")}\n${indent}}`;
}

const answerOf = ({ responses }: Operation): Schema => {
  const status = Object.keys(responses).find((each) => each.startsWith("2"));
  const schema = Object.values(responses[status ?? ""]?.content ?? {})[0]?.schema;
  if (schema === undefined) throw new TypeError("every operation in the contract must have a 2xx answer");
  // Of a stream, the client's types describe one line.
  return schema.contentSchema?.items || schema;
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

/**
 * The required fields of an answer, each with its kind. The client uses it to recognize an answer that is not
 * Leasehold's, and still accepts the answers of a newer server.
 */
function shapeOf(schema: Schema, document: Document): unknown {
  if (schema.$ref !== undefined)
    return shapeOf(document.components.schemas[nameOf(schema.$ref)] ?? {}, document);
  switch (schema.type) {
    case "array":
      return schema.prefixItems === undefined ? [shapeOf(schema.items || {}, document)] : "any";
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
