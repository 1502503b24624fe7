import type { Limits } from "../../../src/common/limits.ts";
import { Random } from "./random.ts";

/**
 * What may happen to one message. `late`: it is carried out long after its sender gave up. `reset_*`: the
 * sender is told that the receiver's instance ended.
 */
export const messageFaults = [
  "lose",
  "lose_answer",
  "duplicate",
  "late",
  "overloaded",
  "reset_before",
  "reset_after",
  "unknown_format",
  "other_placement",
] as const;

/**
 * What may happen when a write is about to become durable. `fail`: the instance receives an error. `replace`:
 * the instance keeps running without its storage.
 */
export const diskFaults = [
  "crash_before",
  "crash_after",
  "replace_before",
  "replace_after",
  "fail_lost",
  "fail_durable",
] as const;

/** What may happen to a part (an object of the coordinator) at some moment. */
export const partFaults = [
  "crash",
  "replace",
  "lose_alarm",
  "alarm_unreadable",
  "clock_jump",
  "partition",
  "slow",
  "echo",
] as const;

/** What may happen to a statement of the projection in D1. */
export const recordFaults = [
  "record_down",
  "record_failed",
  "record_failed_after",
  "record_stalled",
] as const;

/**
 * What may happen to a transaction or a statement of a cell's database. `unknown`: the cell does not learn
 * whether it was carried out.
 */
export const localFaults = ["local_failed", "local_unknown_done", "local_unknown_lost"] as const;

/** Where a cell's process may die: between any two steps of its flow and of its reconciliation. */
const flowCrashes = [
  "before_begin",
  "after_begin",
  "before_local_commit",
  "after_local_commit",
  "after_commit",
  "after_remove",
  "before_rollback",
  "after_rollback",
  "before_reconcile_list",
  "before_reconcile_has",
  "before_reconcile_rows",
  "before_reconcile_get",
  "before_reconcile_commit",
  "before_reconcile_fence",
  "before_reconcile_rollback",
  "before_reconcile_remove",
  "any_moment",
] as const;

/** Where a cell's process may die in a verification. */
const verifyCrashes = [
  "before_verify_page",
  "before_verify_list",
  "before_verify_digests",
  "before_verify_lookup",
  "before_verify_repair",
  "before_verify_save",
  "before_verify_release",
] as const;

export const cellCrashes = [...flowCrashes, ...verifyCrashes] as const;

/** Crash points that few runs reach. A crash is more probable there. */
const rareCellCrashes = [
  "before_reconcile_get",
  "before_reconcile_fence",
  "before_reconcile_rollback",
  "before_reconcile_commit",
  "before_reconcile_remove",
] as const satisfies readonly (typeof cellCrashes)[number][];

/** How drift is planted: a claim changes without its row, or a row changes without its claim. */
export const driftKinds = [
  "claim lost",
  "orphaned claim",
  "claim moved",
  "row gone",
  "row new",
  "row moved",
  "row renamed",
  "name handed on",
] as const;

/** What cells, routers and operators do. */
export const activities = [
  "create",
  "destroy",
  "rename",
  "replace",
  "abandon",
  "lookup",
  "scan_leases",
  "scan_records",
  "fence",
  "replay",
  "reuse",
  "foreign",
  "steal",
  "redecide",
  "invalid",
  "freeze",
  "rotate_key",
  "reconcile",
  "cron",
  "verify",
  "plant_drift",
  "decide_late",
  "declare_types",
  "refresh_types",
  "claim_declared",
  "look_up_declared",
  "route",
  "route_own",
  "heal_route",
  "overtake_route",
  "restart_router",
  "set_router_clock",
  "cut_router",
] as const;

export type MessageFault = (typeof messageFaults)[number];
export type DiskFault = (typeof diskFaults)[number];
export type PartFault = (typeof partFaults)[number];
export type RecordFault = (typeof recordFaults)[number];
export type LocalFault = (typeof localFaults)[number];
export type CellCrash = (typeof cellCrashes)[number];
export type DriftKind = (typeof driftKinds)[number];
export type Activity = (typeof activities)[number];

/**
 * The settings of one run, drawn from its seed. Each run has its own mix of faults (swarm testing): if every
 * run had a little of every fault, no run would reach unusual states.
 */
