import type { CellState, CellStatus } from "../../../src/coordinator/kernel/messages.ts";
import { toApiRecord } from "../../../src/coordinator/api/answers.ts";
import { bucketType, shipped } from "../../support/types.ts";
import type { Api } from "./api.ts";
import { isRefused } from "./api.ts";
import { FENCE_MS, type Cell, type UpdateRequest } from "./cell.ts";
import { claimDeclared, declareTypes, lookUpDeclared, refreshTypes } from "./declared-types.ts";
import { plantDrift } from "./drift.ts";
import { bucketTypeName, nameKey, type Name } from "./local.ts";
import { drawNewRows, drawOwnRows, drawRow } from "./draw-rows.ts";
import type { Random } from "./random.ts";
import type { Activity } from "./simulation-settings.ts";
import {
  cutRouter,
  heal,
  overtake,
  restartRouter,
  route,
  routeOwn,
  setRouterClock,
} from "./route-activities.ts";
import { scanRecords } from "./scan-records.ts";
import type { Simulation } from "./simulation.ts";

/** The names that all cells compete for. */
export function namesOf(count: number): Name[] {
  return Array.from({ length: count }, (_, index) => ({
    type: bucketType(index % 3 === 2 ? "USERNAMES" : "ROUTES"),
    canonical: `name-${index}`,
  }));
}

const EMPTY: UpdateRequest = {
  creates: [],
  destroys: [],
  replaces: [],
  allowMissing: false,
  isAbandoned: false,
};

/**
 * What cells, routers, operators and the platform's cron do. Each activity ends on its own, also after a
 * fault.
 */
export const activities: Record<
  Activity,
  (simulation: Simulation, cell: Cell, random: Random) => Promise<void>
> = {
  create: (simulation, cell, random) => {
    const rows = drawNewRows(simulation, cell, random, 3);
    // A cell does not know whether a name that it respells was ever claimed (B12).
    const replaces = simulation.respells ? rows.filter(({ value, canonical }) => value !== canonical) : [];
    const creates = rows.filter((row) => !replaces.includes(row));
    return change(cell, { ...EMPTY, creates, replaces, allowMissing: replaces.length > 0 });
  },
  destroy: (_, cell, random) =>
    change(cell, { ...EMPTY, destroys: drawOwnRows(cell, random, 2), allowMissing: random.chance(0.3) }),
  rename: (simulation, cell, random) =>
    change(
      cell,
      { ...EMPTY, creates: drawNewRows(simulation, cell, random, 2), destroys: drawOwnRows(cell, random, 1) },
      (request) => request.destroys.length > 0,
    ),
  replace: (_, cell, random) =>
    change(cell, {
      ...EMPTY,
      replaces: drawOwnRows(cell, random, 2).map((row) => drawRow(row, cell, random)),
    }),
  abandon: (simulation, cell, random) =>
    change(cell, { ...EMPTY, creates: drawNewRows(simulation, cell, random, 2), isAbandoned: true }),
  lookup,
  scan_leases: scanLeases,
  scan_records: scanRecords,
  fence,
  replay,
  reuse,
  foreign,
  steal,
  redecide,
  invalid,
  freeze,
  rotate_key: rotateKey,
  reconcile: (_, cell, random) => reconcile(cell, random),
  cron: (simulation, _, random) => crons(simulation, random),
  verify: (_, cell, random) => verification(cell, random),
  plant_drift: plantDrift,
  decide_late: decideLate,
  declare_types: declareTypes,
  refresh_types: refreshTypes,
  claim_declared: claimDeclared,
  look_up_declared: lookUpDeclared,
  route: (simulation, _, random) => route(simulation, random),
  route_own: (simulation, _, random) => routeOwn(simulation, random),
  heal_route: (simulation, _, random) => heal(simulation, random),
  overtake_route: overtake,
  restart_router: (simulation, _, random) => restartRouter(simulation, random),
  set_router_clock: (simulation, _, random) => setRouterClock(simulation, random),
  cut_router: (simulation, _, random) => cutRouter(simulation, random),
};

