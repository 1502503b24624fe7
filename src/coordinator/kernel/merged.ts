/** The intersection of a union's members. */
export type All<T> = (T extends unknown ? (one: T) => void : never) extends (one: infer Each) => void
  ? Each
  : never;

/** Merges tables, and refuses two entries with one name. */
export function merged<T extends object>(what: string, tables: readonly T[]): All<T> {
  const all: Record<string, unknown> = {};
  for (const [name, entry] of tables.flatMap((table) => Object.entries(table))) {
    if (Object.hasOwn(all, name)) throw new TypeError(`there are two ${what} with the name ${name}`);
    all[name] = entry;
  }
  return all as All<T>;
}
