import { noAuditTrail, type AuditTrail } from "../audit-trail.ts";
import { stepsOf, type Halves } from "../half.ts";
import { GroupCommit } from "../group-commit.ts";
import type { Limits } from "../../../common/limits.ts";
import { Tables } from "../tables.ts";
import { Histogram } from "../metrics/histogram.ts";
import { ShardCounters } from "../metrics/shard-counters.ts";
import type { Ports } from "../ports.ts";
import { type LedgerCalls, type Peers } from "../methods.ts";
import { shardsOf } from "../placement.ts";
import { PlacementGuard } from "../placement-guard.ts";
import { Instances } from "../instances.ts";
import { Inquirer } from "./inquirer.ts";
import { ShardLog } from "./shard-log.ts";
import { ReadQueue, type ClaimReads } from "./read-queue.ts";
import { ShardReader } from "./reader.ts";
import { shardSchema } from "./schema.ts";
import { ShardStore } from "./store.ts";
import { Sweeper } from "./sweeper.ts";
import { noShardHooks } from "./hooks.ts";
import { Slot } from "../slot.ts";
import { alwaysWorks, type Standing } from "../standing.ts";
import { noQueues, type Queues } from "./queues.ts";
import { allHere, type Residence } from "./residence.ts";
import { noWideHolds, type WideHolds } from "./wide-holds.ts";

/**
 * A shard works for all cells, so its transactions are short: 1,000 rows take about 25 ms. A lease with more
 * ops is carried out in one transaction all the same (B4).
 */
const MAX_TRANSACTION_ROWS = 1_000;

/** Reads the log of a shard. Only the simulator sets another one. */
type LogOf = (ports: Ports, limits: Limits) => ShardLog;

export const readLog: LogOf = ({ sql, clock }, limits) => new ShardLog(sql, clock, limits);

export type ShardPart = ReturnType<typeof makePart>;

/** Makes the parts in their order. One that needs a later one does not compile, except in a closure. */
export function makePart(
  index: number,
  ports: Ports,
  limits: Limits,
  peers: Peers,
  logOf: LogOf,
  halves: Halves<never, unknown>,
) {
  const tables = new Tables(ports, shardSchema, stepsOf(halves));
  const log = logOf(ports, limits);
  const hooks = noShardHooks();
  const touch = (cell: string | null): void => {
    for (const touched of hooks.touched) touched(cell);
  };
  const startedAtMs = ports.clock.now();
  const counters = new ShardCounters();
  const exchangeDurations = new Histogram(ports.clock);
  const isFull = (): boolean => ports.sql.sizeBytes() > limits.shardBytes;
  const audit = new Slot<AuditTrail>(noAuditTrail);
  const queues = new Slot<Queues>(noQueues);
  const residence = new Slot<Residence>(allHere(ports.sql));
  const store = new ShardStore(ports.sql, log, hooks, touch);
  const reads = new ReadQueue(ports.clock, limits);
  const wide = new Slot<WideHolds>(noWideHolds(reads));
  const claimReads: ClaimReads = { run: (cell, read) => wide.current.reads.run(cell, read) };
  const stored = {
    index,
    ports,
    limits,
    peers,
    store,
    hooks,
    audit,
    touch,
    wide,
    log,
  };
  const instances = new Instances(ports, log.position);
  const standing = new Slot<Standing>(alwaysWorks);
  const placementGuard = new PlacementGuard(ports, limits, peers, {
    firstUse: () => sweeper.start(),
    change: (confirmed, adopt) =>
      // There may be no such shard.
      index < shardsOf(confirmed.placement) ? residence.current.changePlacement(confirmed, adopt) : undefined,
  });
  /** Writes the log row of a transaction that changed something. */
  const logTransaction = (): void => {
    const hasChanged = [store.takeChanged(), ...hooks.takeChanged.map((take) => take())].includes(true);
    if (!hasChanged && !log.hasJumped && !log.held.hasChanged && log.notes.current.isEmpty)
      return log.discard();
    instances.raise();
    log.append();
  };
  const durable = (): void => {
    instances.madeDurable(log.position);
    queues.current.committed();
  };
  const commits = new GroupCommit(ports, standing, logTransaction, durable, MAX_TRANSACTION_ROWS);
  const working = {
    ...stored,
    queues,
    residence,
    reads,
    claimReads,
    instances,
    standing,
    placementGuard,
    commits,
  };
  const ledger = (cell: string): LedgerCalls => {
    counters.add("inquiries");
    return peers.ledger(cell);
  };
  const inquirer = new Inquirer({ ...working, peers: { ledger } });
  const part = { ...working, inquirer };
  const reader = new ShardReader(part);
  const sweeper: Sweeper = new Sweeper(part);
  const counts = { startedAtMs, counters, exchangeDurations };
  return {
    ...part,
    hooks,
    capabilities: {},
    tables,
    ...counts,
    isFull,
    reader,
    sweeper,
  };
}
