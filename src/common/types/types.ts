import type { CanonicalRule } from "../canonical/rule.ts";

/** Bucket types (what is unique), subject types (whom a claim is about), source types (a cell's tables). */
export const TYPE_KINDS = ["bucket", "subject", "source"] as const;

export type TypeKind = (typeof TYPE_KINDS)[number];

/** A type of a deployment, as it was declared. Messages and rows have its number, people see its name. */
export interface TypeEntry {
  readonly kind: TypeKind;
  /** From 1 to 2^31 - 1, and unique among the types of its kind. */
  readonly number: number;
  /** Unique among the types of its kind. */
  readonly name: string;
  /** How names of a bucket type become canonical. Null for the other kinds. */
  readonly rule: CanonicalRule | null;
  /** True once a claim with this type may exist. From then on, the entry never changes (T2). */
  readonly isInUse: boolean;
}

/** A type by its name. */
export interface NamedType {
  readonly kind: TypeKind;
  readonly name: string;
}

interface Index {
  byName: Map<string, TypeEntry>;
  byNumber: Map<number, TypeEntry>;
}

/** The types of a deployment, at one version of the set. */
export class Types {
  readonly entries: readonly TypeEntry[];
  readonly #indexes: Record<TypeKind, Index>;

  constructor(entries: readonly TypeEntry[]) {
    this.entries = entries;
    this.#indexes = { bucket: newIndex(), subject: newIndex(), source: newIndex() };
    for (const entry of entries) {
      const { byName, byNumber } = this.#indexes[entry.kind];
      byName.set(entry.name, entry);
      byNumber.set(entry.number, entry);
    }
  }

  /** Returns a type by its name, or undefined if it is not declared. */
  named(kind: TypeKind, name: string): TypeEntry | undefined {
    return this.#indexes[kind].byName.get(name);
  }

  /** Returns a type by its number, or undefined if it is not declared. */
  numbered(kind: TypeKind, number: number): TypeEntry | undefined {
    return this.#indexes[kind].byNumber.get(number);
  }

  /** Returns the names of a kind in the order of their numbers. */
  names(kind: TypeKind): string[] {
    const entries = [...this.#indexes[kind].byName.values()];
    return entries.toSorted((a, b) => a.number - b.number).map(({ name }) => name);
  }

  /** Returns the entries with these names. Names that are not declared are left out. */
  select(names: readonly NamedType[]): TypeEntry[] {
    return names.flatMap(({ kind, name }) => this.named(kind, name) ?? []);
  }
}

const newIndex = (): Index => ({ byName: new Map(), byNumber: new Map() });

/** Whether two entries mean the same, whether in use or not. */
export const isSameType = (a: TypeEntry, b: TypeEntry): boolean =>
  a.kind === b.kind && a.number === b.number && a.name === b.name && ruleText(a.rule) === ruleText(b.rule);

/** The text of a rule, as it is stored and compared. Null for a type without one. */
export function ruleText(rule: CanonicalRule | null): string | null {
  if (rule === null) return null;
  const { form, script, case: letters, pattern, minLength, maxLength } = rule;
  return JSON.stringify({ form, script, case: letters, pattern, minLength, maxLength });
}
