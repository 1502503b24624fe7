import { canonicalize } from "../../common/canonical/canonicalize.ts";
import { defaultLimits } from "../../common/limits.ts";
import { declarationOf, entryText, typesOf, type TypesDocument } from "../../common/types/document.ts";
import { gitlabTypes } from "../../common/types/gitlab.ts";
import {
  isSameType,
  Types,
  type NamedType,
  type TypeEntry,
  type TypeKind,
} from "../../common/types/types.ts";
import type { Bucket } from "../client/api-types.ts";
import { isLeaseholdError } from "../client/errors.ts";
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

/** How long a failed comparison waits for the next call of the cell. */
const RETRY_MS = 60_000;

/**
 * Compares the types of a cell with those of its deployment: once, beside its first call, or as soon as the
 * coordinator answers. No call waits for it or depends on it, because the coordinator checks every begin.
 */
export class TypesCheck {
  readonly #own: readonly TypeEntry[];
  readonly #read: () => Promise<unknown>;
  readonly #report: (differences: string[]) => void;
  /** When a call may start the next attempt, by `performance.now()`. */
  #nextMs = 0;

  /**
   * @param own the types that the cell may send
   * @param read reads the document with the types of the deployment
   */
  constructor(
    own: readonly TypeEntry[],
    read: () => Promise<unknown>,
    report: (differences: string[]) => void,
  ) {
    this.#own = own;
    this.#read = read;
    this.#report = report;
  }

  /** Starts the comparison, if it is due. */
  start(): void {
    if (performance.now() < this.#nextMs) return;
    this.#nextMs = performance.now() + RETRY_MS;
    // Not as work that a flush waits for: on Workers, it may be dropped with the request that started it.
    void this.#run();
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    try {
      const deployed = typesOf(await this.#read());
      this.#nextMs = Number.POSITIVE_INFINITY;
      // A rule that only a newer version knows cannot be compared.
      const differences = deployed.ok
        ? differencesOf(this.#own, new Types(deployed.value))
        : [`the types of the deployment cannot be read: ${deployed.refusal.detail}`];
      if (differences.length > 0) this.#report(differences);
    } catch (error) {
      // An older coordinator cannot list its types.
      if (isLeaseholdError(error) && error.code === "NOT_FOUND") this.#nextMs = Number.POSITIVE_INFINITY;
    }
  }
}

/** Answers a sentence for each type that the deployment lacks, or has with another number or rule. */
function differencesOf(own: readonly TypeEntry[], deployed: Types): string[] {
  return own.flatMap((entry) => {
    const other = deployed.named(entry.kind, entry.name);
    const what = entryText(entry.kind, entry.name);
    if (other === undefined) return [`${what} is not declared by the deployment`];
    return isSameType(entry, other)
      ? []
      : [`${what} is ${textOf(entry)} in this cell, and ${textOf(other)} in the deployment`];
  });
}

const textOf = (entry: TypeEntry): string => JSON.stringify(declarationOf(entry));