/**
 * Small pages and ranges, so that there are many. Short times, so that changes stop being recent within a
 * run.
 */
async function verification(cell: Cell, random: Random): Promise<void> {
  const sizes = {
    pageRows: random.pick([1, 2, 3, 8]),
    rangeRows: random.between(1, 3),
    digestRanges: random.between(1, 4),
    leaseOps: random.between(1, 4),
  };
  await cell.verify({
    ...sizes,
    apply: random.chance(0.9),
    digests: random.chance(0.6),
    recentMs: random.pick([0, 0, 1_000, 10_000, 60_000]),
    startOver: random.chance(0.1),
    ...(random.chance(0.3) ? { maxMs: 0 } : {}),
    ...(random.chance(0.25) ? { maxChanges: random.between(0, 2) } : {}),
  });
}

/** Runs the cron, sometimes twice at the same time. */
async function crons(simulation: Simulation, random: Random): Promise<void> {
  const both = [simulation.cron()];
  if (random.chance(0.5))
    both.push(simulation.operator.sleep(random.exponential(2_000)).then(() => simulation.cron()));
  await Promise.all(both);
}

function reconcile(cell: Cell, random: Random): Promise<void> {
  const orphanMs = random.pick([5_000, 60_000, 3_600_000]);
  // The shortest time treats a lease as stale while its local transaction is still open. Then the fence must
  // stop the transaction.
  const staleMs = random.pick([1_000, 10_000, 600_000]);
  const sizes = { pageSize: random.between(1, 10), concurrency: random.between(1, 8) };
  return cell.reconcile({ full: random.chance(0.4), orphanMs, staleMs, fenceMs: FENCE_MS, ...sizes });
}

async function change(
  cell: Cell,
  request: UpdateRequest,
  isPossible = (given: UpdateRequest): boolean =>
    given.creates.length + given.destroys.length + given.replaces.length > 0,
) {
  if (isPossible(request)) await cell.update(request);
}

async function lookup(simulation: Simulation, _: Cell, random: Random): Promise<void> {
  const byShard = Map.groupBy(random.some(simulation.names, 3), (name) => simulation.shardOf(name));
  for (const [shard, names] of byShard) {
    const answer = await simulation.router.lookup(shard, names);
    if (answer.kind !== "ok") return;
    simulation.judge.see("R2");
    for (const found of answer.value.found) {
      simulation.judge.see(`looked up ${found.kind === "record" ? found.record.status : found.kind}`);
      if (found.kind === "record" && found.record.status === "LEASE_CREATING")
        simulation.judge.showed(found.record);
    }
  }
}

/** A scan must fail or be complete: a lease that was granted throughout the scan must be in it. */
async function scanLeases(simulation: Simulation, cell: Cell, random: Random): Promise<void> {
  const before = simulation.judge.grantedOf(cell.id);
  const seen = new Set<string>();
  const limit = random.chance(0.8) ? 1 : 2;
  for (let afterPosition = 0; ;) {
    const answer = await cell.api.list(cell.id, cell.caller, { createdAfterMs: 0, afterPosition, limit });
    if (answer.kind !== "ok") return;
    for (const { lease } of answer.value.leases) seen.add(lease);
    if (answer.value.nextPosition === 0) break;
    afterPosition = answer.value.nextPosition;
  }
  simulation.judge.see("R1");
  const missed = before.find(
    (lease) => simulation.judge.factOf(cell.id, lease)?.state === "GRANTED" && !seen.has(lease),
  );
  simulation.judge.check(
    "I12",
    missed === undefined,
    () => `lease ${missed} of cell ${cell.id} was granted throughout the scan, and no page has it`,
  );
}