export interface SimulationSettings {
  shards: number;
  cells: number;
  names: number;
  limits: Partial<Limits>;
  /** The slots of a shard's log. In some runs they are so few that holds are carried from row to row. */
  logRows?: number;
  messageMs: number;
  diskMs: number;
  /** Mean time of one access to D1. With the largest value a cron run takes longer than a minute. */
  recordMs: number;
  turnMs: number;
  /** Mean pause between two actions. */
  actionMs: number;
  /** How many drifts are planted before the faults begin. */
  firstDrifts: number;
  /** Mean time between two steps of a cell's process. */
  cellMs: number;
  messages: Record<MessageFault, number>;
  disks: Record<DiskFault, number>;
  records: Record<RecordFault, number>;
  locals: Record<LocalFault, number>;
  cellCrashes: Record<CellCrash, number>;
  activities: Record<Activity, number>;
  parts: Record<PartFault, number>;
  /** Undefined in a run without routers. */
  routers?: RouterSettings;
  /** Mean pause between two reports of a cell's status. Undefined in a run without reports. */
  statusMs?: number;
  /** Mean pause between two renewals of a cell. Undefined in a run without renewals. */
  renewalMs?: number;
  /** Mean pause between two pages of a consumer of the change feed. Undefined in a run without one. */
  changesMs?: number;
  /** Mean time that a begin may wait for a leased name. Undefined in a run whose begins don't wait. */
  queueMs?: number;
  /** Mean pause between two steps of scrubs. Undefined in a run without scrubs. */
  scrubMs?: number;
  /** Mean pause between two steps of a cell's transfers. Undefined in a run without transfers. */
  transfersMs?: number;
  /** Undefined in a run whose number of shards stays the same. */
  growth?: GrowthSettings;
  /** How many shards the last phase adds, in which sources go back. Undefined in a run without that phase. */
  sourceGoesBack?: number;
  /** True if operators begin leases of frozen cells. Undefined in a run in which none does. */
  bringsForward?: true;
  /** True if parts go back in time while transfers are open. Undefined in a run in which none does. */
  losesTransfers?: true;
  /** True if cells change the spelling of names that were never claimed. Undefined in other runs. */
  respells?: true;
  /** Undefined in a run whose parts all have the same code. */
  versions?: VersionSettings;
  /** How many times as many events as other runs the run has. */
  stepsFactor: number;
}

/** How a run gets newer code. */
export interface VersionSettings {
  /** The probability that an action is a deployment. */
  deployments: number;
  /** Whether the upgrade is ever finished. */
  finishes: boolean;
  /** The probability to finish it although something still has older code. */
  hurries: number;
}

/** How a run gets more shards. */
export interface GrowthSettings {
  /** The numbers of shards that it gets, one after the other. */
  to: readonly number[];
  /** Mean pause between two actions of the operator who grows it. */
  everyMs: number;
  /** The rows of a step. */
  rows: number;
  /** The probabilities of an action to abort, and to cut before all is copied. */
  aborts: number;
  hurries: number;
  /** True if the operator mostly makes steps of one shard, so that others learn of a cut much later. */
  isLazy: boolean;
}

/** The options of all routers of a run (see `LookupOptions`). */
export interface RouterSettings {
  count: number;
  maxAgeMs: number;
  negativeMaxAgeMs: number;
  reports: boolean;
  reportedMaxAgeMs: number;
  boundMs: number;
  graceMs: number;
  memoryBytes: number;
  timeoutMs: number;
  sharedCache: boolean;
}

const activityWeights: Record<Activity, number> = {
  create: 22,
  destroy: 10,
  rename: 8,
  replace: 16,
  abandon: 4,
  lookup: 14,
  scan_leases: 10,
  scan_records: 8,
  fence: 3,
  replay: 5,
  reuse: 2,
  foreign: 2,
  steal: 3,
  redecide: 4,
  invalid: 1,
  freeze: 4,
  rotate_key: 1,
  reconcile: 8,
  cron: 8,
  // Only runs with drift have these (see driftOf).
  verify: 0,
  plant_drift: 0,
  decide_late: 0,
  // Only runs with declared types have these (see typesOf).
  declare_types: 0,
  refresh_types: 0,
  claim_declared: 0,
  look_up_declared: 0,
  // Only runs with routers have these (see routersOf).
  route: 0,
  route_own: 0,
  heal_route: 0,
  overtake_route: 0,
  restart_router: 0,
  set_router_clock: 0,
  cut_router: 0,
};

