import type { Reply } from "../messages.ts";
import { changedMeanwhile, ok, refused } from "../refusal.ts";
import { entryText } from "../types/document.ts";
import { planTypes, type TypeRefusal } from "../types/plan.ts";
import { isSameType, Types, type TypeEntry } from "../types/types.ts";
import type { ChangeTypes, DeclaredTypes, UseTypes } from "./messages.ts";
import type { DirectoryStore } from "./store.ts";

// How the directory changes the set of types. Runs inside a transaction.

/** Replaces the set, unless an entry would change that is in use (T3). */
export function changeTypes(store: DirectoryStore, wanted: ChangeTypes): Reply<DeclaredTypes> {
  const { position, entries } = store.types;
  const before = new Types(entries);
  const { changes, refusals } = planTypes(before, wanted.entries);
  // A repeated change has been carried out already.
  if (changes.length === 0) return ok(store.types);
  if (wanted.position !== position) return changedMeanwhile("the set of types");
  const [first] = refusals;
  if (first !== undefined) return refusedEntry(first);
  const kept = (entry: TypeEntry): boolean => before.named(entry.kind, entry.name)?.isInUse === true;
  return ok(store.setTypes(wanted.entries.map((entry) => ({ ...entry, isInUse: kept(entry) }))));
}

function refusedEntry({ kind, name, reason }: TypeRefusal): Reply<never> {
  const field = entryText(kind, name);
  return refused("FAILED_PRECONDITION", `\`${field}\` ${reason}`, { reason: "TYPE_IN_USE", field });
}

/** Marks entries as in use, unless the set has changed since the caller read them (T2). */
export function useTypes(store: DirectoryStore, wanted: UseTypes): Reply<DeclaredTypes> {
  const { entries } = store.types;
  const types = new Types(entries);
  const stored = wanted.entries.map((entry) => ({ entry, own: types.named(entry.kind, entry.name) }));
  if (stored.some(({ entry, own }) => own === undefined || !isSameType(entry, own)))
    return refused("UNAVAILABLE", "a type of this call was changed a moment ago; repeat the call", {
      reason: "TYPES_CHANGED",
      retryAfterMs: 1_000,
    });
  if (stored.every(({ own }) => own?.isInUse === true)) return ok(store.types);
  const used = new Set(stored.map(({ own }) => own));
  return ok(store.setTypes(entries.map((entry) => (used.has(entry) ? { ...entry, isInUse: true } : entry))));
}

/**
 * Returns the set that a directory which has lost rows should have, if there is a copy of it (T6): the newer
 * of the two, with all types in use that are in use in either.
 */
export function restoredTypes(own: DeclaredTypes, copy: DeclaredTypes): DeclaredTypes {
  const [newer, older] = copy.position > own.position ? [copy, own] : [own, copy];
  const others = new Types(older.entries);
  const isUsed = (entry: TypeEntry): boolean => {
    const other = others.named(entry.kind, entry.name);
    return entry.isInUse || (other?.isInUse === true && isSameType(entry, other));
  };
  const entries = newer.entries.map((entry) => ({ ...entry, isInUse: isUsed(entry) }));
  const known = new Types(entries.filter((entry) => entry.isInUse));
  // A type in use is never removed, so the newer set was made by a directory that had lost it. An entry that
  // took its name or number since then, and is not in use, gives way.
  const forgotten = older.entries.filter(
    ({ kind, name, number, isInUse }) =>
      isInUse && known.named(kind, name) === undefined && known.numbered(kind, number) === undefined,
  );
  const back = new Types(forgotten);
  const kept = entries.filter(
    ({ kind, name, number, isInUse }) =>
      isInUse || (back.named(kind, name) === undefined && back.numbered(kind, number) === undefined),
  );
  return { ...newer, entries: [...kept, ...forgotten] };
}
