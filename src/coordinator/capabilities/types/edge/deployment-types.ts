import { shippedTypes } from "../../../../common/types/shipped.ts";
import { TYPE_KINDS, type TypeKind, type Types } from "../../../../common/types/types.ts";

// The types in the API's description. openapi.json has those that Leasehold ships, and a deployment replaces
// them with its own when it answers.

/** The schemas that list the names of types. */
export const TYPE_SCHEMAS: Readonly<Record<string, TypeKind>> = {
  BucketType: "bucket",
  SubjectType: "subject",
  SourceType: "source",
};

/**
 * Returns the API's description with a deployment's own types. Examples that name a type which the deployment
 * does not have name its first one instead.
 */
export function withTypes<Document extends { components: { schemas: object } }>(
  document: Document,
  types: Types,
): Document {
  const instead = new Map<string, string>();
  for (const kind of TYPE_KINDS) {
    const [first = ""] = types.names(kind);
    for (const name of shippedTypes.names(kind))
      if (types.named(kind, name) === undefined) instead.set(name, first);
  }
  const described = instead.size === 0 ? document : (replaced(document, instead) as Document);
  const schemas = Object.entries(described.components.schemas as Record<string, object>).map(
    ([name, schema]) => {
      const kind = TYPE_SCHEMAS[name];
      return [name, kind === undefined ? schema : { ...schema, enum: types.names(kind) }];
    },
  );
  const components = { ...described.components, schemas: Object.fromEntries(schemas) as object };
  return { ...described, components };
}

function replaced(value: unknown, instead: ReadonlyMap<string, string>): unknown {
  if (Array.isArray(value)) return value.map((each) => replaced(each, instead));
  if (typeof value === "string") return instead.get(value) ?? inLines(value, instead);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, replaced(each, instead)]));
}

/** The example of a stream of JSON lines is one text. */
const inLines = (text: string, instead: ReadonlyMap<string, string>): string =>
  text.replaceAll(/"([A-Z][A-Z0-9_]*)"/g, (quoted, name: string) => {
    const other = instead.get(name);
    return other === undefined ? quoted : `"${other}"`;
  });
