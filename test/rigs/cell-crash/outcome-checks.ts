import { asc } from "drizzle-orm";
import type { OpenCell } from "./open-cell.ts";
import type { Line } from "./record.ts";
import { journal, users } from "./tables.ts";

type Entry = typeof journal.$inferSelect;

/** The journals of all cells. */
export const readJournals = async (cells: readonly OpenCell[]): Promise<Entry[]> =>
  (await Promise.all(cells.map(({ orm }) => orm.select().from(journal)))).flat();

/** Operations whose reported outcome differs from what was saved. */
export function findBrokenPromises(lines: readonly Line[], entries: readonly Entry[]): string[] {
  const saved = new Set(entries.map(({ op }) => op));
  return lines.flatMap((line) => {
    if (line.line !== "reported") return [];
    if (line.outcome === "saved" && !saved.has(line.op))
      return [`${line.op} was reported as saved, but it is not`];
    if (line.outcome === "failed" && saved.has(line.op))
      return [`${line.op} was reported as failed (${line.code}), but it is saved`];
    return [];
  });
}

/**
 * Differences between a cell's rows and its journal. A saved change must be in the rows, unless a later
 * change replaced it.
 */
export async function findLostChanges({ orm }: OpenCell): Promise<string[]> {
  const expected = new Map<string, string | null>();
  for (const { kind, userId, username } of await orm.select().from(journal).orderBy(asc(journal.seq))) {
    if (kind === "delete") expected.delete(userId);
    else expected.set(userId, username);
  }
  const rows = new Map((await orm.select().from(users)).map(({ id, username }) => [id, username]));
  return [
    ...[...expected].flatMap(([id, username]) =>
      rows.get(id) === username ? [] : [`user ${id} must be ${username}, but is ${rows.get(id)}`],
    ),
    ...[...rows.keys()]
      .filter((id) => !expected.has(id))
      .map((id) => `user ${id} exists, but no change created it`),
  ];
}

/** Names that have two owners, in any cells and spellings. */
export async function findDoubleNames(cells: readonly OpenCell[]): Promise<string[]> {
  const rows = (await Promise.all(cells.map(({ orm }) => orm.select().from(users)))).flat();
  const names = rows.flatMap(({ username, email }) =>
    [username, ...(email === null ? [] : [email])].map((name) => name.toLowerCase()),
  );
  return [...new Set(names.filter((name, at) => names.indexOf(name) !== at))].map(
    (name) => `${name} has two owners`,
  );
}
