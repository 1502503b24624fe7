import { isSameType, Types, type TypeEntry, type TypeKind } from "./types.ts";

/** What a new set of types would change. */
export interface TypesPlan {
  changes: TypeChange[];
  /** Why the new set is refused. If there are none, it may be applied. */
  refusals: TypeRefusal[];
}

interface TypeChange {
  change: "add" | "remove" | "change";
  kind: TypeKind;
  name: string;
  before: TypeEntry | null;
  after: TypeEntry | null;
}

export interface TypeRefusal {
  kind: TypeKind;
  name: string;
  /** The end of a sentence that begins with the entry. */
  reason: string;
}

/**
 * Compares a set of types with a new one (T3). Entries that are in use must stay as they are: an entry with
 * another number or rule would give a name a second owner, and one with another name would hide claims.
 */
export function planTypes(before: Types, wanted: readonly TypeEntry[]): TypesPlan {
  const after = new Types(wanted);
  const changes: TypeChange[] = [];
  const refusals: TypeRefusal[] = [];
  for (const entry of before.entries) {
    const { kind, name, number, isInUse } = entry;
    const next = after.named(kind, name);
    if (next !== undefined && isSameType(entry, next)) continue;
    changes.push({
      change: next === undefined ? "remove" : "change",
      kind,
      name,
      before: entry,
      after: next ?? null,
    });
    if (isInUse) refusals.push({ kind, name, reason: whyFrozen(entry, next, after.numbered(kind, number)) });
  }
  for (const entry of wanted)
    if (before.named(entry.kind, entry.name) === undefined)
      changes.push({ change: "add", kind: entry.kind, name: entry.name, before: null, after: entry });
  return { changes, refusals };
}

function whyFrozen(entry: TypeEntry, next: TypeEntry | undefined, successor: TypeEntry | undefined): string {
  if (next === undefined)
    return successor === undefined
      ? "is in use, so it must not be removed"
      : `is in use, so it must not be renamed to ${successor.name}`;
  if (next.number !== entry.number)
    return `is in use with the number ${entry.number}, so it must not get the number ${next.number}`;
  return "is in use, so its canonical rule must not change: a name could get a second owner";
}