/** Rolls back a lease that was never begun. A later begin with its UUID must be refused (C7). */
async function fence(simulation: Simulation, cell: Cell, random: Random): Promise<void> {
  const creates = drawNewRows(simulation, cell, random, 1);
  if (creates.length === 0) return;
  const lease = random.uuid();
  const fenced = await cell.api.decide(cell.id, cell.caller, lease, "ROLLED_BACK");
  if (fenced.kind !== "ok") return;
  const begun = await cell.api.begin(cell.id, cell.caller, {
    lease,
    ops: cell.opsOf({ ...EMPTY, creates }),
    allowMissing: false,
  });
  const wasPruned = simulation.judge.wasPruned(cell.id, lease);
  simulation.judge.check(
    "I10",
    begun.kind !== "ok" || wasPruned,
    () => `lease ${lease} of cell ${cell.id} was fenced, but its begin succeeded`,
  );
  simulation.judge.see("C7");
}

/** Repeats a begin with the same batch and UUID (B2). */
async function replay(simulation: Simulation, cell: Cell, random: Random): Promise<void> {
  if (cell.recent.length === 0) return;
  const ended = random.pick(cell.recent);
  const answer = await cell.api.begin(cell.id, cell.caller, ended);
  if (answer.kind === "unknown" || isRefused(answer, "KEY_REVOKED")) return;
  const isRight =
    ended.outcome === "COMMITTED"
      ? answer.kind === "ok" && answer.value.lease.state === "COMMITTED"
      : isRefused(answer, "LEASE_ROLLED_BACK");
  simulation.judge.check(
    "I10",
    isRight,
    () => `lease ${ended.lease} ended ${ended.outcome}, but its begin was answered ${JSON.stringify(answer)}`,
  );
  simulation.judge.see("B2");
}

/** Begins another batch with a used UUID. */
async function reuse(simulation: Simulation, cell: Cell, random: Random): Promise<void> {
  const creates = drawNewRows(simulation, cell, random, 1);
  if (cell.recent.length === 0 || creates.length === 0) return;
  const { lease } = random.pick(cell.recent);
  const answer = await cell.api.begin(cell.id, cell.caller, {
    lease,
    ops: cell.opsOf({ ...EMPTY, creates }),
    allowMissing: false,
  });
  simulation.judge.check(
    "I10",
    answer.kind !== "ok",
    () => `lease ${lease} of cell ${cell.id} was already used for another batch`,
  );
}

/** Uses the UUID of another cell's lease in the cell's own path. No such lease exists there. */
async function foreign(simulation: Simulation, cell: Cell, random: Random): Promise<void> {
  const other = random.pick(simulation.cells.filter(({ id }) => id !== cell.id));
  const leases = [...simulation.judge.grantedOf(other.id), ...other.ended.map(({ lease }) => lease)];
  if (leases.length === 0) return;
  const lease = random.pick(leases);
  const answer = random.chance(0.5)
    ? await cell.api.get(cell.id, cell.caller, lease)
    : await cell.api.decide(cell.id, cell.caller, lease, "COMMITTED");
  // The cell may have used the same UUID itself.
  const isOwn =
    simulation.judge.factOf(cell.id, lease) !== undefined || simulation.judge.wasPruned(cell.id, lease);
  simulation.judge.check(
    "I14",
    answer.kind !== "ok" || isOwn,
    () => `cell ${cell.id} can access lease ${lease} of cell ${other.id}`,
  );
}

/**
 * Destroys or replaces names of another cell, which must be refused in every state. Sometimes it uses a UUID
 * of the other cell, which is a lease of its own.
 */
