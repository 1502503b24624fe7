import type { Refused } from "../src/users/client/answer.ts";
import { CellCrashed, type Cell } from "./cell.ts";
import { claimsOf, type Entry } from "./entry.ts";
import type { CellCrash } from "./cell-crash.ts";
import type { NameRequest } from "./names.ts";
import { pause, type Queue } from "./queue.ts";
import type { Witness } from "./witness.ts";

/** The number of requests that one cell has in flight at a time. */
export const LANES = 16;
const MOST_NAMES = 20;
/** The share of batches that the local database refuses. */
const LOCAL_FAILURES = 0.03;
/** A cell that wins or loses no name for this long is stuck. Waiting longer would only hide the fault. */
const STUCK_MS = 30_000;
/** The wait before a leased name is tried again, if the coordinator sends no Retry-After. */
const LEASED_PAUSE_MS = 500;

export interface Claiming {
  cell: Cell;
  queue: Queue<NameRequest>;
  witness: Witness;
  crash?: CellCrash;
  /** Returns true while the cell must not start another batch. */
  waits?: () => boolean;
  won: (wanted: NameRequest) => void;
  /** Called for each name that turned out to be taken. */
  lost: (wanted: NameRequest) => void;
}

/**
 * Claims names in batches of 1 to 20 until the queue is empty or the cell dies. Returns the names of the
 * batches whose outcome is unknown because the cell died.
 */
export async function claimAll(claiming: Claiming): Promise<NameRequest[]> {
  const { cell, queue } = claiming;
  const shared: Shared = { unanswered: [], progressAtMs: performance.now() };
  await Promise.all(Array.from({ length: LANES }, (_, lane) => runLane(claiming, lane, shared)));
  if (queue.length > 0 && claiming.crash?.isUnderway !== true) {
    cell.counts.problems.push(
      `cell ${cell.id}: ${queue.length} names were neither won nor lost, such as ${queue.all()[0]?.name}`,
    );
  }
  return shared.unanswered;
}

interface Shared {
  unanswered: NameRequest[];
  progressAtMs: number;
}

async function runLane(
  { cell, queue, witness, crash, waits, won, lost }: Claiming,
  lane: number,
  shared: Shared,
): Promise<void> {
  const checkpoint = crash?.checkpointOf(lane);
  while (performance.now() - shared.progressAtMs < STUCK_MS) {
    if (waits?.() === true) {
      await pause(5);
      continue;
    }
    const batch = queue.take(cell.random.between(1, MOST_NAMES));
    if (batch === undefined) return;
    if (batch.length === 0) {
      await pause(20);
      continue;
    }
    const entries = batch.map((wanted) => entryOf(cell, wanted));
    const spoiled = cell.random.chance(LOCAL_FAILURES);
    try {
      const outcome = await cell.transact(
        {
          batch: { creates: entries.flatMap(claimsOf) },
          apply: (database) => {
            for (const entry of entries) database.insert(entry);
            // Violates the primary key, as a bug in the application would, so the whole batch is rolled back.
            if (spoiled && entries[0] !== undefined) database.insert(entries[0]);
          },
          saved: () => {
            for (const { name } of batch) witness.recordTake(cell.id, name);
          },
        },
        checkpoint,
      );
      const before = queue.length;
      if (outcome.kind === "done") for (const wanted of batch) won(wanted);
      else if (outcome.kind === "refused")
        handleRefusal({ cell, queue, lost }, batch, entries, outcome.refusal);
      else queue.putBack(batch);
      if (queue.length < before + batch.length) shared.progressAtMs = performance.now();
    } catch (error) {
      if (!(error instanceof CellCrashed)) throw error;
      // The users got no answer. After the recovery, the database says whether their names were saved.
      shared.unanswered.push(...batch);
      return;
    }
  }
}

function entryOf(cell: Cell, { name, kind }: NameRequest): Entry {
  return {
    name,
    kind,
    routeId: cell.database.nextId(),
    userId: kind === "user" ? cell.database.nextId() : undefined,
  };
}

/**
 * Sorts the names of a refused batch. The refusal lists every conflict: taken names are lost, leased names
 * are tried again later, and all others are tried again at once.
 */
function handleRefusal(
  { cell, queue, lost }: Pick<Claiming, "cell" | "queue" | "lost">,
  batch: NameRequest[],
  entries: Entry[],
  refusal: Refused,
): void {
  const nameOf = entries.flatMap((entry, index) => claimsOf(entry).map(() => index));
  const taken = new Set<number>();
  const leased = new Set<number>();
  for (const { index, kind, owner } of refusal.conflicts) {
    const at = nameOf[index];
    if (at === undefined) continue;
    if (kind === "leased") leased.add(at);
    else taken.add(at);
    if (kind === "taken" && owner === "self")
      cell.counts.problems.push(`cell ${cell.id} asked for ${batch[at]?.name}, which it already owns`);
  }
  if (refusal.conflicts.length === 0 && refusal.code !== "RESOURCE_EXHAUSTED") {
    cell.counts.problems.push(
      `cell ${cell.id}: a begin was refused without a conflict: ${refusal.code}: ${refusal.detail}`,
    );
    return;
  }
  const everything = refusal.conflicts.length === 0;
  const wait = refusal.retryAfterMs ?? LEASED_PAUSE_MS;
  for (const [index, wanted] of batch.entries()) {
    if (taken.has(index)) lost(wanted);
    else queue.putBack([wanted], everything || leased.has(index) ? wait : 0);
  }
}