export function drawSettings(seed: number): SimulationSettings {
  const random = Random.of(seed, "weather");
  // One run in ten has no faults, so that contention alone is tested. The name of a stream is part of what a
  // seed determines, so "weather" must stay.
  const faultFactor = random.chance(0.1) ? 0 : random.pick([0.3, 1, 1, 2]);
  const rates = <K extends string>(kinds: readonly K[], mean: number): Record<K, number> =>
    Object.fromEntries(
      kinds.map((kind) => [
        kind,
        random.chance(0.5) ? 0 : Math.min(0.3, random.exponential(mean) * faultFactor),
      ]),
    ) as Record<K, number>;
  const messages = rates(messageFaults, 0.02);
  // Some bugs need several rare message faults in a row, so in some runs two kinds are frequent.
  if (faultFactor > 0 && random.chance(0.4))
    for (const kind of random.some(["duplicate", "late", "lose_answer"] as const, 2))
      messages[kind] = 0.1 + 0.2 * random.next();
  const none = <K extends string>(kinds: readonly K[]): Record<K, number> =>
    Object.fromEntries(kinds.map((kind) => [kind, 0])) as Record<K, number>;
  const settings: SimulationSettings = {
    shards: random.pick([1, 2, 3, 4]),
    cells: random.pick([2, 2, 3]),
    names: random.pick([2, 3, 5, 8, 12]),
    limits: limitsOf(random),
    messageMs: random.pick([1, 5, 5, 20, 150]),
    diskMs: random.pick([0.5, 3, 3, 20]),
    recordMs: random.pick([0.5, 3, 20, 4_000]),
    turnMs: random.pick([0, 0.2, 2]),
    actionMs: random.pick([5, 30, 150, 800]),
    cellMs: random.pick([0.5, 5, 100]),
    firstDrifts: 0,
    stepsFactor: 1,
    messages,
    disks: rates(diskFaults, 0.006),
    records: rates(recordFaults, 0.2),
    locals: rates(localFaults, 0.03),
    cellCrashes: { ...rates(flowCrashes, 0.05), ...rates(rareCellCrashes, 1), ...none(verifyCrashes) },
    activities: {
      ...none(activities),
      ...Object.fromEntries(
        activities
          .filter((kind) => activityWeights[kind] > 0)
          .map((kind) => [
            kind,
            activityWeights[kind] * (kind === "create" || random.chance(0.7) ? 0.3 + random.next() : 0),
          ]),
      ),
    },
    parts: Object.fromEntries(
      partFaults.map((kind) => [
        kind,
        faultFactor === 0 || random.chance(0.5) ? 0 : (0.3 + random.next()) * (kind === "echo" ? 3 : 1),
      ]),
    ) as Record<PartFault, number>,
  };
  const space = { ...spaceOf(Random.of(seed, "space")), ...scansOf(Random.of(seed, "scans")) };
  const waits = waitsOf(Random.of(seed, "waits"));
  const withSpace = { ...settings, limits: { ...settings.limits, ...space, ...waits } };
  const withDrift = { ...withSpace, ...driftOf(Random.of(seed, "drifts"), withSpace, faultFactor) };
  const withTypes = { ...withDrift, ...typesOf(Random.of(seed, "types"), withDrift) };
  const withRouters = { ...withTypes, ...routersOf(Random.of(seed, "routers and caches"), withTypes) };
  const withStatuses = { ...withRouters, ...statusesOf(Random.of(seed, "statuses"), withRouters) };
  const withQueues = {
    ...withStatuses,
    ...renewalsOf(Random.of(seed, "renewals")),
    ...changesOf(Random.of(seed, "changes")),
    ...queuesOf(Random.of(seed, "queues"), withStatuses),
  };
  const withScrubs = { ...withQueues, ...scrubsOf(Random.of(seed, "some operators scrub"), withQueues) };
  const bringsForward = Random.of(seed, "bring forward").chance(0.25);
  const withForward = { ...withScrubs, ...(bringsForward ? { bringsForward } : {}) };
  const withTransfers = { ...withForward, ...transfersOf(Random.of(seed, "transfers"), withForward) };
  const withGrowth = { ...withTransfers, ...growthOf(Random.of(seed, "growth"), withTransfers) };
  const withSources = { ...withGrowth, ...sourcesOf(Random.of(seed, "sources go back"), withGrowth) };
  return {
    ...withSources,
    ...versionsOf(Random.of(seed, "versions"), withSources),
    ...(Random.of(seed, "names that nobody has").chance(0.2) ? { respells: true } : {}),
    ...logOf(Random.of(seed, "slots of the log"), withSources),
    ...lostTransfersOf(Random.of(seed, "pending moved names with losses"), withSources),
  };
}

