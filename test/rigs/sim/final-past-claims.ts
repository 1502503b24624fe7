import type {
  ErasedPeriods,
  Period,
  PeriodPage,
} from "../../../src/coordinator/capabilities/past-claims/messages.ts";
import { operator } from "../../support/ops.ts";
import type { PastClaimRow } from "../../../src/coordinator/capabilities/past-claims/shard.ts";
import type { Name } from "./local.ts";
import type { Part } from "./part.ts";
import type { Simulation } from "./simulation.ts";

/** Longer than a shard keeps a claim that has ended, with the length of a segment. */
const RETENTION_FACTOR = 1.1;

/** More events than the objects have between two pings. */
const STEPS = 10_000;

/** Longer than what an alarm writes takes to be durable. */
const DURABLE_MS = 2_000;

/**
 * Reads the periods of every name, erases those of one, and lets the rest become too old (K2 to K5). It comes
 * last, because it takes months.
 */
export async function checkPastClaims(simulation: Simulation): Promise<void> {
  const { judge, coordinator, names, scheduler } = simulation;
  judge.mayForget = true;
  for (const name of names) await simulation.runUntil(checkPeriods(simulation, name));
  const longest = names.toSorted((a, b) => pastOf(simulation, b).length - pastOf(simulation, a).length)[0];
  if (longest !== undefined) await simulation.runUntil(checkErased(simulation, longest));
  const isIdle = scheduler.nowMs;
  scheduler.jump(coordinator.limits.nameHistoryS * 1_000 * RETENTION_FACTOR);
  for (let round = 0; round < 3; round += 1) {
    for (const shard of coordinator.shards.keys())
      await simulation.runUntil(simulation.operator.toShard(shard, "ping", {}));
    await simulation.pass(coordinator.limits.sweepAfterMs + DURABLE_MS, STEPS);
  }
  for (const part of coordinator.shards) {
    // A shard that is lost does nothing until an operator has reconciled it (H4).
    if (isLost(part)) continue;
    const left = rowsOf(part).find(({ until_ms: untilMs }) => untilMs < isIdle);
    judge.check(
      "I35",
      left === undefined,
      () => `${part.name} still has a claim that ended long ago: ${JSON.stringify(left)}`,
    );
  }
  judge.see("K3");
}

const isLost = ({ disk }: Part<object>): boolean =>
  disk
    .readDurable<{ value: string }>("SELECT value FROM meta WHERE name = 'history_lost'")
    .some(({ value }) => !(JSON.parse(value) as { isReconciling: boolean }).isReconciling);

const rowsOf = ({ disk }: Part<object>): PastClaimRow[] =>
  disk.readDurable<PastClaimRow>("SELECT * FROM past_claim ORDER BY epoch DESC");

const pastOf = (simulation: Simulation, { type, canonical }: Name): PastClaimRow[] =>
  rowsOf(simulation.coordinator.shard(simulation.shardOf({ type, canonical }))).filter(
    (row) => row.bucket_type === type && row.canonical === canonical,
  );

/** The claim on a name, if it has one, and its past claims. The shard may have gone back in time. */
function rowsAbout(simulation: Simulation, name: Name): Pick<Period, "epoch" | "cell">[] {
  const { disk } = simulation.coordinator.shard(simulation.shardOf(name));
  const claims = disk
    .readDurable<Pick<PastClaimRow, "bucket_type" | "canonical" | "epoch" | "cell">>(
      "SELECT bucket_type, canonical, epoch, cell FROM claim",
    )
    .filter((row) => row.bucket_type === name.type && row.canonical === name.canonical);
  return [...claims, ...pastOf(simulation, name)];
}

const shown = (periods: readonly Pick<Period, "epoch" | "cell">[]): string =>
  periods.map(({ epoch, cell }) => `${cell}/${epoch}`).join();

/** Reads the periods of a name in pages of two, and compares them with the rows. */
async function checkPeriods(simulation: Simulation, name: Name): Promise<void> {
  const { judge, operator: api, coordinator } = simulation;
  const shard = simulation.shardOf(name);
  const part = coordinator.shard(shard);
  const periods: Period[] = [];
  const expected = rowsAbout(simulation, name);
  let page: PeriodPage | undefined;
  do {
    const answer = await api.toShard<PeriodPage>(shard, "listPeriods", {
      key: { type: name.type, canonical: name.canonical },
      before: page?.next ?? null,
      atMs: null,
      limit: 2,
    });
    if (answer.kind !== "ok") return;
    page = answer.value;
    periods.push(...page.periods);
  } while (page.next !== null);
  // A decision may have reached the shard between two pages, or after the last one.
  if (shown(rowsAbout(simulation, name)) !== shown(expected)) return;
  judge.check(
    "I35",
    shown(periods) === shown(expected),
    () =>
      `the periods of ${name.canonical} are ${JSON.stringify(periods)}, but its rows are ` +
      JSON.stringify(expected),
  );
  judge.see("K2");
  if (part.disk.readDurable("SELECT 1 FROM meta WHERE name = 'history_accepted'").length === 0) return;
  const { completeSinceMs } = page;
  judge.check(
    "I35",
    completeSinceMs !== null,
    () => `${part.name} has accepted a loss, and still answers that it has every claim that ever ended`,
  );
  judge.see("K4");
}

async function checkErased(simulation: Simulation, name: Name): Promise<void> {
  const { judge, operator: api } = simulation;
  const shard = simulation.shardOf(name);
  const part = simulation.coordinator.shard(shard);
  const entries = judge.auditEntriesOf(part);
  const before = pastOf(simulation, name).length;
  const answer = await api.toShard<ErasedPeriods>(shard, "erasePeriods", {
    key: { type: name.type, canonical: name.canonical },
    operator,
    dryRun: false,
  });
  if (answer.kind !== "ok") return;
  const { erased, changes, hasMore } = answer.value;
  const left = pastOf(simulation, name).length;
  judge.check(
    "I35",
    before - left === erased && hasMore === left > 0,
    () => `of ${before} past claims of ${name.canonical}, ${left} are left after ${erased} were erased`,
  );
  const added = judge.auditEntriesOf(part) - entries;
  judge.check(
    "I33",
    added === (erased > 0 || changes > 0 ? 1 : 0),
    () =>
      `an operator erased ${erased} past claims and ${changes} changes, ` +
      `and ${part.name} has ${added} entries about that`,
  );
  judge.see("K5");
}
