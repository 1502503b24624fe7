import { inParallel } from "../src/users/cell/in-parallel.ts";
import type { Cell, Change } from "./cell.ts";
import { LANES } from "./claiming.ts";
import { claimsOf, type Entry } from "./entry.ts";
import { keyOf, type NameRequest } from "./names.ts";
import { pause } from "./queue.ts";
import type { Witness } from "./witness.ts";

/** The shares of a cell's names that `changeNames` destroys and recases. */
const DESTROYED = 0.1;
const RECASED = 0.04;
const MOST_DESTROYS = 10;
const TRIES = 10;

/** Destroys some of the cell's names, renames some, and changes only the case of others. */
export async function changeNames(
  cell: Cell,
  reserve: readonly NameRequest[],
  witness: Witness,
): Promise<void> {
  const entries = cell.random.shuffled(cell.database.entries());
  const destroyed = entries.splice(0, Math.round(entries.length * DESTROYED));
  const renamed = entries.splice(0, reserve.length);
  const recased = entries
    .splice(0, Math.round(entries.length * RECASED))
    .filter(({ name }) => recase(name) !== name);

  const changes: Change[] = [];
  while (destroyed.length > 0)
    changes.push(destroys(cell, destroyed.splice(0, cell.random.between(1, MOST_DESTROYS)), witness));
  for (const [index, entry] of renamed.entries()) {
    const to = reserve[index];
    // A username must not contain a slash, so a user cannot be renamed to such a name.
    if (to !== undefined && (entry.kind !== "user" || !to.name.includes("/")))
      changes.push(renames(cell, entry, to.name, witness));
  }
  for (const entry of recased) changes.push(recases(cell, entry));
  await inParallel(cell.random.shuffled(changes), LANES, (change) => retryChange(cell, change));
}

/**
 * Retries a refused change. Its names are the cell's own or free, so only another lease can be in the way,
 * and only for a short time.
 */
async function retryChange(cell: Cell, change: Change): Promise<void> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const outcome = await cell.transact(change);
    if (outcome.kind === "done") return;
    if (outcome.kind === "refused") await pause(outcome.refusal.retryAfterMs ?? 100);
  }
  const what = JSON.stringify(change.batch);
  cell.counts.problems.push(
    `cell ${cell.id}: a change of its own names failed ${TRIES} times: ${what.slice(0, 200)}`,
  );
}

function destroys(cell: Cell, entries: Entry[], witness: Witness): Change {
  return {
    batch: { destroys: entries.flatMap(claimsOf) },
    apply: (database) => {
      for (const entry of entries) database.delete(entry);
    },
    saved: () => {
      for (const { name } of entries) witness.recordRelease(cell.id, name);
      cell.counts.destroyed += entries.length;
    },
  };
}

function renames(cell: Cell, entry: Entry, name: string, witness: Witness): Change {
  return {
    batch: { destroys: claimsOf(entry), creates: claimsOf({ ...entry, name }) },
    apply: (database) => database.rename(entry, name),
    saved: () => {
      witness.recordRelease(cell.id, entry.name);
      witness.recordTake(cell.id, name);
      cell.counts.renamed += 1;
    },
  };
}

/**
 * Changes only the spelling of a name. This is a replace, because one batch cannot destroy and create the
 * same name.
 */
function recases(cell: Cell, entry: Entry): Change {
  const name = recase(entry.name);
  return {
    batch: { replaces: claimsOf({ ...entry, name }) },
    apply: (database) => database.rename(entry, name),
    saved: () => {
      cell.counts.recased += 1;
    },
  };
}

/** `angular/core` → `Angular/Core` */
const recase = (name: string): string =>
  name.replaceAll(/(?<=^|[/._-])[a-z]/g, (letter) => letter.toUpperCase());

/**
 * Sends batches that the coordinator must refuse: destroys of the other cell's names, of names that nobody
 * has, and of the cell's own names with a wrong source. Returns the number of batches.
 */
export async function provokeRefusals(
  cell: Cell,
  foreign: readonly Entry[],
  absent: readonly NameRequest[],
): Promise<number> {
  const own = cell.database.entries().slice(0, absent.length);
  const attempts: { kind: string; batch: Change["batch"] }[] = [
    ...foreign.map((entry) => ({ kind: "not_owner", batch: { destroys: claimsOf(entry) } })),
    ...absent.map(({ name }) => ({
      kind: "absent",
      batch: { destroys: [{ bucket: { type: "ROUTES" as const, value: `${keyOf(name)}-nobody` } }] },
    })),
    ...own.map((entry) => ({
      kind: "mismatch",
      batch: { destroys: claimsOf({ ...entry, routeId: entry.routeId + 1_000_000 }).slice(0, 1) },
    })),
  ];
  await inParallel(attempts, LANES, async ({ kind, batch }) => {
    const apply = (): void => {
      throw new Error("the batch was granted, although it had to be refused");
    };
    const outcome = await cell.transact({ batch, apply });
    const refused =
      outcome.kind === "refused" &&
      outcome.refusal.conflicts.length > 0 &&
      outcome.refusal.conflicts.every((conflict) => conflict.kind === kind);
    if (!refused)
      cell.counts.problems.push(
        `cell ${cell.id}: expected a ${kind} refusal, got ${outcome.kind}: ${JSON.stringify(batch)}`,
      );
  });
  return attempts.length;
}
