import openapi from "../../../../openapi.json" with { type: "json" };
import type { Types } from "../../../common/types/types.ts";
import type { Deployment } from "../../isolate/deployment.ts";
import { withTypes } from "../../capabilities/types/edge/deployment-types.ts";
import type { WaitUntil } from "../../runtime.ts";
import { jsonText } from "../http-answer.ts";
import { encodedOnce } from "../encoded-once.ts";

// The part of OpenAPI that `openapi.ts` writes.

export interface Schema {
  $ref?: string;
  /** A list means one of its types. */
  type?: string | string[];
  description?: string;
  format?: string;
  const?: unknown;
  enum?: string[];
  examples?: unknown[];
  anyOf?: Schema[];
  items?: Schema;
  /** The documents of a stream of JSON lines. */
  contentSchema?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  minimum?: number;
}

export interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  required: boolean;
  description?: string;
  schema: Schema;
  example?: string | number;
}

export interface Content {
  schema: Schema;
  example?: unknown;
}

export interface Operation {
  operationId: string;
  tags: string[];
  summary: string;
  description: string;
  "x-roles": string[];
  parameters?: Parameter[];
  requestBody?: { required: boolean; content: { "application/json": Content } };
  responses: Record<string, { description: string; content: Record<string, Content> }>;
  "x-errors": { code: string; reason?: string; when: string; status: number }[];
}

export interface Tag {
  name: string;
  description: string;
  /** The ids of its operations, in the order of the page. */
  "x-operations": string[];
}

export interface Document {
  openapi: string;
  info: { title: string; version: string; summary: string; description: string };
  tags: Tag[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
  "x-error-codes": { code: string; status: number; title: string; retryable: boolean; description: string }[];
}

/** `openapi.ts` writes this file, and a test checks that it is up to date. */
const shippedDocument = openapi as unknown as Document;

export type Schemas = Readonly<Record<string, Schema>>;

export interface Entry {
  method: string;
  path: string;
  operation: Operation;
  /** The named schemas of the document. */
  schemas: Schemas;
}

export const entriesOf = ({ paths, components: { schemas } }: Document, tag: Tag): Entry[] =>
  Object.entries(paths)
    .flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, operation]) => ({
        method: method.toUpperCase(),
        path,
        operation,
        schemas,
      })),
    )
    .filter(({ operation }) => operation.tags.includes(tag.name))
    .toSorted((a, b) => placeIn(tag, a) - placeIn(tag, b));

const placeIn = (tag: Tag, { operation }: Entry): number =>
  tag["x-operations"].indexOf(operation.operationId);

export const nameOfRef = (ref: string): string => ref.slice(ref.lastIndexOf("/") + 1);

export const resolved = (schemas: Schemas, schema: Schema): Schema =>
  schema.$ref === undefined ? schema : (schemas[nameOfRef(schema.$ref)] ?? {});

/** `openapi.json` in bytes. */
export const encodedOpenApi = encodedOnce<Document>(jsonText);

let made: { types: Types; document: Document } | undefined;

/**
 * The API's description with the deployment's own types. Anybody may ask for it, so the types come from the
 * isolate's copy. Without one, it has the types that Leasehold ships.
 */
export async function describedApi(
  { directory, types }: Deployment,
  waitUntil: WaitUntil,
): Promise<Document> {
  if (types.current === undefined) await directory.view(waitUntil);
  const { current } = types;
  if (current === undefined) return shippedDocument;
  if (made?.types !== current) made = { types: current, document: withTypes(shippedDocument, current) };
  return made.document;
}
