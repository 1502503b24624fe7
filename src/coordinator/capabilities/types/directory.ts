import { changedMeanwhile, ok, refused, type Result } from "../../kernel/refusal.ts";
import { entryText } from "../../../common/types/document.ts";
import { planTypes, type TypeRefusal } from "../../../common/types/plan.ts";
import { isSameType, Types, type TypeEntry } from "../../../common/types/types.ts";
import type { ChangeTypes, DeclaredTypes, TypeSet, UseTypes } from "./messages.ts";
import type { MissingRows } from "../../kernel/directory/hooks.ts";
import type { DirectoryPart } from "../../kernel/directory/part.ts";
import { MAX_BELIEVED } from "../../kernel/instances.ts";
import { shippedTypes } from "../../../common/types/shipped.ts";

declare module "../../kernel/audit-trail.ts" {
  interface AuditedActions {
    change_types: true;
  }
}

// How the directory changes the set of types. Runs inside a transaction.

type Stored = Pick<DirectoryPart, "store">;

/** The set of a deployment that has declared none. */
const SHIPPED: DeclaredTypes = { position: 0, declaredAt: 0, entries: shippedTypes.entries };

export const typesIn = ({ store }: Stored): DeclaredTypes => store.setting("types", SHIPPED);

/** Stores a set that was declared. */
export const setTypes = ({ store }: Stored, entries: readonly TypeEntry[]): DeclaredTypes =>
  store.putSetting("types", { declaredAt: store.position + 1, entries });

/** Stores the set with more marks of types that are in use. */
const markTypes = ({ store }: Stored, entries: readonly TypeEntry[]): DeclaredTypes =>
  store.putSetting("types", { declaredAt: typesIn({ store }).declaredAt, entries });

/** Replaces the set, unless an entry would change that is in use (T3). */
export function changeTypes(
  part: Pick<DirectoryPart, "store" | "audit">,
  wanted: ChangeTypes,
): Result<DeclaredTypes> {
  const declaredBefore = typesIn(part);
  const { position, entries } = declaredBefore;
  const before = new Types(entries);
  const { changes, refusals } = planTypes(before, wanted.entries);
  // A repeated change has been carried out already.
  if (changes.length === 0) return ok(declaredBefore);
  if (wanted.position !== position) return changedMeanwhile("the set of types");
  const [first] = refusals;
  if (first !== undefined) return refusedEntry(first);
  const kept = (entry: TypeEntry): boolean => before.named(entry.kind, entry.name)?.isInUse === true;
  const declared = setTypes(
    part,
    wanted.entries.map((entry) => ({ ...entry, isInUse: kept(entry) })),
  );
  part.audit.current.append(wanted.operator, {
    action: "change_types",
    cell: null,
    target: "types",
    before: { version: position, types: entries.length },
    after: {
      version: declared.position,
      types: declared.entries.length,
      changed: changes
        .slice(0, MAX_LISTED)
        .map(({ kind, name, change }) => `${change} ${entryText(kind, name)}`),
      changes: changes.length,
    },
  });
  return ok(declared);
}

/** The most types that an audit entry lists. A set may have hundreds. */
const MAX_LISTED = 20;

function refusedEntry({ kind, name, reason }: TypeRefusal): Result<never> {
  const field = entryText(kind, name);
  return refused("FAILED_PRECONDITION", `\`${field}\` ${reason}`, { reason: "TYPE_IN_USE", field });
}

/** Marks entries as in use, unless the set has changed since the caller read and copied them (T2). */
export function useTypes(part: Stored, wanted: UseTypes): Result<DeclaredTypes> {
  const declared = typesIn(part);
  const { entries, declaredAt } = declared;
  const types = new Types(entries);
  const stored = wanted.entries.map((entry) => ({ entry, own: types.named(entry.kind, entry.name) }));
  const areAllUsed = stored.every(({ own }) => own?.isInUse === true);
  const isCopied = wanted.copiedAt >= declaredAt;
  const isChanged = stored.some(({ entry, own }) => own === undefined || !isSameType(entry, own));
  if (isChanged || (!areAllUsed && !isCopied))
    return refused("UNAVAILABLE", "a type of this call was changed a moment ago; repeat the call", {
      reason: "TYPES_CHANGED",
      retryAfterMs: 1_000,
    });
  if (areAllUsed) return ok(declared);
  const used = new Set(stored.map(({ own }) => own));
  return ok(
    markTypes(
      part,
      entries.map((entry) => (used.has(entry) ? { ...entry, isInUse: true } : entry)),
    ),
  );
}

/**
 * Returns the set that a directory which has lost rows should have, if there is a copy of it (T6): the newer
 * of the two. An entry that is in use in either of them replaces another with its name or number, because it
 * never changes. The newer set can lack it only if a directory made it that had lost the entry.
 */
export function restoredTypes(own: TypeSet, copy: TypeSet): TypeSet {
  const [newer, older] = copy.position > own.position ? [copy, own] : [own, copy];
  const entries: TypeEntry[] = [];
  const taken = new Set<string>();
  for (const entry of [...newer.entries.filter(isUsed), ...older.entries.filter(isUsed), ...newer.entries]) {
    const { kind, name, number } = entry;
    const keys = [`${kind} ${name}`, `${kind} ${number}`];
    if (keys.some((key) => taken.has(key))) continue;
    for (const key of keys) taken.add(key);
    entries.push(entry);
  }
  return { ...newer, entries };
}

const isUsed = ({ isInUse }: TypeEntry): boolean => isInUse;

/** Compares the copy of the set with the one that is left (T6). */
export function missingTypes(part: Stored, copy: TypeSet | null): MissingRows {
  if (copy === null) return { told: { types: [] }, restore: () => {} };
  const own = typesIn(part);
  const restored = restoredTypes(own, copy);
  const types = differencesOf(own, restored);
  return {
    told: { types },
    restore: () => {
      // D1 takes over only a set that is newer than its own.
      part.store.raiseTo(Math.min(copy.position, MAX_BELIEVED));
      if (types.length > 0) setTypes(part, restored.entries);
    },
  };
}

function differencesOf(before: TypeSet, after: TypeSet): string[] {
  const [old, wanted] = [new Types(before.entries), new Types(after.entries)];
  const changed = after.entries.filter((entry) => {
    const own = old.named(entry.kind, entry.name);
    return own === undefined || !isSameType(own, entry) || own.isInUse !== entry.isInUse;
  });
  const surplus = before.entries.filter(({ kind, name }) => wanted.named(kind, name) === undefined);
  return [...new Set([...changed, ...surplus].map(({ name }) => name))];
}