/**
 * In some runs, parts have code of two versions. The other runs are the same as if none did. A ledger that
 * gets full would have no room for the tables of the newer version.
 */
const versionsOf = (
  random: Random,
  { limits, stepsFactor }: SimulationSettings,
): Partial<SimulationSettings> =>
  random.chance(0.15) && limits.ledgerBytes === undefined
    ? {
        versions: {
          deployments: random.pick([0.1, 0.3, 0.5]),
          finishes: random.chance(0.8),
          hurries: random.pick([0, 0.1, 0.5]),
        },
        stepsFactor: Math.max(2, stepsFactor),
      }
    : {};

/** A small log soon lacks what routers and a consumer of the change feed ask for, so few of them meet one. */
const logOf = (random: Random, { changesMs, routers }: SimulationSettings): Partial<SimulationSettings> => {
  const isRead = changesMs !== undefined || routers !== undefined;
  return random.chance(isRead ? 0.05 : 0.5) ? { logRows: random.pick([8, 12, 40]) } : {};
};

/** In the last phase of some runs, shards go back while their names move to new ones. */
const sourcesOf = (
  random: Random,
  { changesMs, transfersMs }: SimulationSettings,
): Partial<SimulationSettings> =>
  random.chance(0.1) && changesMs === undefined && transfersMs === undefined
    ? { sourceGoesBack: random.between(1, 3) }
    : {};

/** Some runs end with transfers that are open when parts go back. A full ledger would refuse them. */
const lostTransfersOf = (
  random: Random,
  { growth, limits }: SimulationSettings,
): Partial<SimulationSettings> =>
  random.chance(0.12) && growth === undefined && limits.ledgerBytes === undefined
    ? { losesTransfers: true }
    : {};

/** Some runs get more shards. The other runs are the same as if none did. */
function growthOf(
  random: Random,
  { shards, routers, names, actionMs, stepsFactor }: SimulationSettings,
): Partial<SimulationSettings> {
  if (!random.chance(0.3)) return {};
  const first = shards + random.pick([1, 1, 2, 3]);
  const to = random.chance(0.3) ? [first, first + random.pick([1, 2])] : [first];
  return {
    // Routers need few names, so that they are asked often.
    ...(routers === undefined
      ? { names: random.pick([3, 8, 12]), actionMs: random.pick([5, 30, 150]), stepsFactor: 2 }
      : { names, actionMs, stepsFactor }),
    growth: {
      to,
      everyMs: random.pick([20, 100, 500, 2_000]),
      rows: random.pick([1, 2, 5, 100]),
      aborts: random.pick([0, 0, 0.05, 0.2]),
      hurries: random.pick([0, 0, 0.3]),
      isLazy: random.chance(0.5),
    },
  };
}

/**
 * In some runs drift is planted all the time, and verifications, which take many steps, get the time they
 * need. These settings come from a stream of their own, so that runs without drift are the same as if there
 * were no verification.
 */