async function steal(simulation: Simulation, cell: Cell, random: Random): Promise<void> {
  const others = simulation.cells.filter(({ id }) => id !== cell.id);
  const other = random.pick(others);
  const rows = drawOwnRows(other, random, 2).filter(
    (row) => !cell.local.rows.has(nameKey(row)) && !cell.isLocked(row),
  );
  if (rows.length === 0) return;
  const isDestroy = random.chance(0.5);
  const ops = cell.opsOf({
    ...EMPTY,
    ...(isDestroy ? { destroys: rows } : { replaces: rows.map((row) => drawRow(row, cell, random)) }),
  });
  const used = [...simulation.judge.grantedOf(other.id), ...other.ended.map(({ lease }) => lease)];
  const lease = random.chance(0.5) && used.length > 0 ? random.pick(used) : random.uuid();
  const answer = await cell.api.begin(cell.id, cell.caller, { lease, ops, allowMissing: random.chance(0.3) });
  // The begin may be granted if the name's owner changed or the claim is gone.
  if (answer.kind !== "refused") await cell.api.decide(cell.id, cell.caller, lease, "ROLLED_BACK");
}

/**
 * Changes a claim by the epoch that a lookup returned. The change must apply to that version of the claim or
 * to nothing (B10). It is rolled back, because no row changes.
 */
async function decideLate(simulation: Simulation, cell: Cell, random: Random): Promise<void> {
  const [row] = drawOwnRows(cell, random, 1);
  if (row === undefined) return;
  const found = await cell.api.lookup(simulation.shardOf(row), [
    { type: row.type, canonical: row.canonical },
  ]);
  const read = found.kind === "ok" ? found.value.found[0] : undefined;
  if (read?.kind !== "record" || read.record.cell !== cell.id) return;
  await cell.api.sleep(random.exponential(random.pick([50, 2_000])));
  const { epoch, source, subject } = toApiRecord(shipped, read.record);
  const bucket = { type: bucketTypeName(row.type), value: row.value };
  const ops = cell.placed(
    random.chance(0.5)
      ? { destroys: [{ bucket, epoch }] }
      : { replaces: [{ bucket, subject, source, epoch }] },
  );
  const lease = random.uuid();
  const answer = await cell.api.begin(cell.id, cell.caller, { lease, ops, allowMissing: false });
  // The last digit is random, so operators decide some of these leases.
  const isByOperator = Number.parseInt(lease.slice(-1), 16) < 6;
  const [caller, reason] = isByOperator ? ([OPERATOR, "a simulated reason"] as const) : [cell.caller];
  if (answer.kind !== "refused") await cell.api.decide(cell.id, caller, lease, "ROLLED_BACK", reason);
  else if (answer.refusal.conflicts?.[0]?.kind === "mismatch") simulation.judge.see("B10");
}

const OPERATOR = { role: "operator", keyId: "operator", expiresAtMs: Number.MAX_SAFE_INTEGER } as const;

/** Repeats a decision, or sends the opposite one (C4). */
async function redecide(simulation: Simulation, cell: Cell, random: Random): Promise<void> {
  if (cell.recent.length === 0) return;
  const { lease, outcome } = random.pick(cell.recent);
  const other = outcome === "COMMITTED" ? "ROLLED_BACK" : "COMMITTED";
  const asked = random.chance(0.5) ? outcome : other;
  const caller = random.chance(0.3) ? OPERATOR : cell.caller;
  const answer = await cell.api.decide(
    cell.id,
    caller,
    lease,
    asked,
    caller.role === "operator" ? "a simulated reason" : undefined,
  );
  if (
    answer.kind === "unknown" ||
    isRefused(answer, "KEY_REVOKED") ||
    simulation.judge.wasPruned(cell.id, lease)
  )
    return;
  simulation.judge.check(
    "I6",
    (answer.kind === "ok") === (asked === outcome),
    () => `lease ${lease} ended ${outcome}, but ${asked} was answered ${answer.kind}`,
  );
  simulation.judge.see("C4");
}

/** Checks that the Worker refuses a batch that contains a name twice (B1). */
async function invalid(simulation: Simulation, cell: Cell, random: Random): Promise<void> {
  const name = random.pick(simulation.names);
  simulation.checkInvalid(drawRow(name, cell, random), drawRow(name, cell, random));
}

