import type { Bucket } from "../client/api-types.ts";
import { canonicalize } from "../../common/canonical/canonicalize.ts";
import { defaultLimits } from "../../common/limits.ts";
import { typesOf, type TypesDocument } from "../../common/types/document.ts";
import { gitlabTypes } from "../../common/types/gitlab.ts";
import { Types, type NamedType, type TypeEntry, type TypeKind } from "../../common/types/types.ts";
import type { Claimable } from "./claimable.ts";
import { invalidArgument } from "./errors.ts";

/**
 * Reads the types that the deployment has declared, and checks that the tables use no others.
 *
 * @param document the contents of `leasehold.types.json`. Left out: the types of a deployment that has
 * declared none.
 */
export function declaredTypes(document: TypesDocument | undefined, tables: readonly Claimable[]): Types {
  const read = typesOf(document ?? gitlabTypes);
  if (!read.ok) throw invalidArgument("types", `cannot be used: ${read.refusal.detail}`);
  const types = new Types(read.value);
  for (const { name, source, subjectType, attributes } of tables) {
    checkDeclared(types, "source", source, `\`source\` of ${name}`);
    checkDeclared(types, "subject", subjectType, `\`subject.type\` of ${name}`);
    for (const attribute of attributes)
      checkDeclared(types, "bucket", attribute.bucket, `\`attributes.${attribute.name}\` of ${name}`);
  }
  return types;
}

/** The types that a cell may send: those of its document, or else those that its tables use. */
export function typesToSend(types: Types, hasDocument: boolean, tables: readonly Claimable[]): TypeEntry[] {
  if (hasDocument) return [...types.entries];
  const used = tables.flatMap(({ source, subjectType, attributes }): NamedType[] => [
    { kind: "source", name: source },
    { kind: "subject", name: subjectType },
    ...attributes.map(({ bucket }): NamedType => ({ kind: "bucket", name: bucket })),
  ]);
  return [...new Set(types.select(used))];
}

function checkDeclared(types: Types, kind: TypeKind, name: string, what: string): void {
  if (types.named(kind, name) !== undefined) return;
  const declared = types.names(kind).join(", ");
  throw invalidArgument(
    "tables",
    `${what} must be a declared ${kind} type, and ${name} is none; declared: ${declared}`,
  );
}

/** Returns the canonical form of a name, or why it has none. */
export function canonicalOf(
  types: Types,
  { type, value }: Bucket,
  maxBytes = defaultLimits.valueBytes,
): { ok: true; canonical: string } | { ok: false; detail: string } {
  const { rule } = entryOf(types, "bucket", type);
  if (rule === null) throw new Error(`the bucket type ${type} has no canonical rule`);
  const made = canonicalize(rule, value, maxBytes);
  return made.ok ? made : { ok: false, detail: made.detail };
}

/** Returns the number of a declared type. */
export const numberOf = (types: Types, kind: TypeKind, name: string): number =>
  entryOf(types, kind, name).number;

/** A record may have a type that this copy of the declared types does not have yet. */
function entryOf(types: Types, kind: TypeKind, name: string): TypeEntry {
  const entry = types.named(kind, name);
  if (entry === undefined)
    throw invalidArgument(
      "types",
      `lacks the ${kind} type ${name}, which the coordinator has; update this copy of the declared types`,
    );
  return entry;
}