function driftOf(
  random: Random,
  { activities: weights, limits, cellCrashes: crashes }: SimulationSettings,
  faultFactor: number,
): Partial<SimulationSettings> {
  if (!random.chance(0.35)) return {};
  const rare = { lookup: 3, scan_leases: 2, scan_records: 2, fence: 1, replay: 1, invalid: 0, cron: 2 };
  const dies = verifyCrashes.map((kind) => [
    kind,
    random.chance(0.5) ? 0 : Math.min(0.3, random.exponential(0.1) * faultFactor),
  ]);
  return {
    shards: random.pick([1, 2]),
    names: random.pick([3, 5, 8]),
    actionMs: random.pick([50, 200, 800]),
    firstDrifts: random.between(2, 8),
    activities: { ...weights, ...rare, replace: 30, verify: 30, plant_drift: 15, decide_late: 4 },
    cellCrashes: { ...crashes, ...(Object.fromEntries(dies) as Partial<Record<CellCrash, number>>) },
    limits: {
      ...limits,
      ...(random.chance(0.25) ? { verificationSlots: 1 } : {}),
      // Short slots expire during a verification, so that two runs of one cell overlap.
      ...(random.chance(0.8) ? { verificationSlotMs: random.pick([1_000, 1_000, 5_000]) } : {}),
    },
  };
}

/**
 * In some runs operators change the set of types all the time. These settings also come from a stream of
 * their own.
 */
function typesOf(random: Random, { activities: weights }: SimulationSettings): Partial<SimulationSettings> {
  if (!random.chance(0.3)) return {};
  const types = { declare_types: 25, refresh_types: 15, claim_declared: 40, look_up_declared: 30 };
  return { actionMs: random.pick([5, 30, 150]), activities: { ...weights, ...types } };
}

/**
 * Some runs have routers. These settings come from a stream of their own, so that the other runs are the same
 * as if there were no routers.
 */
function routersOf(random: Random, { activities: weights }: SimulationSettings): Partial<SimulationSettings> {
  if (!random.chance(0.3)) return {};
  // With many lookups between two changes, entries live long enough to be wrong.
  const route = random.pick([60, 300, 1_000]);
  const routing = { route, route_own: 15, heal_route: 5, overtake_route: 5, restart_router: 0.5 };
  const broken = { cut_router: random.pick([0, 1, 3]), set_router_clock: random.pick([0, 0, 2]) };
  const rare = { lookup: 2, scan_leases: 1, scan_records: 1, replay: 1, invalid: 0, cron: 2 };
  const reports = random.chance(0.65);
  return {
    // Few shards, so that one lookup has several keys of a shard.
    shards: random.pick([1, 1, 2]),
    names: random.pick([2, 3, 4]),
    actionMs: random.pick([5, 20, 60]),
    stepsFactor: 3,
    activities: { ...weights, ...rare, destroy: 12, replace: 12, ...routing, ...broken },
    routers: {
      count: random.pick([1, 2, 3, 3]),
      maxAgeMs: reports ? random.pick([0, 100, 300]) : random.pick([0, 100, 500, 2_000, 5_000]),
      negativeMaxAgeMs: random.pick([0, 20, 200, 1_000]),
      reports,
      reportedMaxAgeMs: random.pick([3_000, 20_000, 300_000]),
      boundMs: random.pick([300, 1_000, 2_000]),
      graceMs: random.pick([0, 1_000, 10_000, 600_000]),
      memoryBytes: random.pick([1_500, 5_000, 1_000_000, 1_000_000]),
      timeoutMs: random.pick([200, 2_000]),
      sharedCache: random.chance(0.5),
    },
  };
}

/** In some runs cells report their status. The other runs are the same as if there were no reports. */
const statusesOf = (random: Random, { limits }: SimulationSettings): Partial<SimulationSettings> =>
  random.chance(0.1)
    ? { statusMs: random.pick([200, 1_000]), limits: { ...limits, statusEveryMs: random.pick([100, 500]) } }
    : {};

/** In some runs cells renew leases. The other runs are the same as if there were no renewals. */
const renewalsOf = (random: Random): Partial<SimulationSettings> =>
  random.chance(0.2) ? { renewalMs: random.pick([200, 1_000, 5_000]) } : {};

/** In some runs, a consumer follows the change feed. The other runs are the same as if there were none. */
const changesOf = (random: Random): Partial<SimulationSettings> =>
  random.chance(0.25) ? { changesMs: random.pick([50, 200, 2_000]) } : {};