async function freeze(simulation: Simulation, cell: Cell, random: Random): Promise<void> {
  // If a freeze and a thaw overlap, either may take effect last.
  const { thaws } = simulation;
  const isAlone = thaws.running === 0;
  const rival = random.chance(0.25) ? thaw(simulation, cell, simulation.operator) : undefined;
  // A stream of its own, so that seeds from before still do what they did.
  const isDrain = simulation.faults.stream("drains").chance(0.4);
  if (isDrain) startThaw(simulation, cell);
  const { started } = thaws;
  const done = await setState(simulation, cell, isDrain ? "DRAINING" : "FROZEN", simulation.operator);
  if (isDrain) thaws.running -= 1;
  await rival;
  if (done && isAlone && rival === undefined && thaws.started === started)
    (isDrain ? simulation.judge.draining : simulation.judge.frozen).add(cell.id);
  if (done && simulation.bringsForward) await bringForward(simulation, cell);
  await simulation.operator.sleep(random.exponential(3_000));
  await thaw(simulation, cell, simulation.operator);
  // No part of the thaw may take effect after the next freeze: no copy of it, and no attempt whose answer was
  // lost.
  if (random.chance(0.5)) await freeze(simulation, cell, random);
}

/** An operator begins a lease of a cell that stands still, as a restore does (H9). */
async function bringForward(simulation: Simulation, cell: Cell): Promise<void> {
  const { operator, faults } = simulation;
  const random = faults.stream("bring forward");
  const creates = drawNewRows(simulation, cell, random, 1);
  if (creates.length === 0) return;
  const lease = random.uuid();
  const ops = cell.opsOf({ ...EMPTY, creates });
  const batch = { lease, ops, allowMissing: false, isVerification: true } as const;
  const answer = await operator.begin(cell.id, OPERATOR, batch);
  // The names belong to no row of the cell.
  if (answer.kind !== "refused")
    await operator.decide(cell.id, OPERATOR, lease, "ROLLED_BACK", "a simulated reason");
}

export async function thaw(simulation: Simulation, cell: Cell, operator: Api): Promise<void> {
  startThaw(simulation, cell);
  simulation.judge.draining.delete(cell.id);
  await setState(simulation, cell, "ACTIVE", operator);
  simulation.thaws.running -= 1;
}

/** From now on, the cell may begin leases: those of a verification, if it is drained. */
function startThaw({ thaws, judge }: Simulation, cell: Cell): void {
  thaws.started += 1;
  thaws.running += 1;
  judge.frozen.delete(cell.id);
}

/**
 * Changes the state as the Worker does: it reads the version, then writes if the version is unchanged (A2).
 */
async function setState(
  simulation: Simulation,
  cell: Cell,
  state: CellState,
  operator: Api,
): Promise<boolean> {
  const status = await operator.toLedger<CellStatus>(cell.id, "status", {});
  if (status.kind !== "ok") return false;
  const message = { state, stateVersion: status.value.stateVersion };
  const answer = await operator.toLedger<null>(cell.id, "setState", message);
  if (state === "ACTIVE" && !simulation.faults.areOff) void repeatLate(cell, message, operator);
  if (isRefused(answer, "CONCURRENT_CHANGE")) simulation.judge.see("A2");
  return answer.kind === "ok";
}

/** The network may delay a copy and deliver it after the cell is frozen again. */
async function repeatLate(cell: Cell, message: object, operator: Api): Promise<void> {
  await operator.sleep(1_000);
  await operator.toLedger<null>(cell.id, "setState", message);
}

async function rotateKey(simulation: Simulation, cell: Cell): Promise<void> {
  const { caller } = cell;
  const { keyId, expiresAtMs } = caller;
  cell.keyNumber += 1;
  const answer = await simulation.operator.toLedger<null>(cell.id, "revoke", { keyId, expiresAtMs });
  if (answer.kind !== "ok") return;
  simulation.judge.revoked.add(keyId);
  // Older keys are tried too, because the ledger may have forgotten their revocations.
  for (const revoked of cell.callersSoFar)
    await cell.api.list(cell.id, revoked, { createdAfterMs: 0, afterPosition: 0, limit: 1 });
}
