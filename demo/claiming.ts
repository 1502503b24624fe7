import type { Refused } from "../src/client/answer.ts";
import { CellCrashed, type Cell } from "./cell.ts";
import { claimsOf, type Entry } from "./entry.ts";
import type { CellCrash } from "./cell-crash.ts";
import type { NameRequest } from "./names.ts";
import { pause, type Queue } from "./queue.ts";
import type { Witness } from "./witness.ts";

/** Requests that one cell has under way at a time. */
export const LANES = 16;
const MOST_NAMES = 20;
/** Of all batches: the local database refuses them. */
const LOCAL_FAILURES = 0.03;
/** Without any name won or lost: something is stuck, and waiting longer would only hide it. */
const STUCK_MS = 30_000;
/** For a name that another lease holds, when the coordinator does not say how long to wait. */
const LEASED_PAUSE_MS = 500;

export interface Claiming {
  cell: Cell;
  queue: Queue<NameRequest>;
  witness: Witness;
  crash?: CellCrash;
  /** Whether to hold back for now. */
  waits?: () => boolean;
  won: (wanted: NameRequest) => void;
  /** Somebody else has it for good. */
  lost: (wanted: NameRequest) => void;
}

/**
 * Takes names in batches of 1 to 20 until nothing is left to ask for, or the cell dies. Returns the names
 * that its death left without an answer.
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
            // Breaks the primary key, as a bug in the application would: all of the batch is undone.
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
      // Its users never got an answer. Whether their names were saved shows when the cell is back.
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
 * A refusal names every op that stands in the way: what is taken is given up, what is leased is tried later,
 * the rest is tried at once.
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