/** In some runs begins wait for leased names. The other runs are the same as if none did. */
function queuesOf(random: Random, { limits, stepsFactor }: SimulationSettings): Partial<SimulationSettings> {
  if (!random.chance(0.25)) return {};
  const rooms = random.chance(0.2) ? { nameQueue: 1, shardQueue: 2, waitingBegins: 2 } : {};
  return {
    queueMs: random.pick([500, 2_000, 4_000]),
    stepsFactor: Math.max(2, stepsFactor),
    limits: { ...limits, ...rooms, offerMs: random.pick([50, 100, 300]) },
  };
}
/**
 * In some runs operators and the cron scrub. The other runs are the same as if there were no scrubs. Where
 * cells may have few leases, there is little to compare.
 */
const scrubsOf = (random: Random, { limits }: SimulationSettings): Partial<SimulationSettings> =>
  random.chance(0.15) && limits.outstandingLeases === undefined
    ? { scrubMs: random.pick([100, 500]), limits: { ...limits, scrubEveryS: random.pick([60, 600]) } }
    : { limits: { ...limits, scrubEveryS: 0 } };

/**
 * In some runs cells move names to each other. The other runs are the same as if there were no transfers. A
 * ledger that gets full would have no room for what it remembers of them.
 */
function transfersOf(
  random: Random,
  { limits, stepsFactor }: SimulationSettings,
): Partial<SimulationSettings> {
  if (!random.chance(0.25) || limits.ledgerBytes !== undefined) return {};
  return { transfersMs: random.pick([200, 1_000, 3_000]), stepsFactor: Math.max(2, stepsFactor) };
}

/** In some runs decisions are sent at once, and in some they wait long for a begin. */
const waitsOf = (random: Random): Pick<Limits, "decisionWaitMs"> => ({
  decisionWaitMs: random.pick([0, 5, 5, 5, 100]),
});

/** In some runs, the reads of shards take several messages. */
const scansOf = (random: Random): Partial<Limits> =>
  random.chance(0.5) ? { scanRows: random.pick([1, 1, 2, 6]) } : {};

/**
 * In some runs ledgers are so small that they get full, and in some runs fences or revoked keys are
 * forgotten. No message is as late as a fence lives.
 */
function spaceOf(random: Random): Partial<Limits> {
  return {
    ...(random.chance(0.5) ? { maxRevokedKeys: 1 } : {}),
    ...(random.chance(0.4) ? { lateBeginS: random.between(600, 900) } : {}),
    ...(random.chance(0.15)
      ? {
          ledgerBytes: random.pick([124_580, 126_580]),
          fences: 1,
          auditEntries: 8,
          reasonBytes: 4_096,
          lateBeginS: 600,
        }
      : {}),
  };
}

/** Mostly the default limits. Some runs have limits so low that they are reached. */
function limitsOf(random: Random): Partial<Limits> {
  return {
    ...(random.chance(0.15) ? { concurrentBegins: random.between(1, 3) } : {}),
    ...(random.chance(0.15) ? { outstandingLeases: random.between(2, 5) } : {}),
    ...(random.chance(0.15) ? { leaseBytes: 1_024, beginBytes: 1_024 } : {}),
    ...(random.chance(0.15) ? { fences: random.between(1, 3) } : {}),
    ...(random.chance(0.3) ? { fanOut: random.between(1, 3) } : {}),
    ...(random.chance(0.3) ? { messageOps: random.between(1, 4) } : {}),
    ...(random.chance(0.3)
      ? { beginDeadlineMs: random.pick([100, 1_000]), exchangeTimeoutMs: random.pick([60, 600]) }
      : {}),
    ...(random.chance(0.3) ? { inquiryTimeoutMs: random.pick([40, 300]) } : {}),
    ...(random.chance(0.3) ? { sweepAfterMs: random.pick([50, 500]) } : {}),
    ...(random.chance(0.3) ? { maxBackoffMs: random.pick([5_000, 20_000]) } : {}),
    ...(random.chance(0.3) ? { staleS: random.between(60, 1_200) } : {}),
    ...(random.chance(0.6)
      ? { outcomeRetentionS: random.between(600, 900), transferVerifiedS: random.between(1_500, 3_000) }
      : {}),
    ...(random.chance(0.3) ? { pullRows: random.between(1, 5) } : {}),
  };
}
