/**
 * Which rows a transaction has deleted, in a setting of the transaction. A savepoint that undoes a deletion
 * undoes its note too. If a policy hides rows, nothing else tells a deleted row from one that lives on.
 */
import { sql } from "drizzle-orm";
import type { Claimable } from "../claimable.ts";
import type { Orm } from "./orm.ts";

const noted = sql`current_setting('leasehold.deleted', true)`;
const one = sql`(VALUES (1)) AS one`;

export async function noteDeletions(orm: Orm, claimable: Claimable, ids: readonly unknown[]): Promise<void> {
  const notes = ids.map((id) => `${noteOf(claimable, id)}\n`).join("");
  // Answers the length, because the text may be long.
  const set = sql`length(set_config('leasehold.deleted', concat(${noted}, ${notes}::text), true))`;
  await orm.select({ length: set.as("note_length") }).from(one);
}

/** Answers those ids whose deletion is not noted. */
export async function withoutNote(orm: Orm, claimable: Claimable, ids: readonly string[]): Promise<string[]> {
  const [found] = await orm.select({ notes: sql<string | null>`${noted}`.as("notes") }).from(one);
  const notes = new Set(found?.notes?.split("\n"));
  return ids.filter((id) => !notes.has(noteOf(claimable, id)));
}

/** JSON, because an id may contain a line break. */
const noteOf = ({ source }: Claimable, id: unknown): string => JSON.stringify([source, String(id)]);
