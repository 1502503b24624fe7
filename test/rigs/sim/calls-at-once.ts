import type { Result } from "../../../src/coordinator/kernel/refusal.ts";
import type { HistoryPoint, Told } from "../../../src/coordinator/kernel/messages.ts";
import type { Cell } from "./cell.ts";
import { opsOf, read } from "./made-leases.ts";
import type { LocalRow } from "./local.ts";
import type { Part } from "./part.ts";
import type { Random } from "./random.ts";
import type { Simulation } from "./simulation.ts";

/** Calls of each kind that a part gets while it is told of its loss. Their order is random. */
const CALLS = 2;

/** When the part is told, at the latest. Each message of this phase takes 1 ms on average. */
const MOST_DELAY_MS = 8;

interface Teller {
  told(): Told;
}

/** The newest point that each part may have told anybody. */
export type Points = ReadonlyMap<Part<object>, HistoryPoint | undefined>;

export const pointsOf = (parts: readonly Part<object>[]): Points =>
  new Map(parts.map((part) => [part, (part.current?.object as Teller | undefined)?.told().point]));

/**
 * Tells parts that went back how far they had got, while other calls wait for their transactions (M1). None
 * of the calls decides a lease that was made before, so that later checks still know what must be there.
 */
export async function callAtOnce(
  simulation: Simulation,
  restored: Iterable<Part<object>>,
  points: Points,
  newRowOn: (part: Part<object>) => LocalRow,
  random: Random,
): Promise<void> {
  const { operator, faults } = simulation;
  faults.slowsTurns = true;
  for (const part of restored) {
    const seen = points.get(part);
    if (seen === undefined || part === simulation.coordinator.directory) continue;
    const cell = simulation.cells.find(({ id }) => simulation.coordinator.ledger(id) === part);
    // A shard that was added for a growth has no names until the cut.
    if (cell === undefined && !simulation.coordinator.shards.some((shard) => shard === part)) continue;
    const calls = [
      operator
        .sleep(random.next() * MOST_DELAY_MS)
        .then(() => operator.reply(part, cell === undefined ? "ping" : "status", { seen })),
      ...Array.from({ length: CALLS }, () =>
        cell === undefined
          ? shardCalls(simulation, part, newRowOn)
          : ledgerCalls(simulation, part, cell, random),
      ).flat(),
    ];
    await simulation.runUntil(Promise.all(calls));
  }
  faults.slowsTurns = false;
}

/** Begins, and an inquiry about every hold. */
function shardCalls(
  simulation: Simulation,
  shard: Part<object>,
  newRowOn: (part: Part<object>) => LocalRow,
): Promise<unknown>[] {
  const { cells, coordinator, operator } = simulation;
  const keys = read<{ bucket_type: number; canonical: string }>(shard, "hold", "true").map(
    ({ bucket_type: type, canonical }) => ({ type, canonical }),
  );
  const begins = cells.map((cell) => {
    const row = newRowOn(shard);
    const { id, caller } = cell;
    const lease = row.canonical;
    return operator.reply(coordinator.ledger(id), "begin", {
      caller,
      lease,
      ops: opsOf(cell, row),
      allowMissing: false,
      payloadHash: lease,
    });
  });
  return [operator.reply(shard, "settle", { keys }), ...begins];
}

/** A rollback of a lease that nobody began, and a renewal. */
function ledgerCalls(
  { operator }: Simulation,
  ledger: Part<object>,
  { caller }: Cell,
  random: Random,
): Promise<Result<unknown> | undefined>[] {
  const granted = read<{ lease: string }>(ledger, "lease", "state = 'GRANTED'");
  const renewals = granted.map(({ lease }) =>
    operator.reply(ledger, "renew", { caller, lease, reason: "still at work" }),
  );
  const fence = { caller, lease: random.uuid(), outcome: "ROLLED_BACK" };
  return [operator.reply(ledger, "decide", fence), ...renewals];
}
