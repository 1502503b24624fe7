/** What operators and cells do with transfers of a scope (Y1 to Y6). */
import type {
  BeginAnswer,
  ClaimRecord,
  LookupAnswer,
  Op,
  Outcome,
  PlacedLease,
} from "../../../src/coordinator/kernel/messages.ts";
import type {
  ListCursor,
  ListRecordsAnswer,
} from "../../../src/coordinator/capabilities/records/messages.ts";
import type { Transfer, TransferCall } from "../../../src/coordinator/capabilities/transfer/messages.ts";
import type { TransferSide } from "../../../src/coordinator/capabilities/transfer/range.ts";
import type { Answer } from "../../../src/coordinator/kernel/ports.ts";
import { bucketType, sourceType } from "../../support/types.ts";
import type { Cell } from "./cell.ts";
import { bucketTypeName, type Name } from "./local.ts";
import type { Random } from "./random.ts";
import type { Simulation } from "./simulation.ts";

/** Names without rows, which the cells give to each other by transfers. */
export const MOVING: readonly Name[] = ["moving-0", "moving-1", "moving-2", "moving-3"].map((canonical) => ({
  type: bucketType("ROUTES"),
  canonical,
}));

export const SCOPE = "org";

/** The digest of rows that differ from the claims. */
const OTHER_HASH = "f".repeat(32);

/** More time than any transfer needs without faults. */
const SETTLING_MS = 120_000;
const SETTLING_STEPS = 20_000;
/** The most rounds in which the claims of the scope are released. */
const MOST_ROUNDS = 20;

/** The most pages of a list. */
const MOST_PAGES = 20;

/** How often a call is repeated whose outcome is unknown. */
const MOST_TRIES = 4;

/** Keys that no operator revokes. */
export const TRANSFER_CALLER = {
  role: "cell",
  keyId: "transfers",
  expiresAtMs: Number.MAX_SAFE_INTEGER,
} as const;

/** Changes names of the scope, looks them up, or moves them to another cell. */
export async function transferStep(simulation: Simulation, cell: Cell, random: Random): Promise<void> {
  const act = random.next();
  const hasNames = MOVING.some((name) => simulation.judge.claimOn(name)?.cell === cell.id);
  if (!hasNames && act > 0.2) return changeNames(simulation, cell, random);
  if (act < 0.3) return changeNames(simulation, cell, random);
  if (act < 0.5) return lookUp(simulation, random);
  if (act < 0.6) return list(simulation, cell, random);
  const others = simulation.cells.filter(({ id }) => id !== cell.id);
  await transfer(simulation, cell, random.pick(others), random);
}

async function lookUp(simulation: Simulation, random: Random): Promise<void> {
  const { judge, router, scheduler } = simulation;
  const name = random.pick(MOVING);
  const startedMs = scheduler.nowMs;
  const shard = simulation.shardOf(name);
  const answer = await router.toShard<LookupAnswer>(shard, "lookup", { keys: [name] });
  const found = answer.kind === "ok" ? answer.value.found[0] : undefined;
  if (found === undefined) return;
  judge.transfers.lookedUp(name, startedMs, found);
  if ((judge.images[shard]?.ranges.size ?? 0) > 0) judge.see("Y4");
}

/** Reads all records of the scope that the cell has on a shard. */
async function list(simulation: Simulation, { id: cell }: Cell, random: Random): Promise<void> {
  const { judge, operator, scheduler } = simulation;
  const shard = simulation.shardOf(random.pick(MOVING));
  const startedMs = scheduler.nowMs;
  const records: ClaimRecord[] = [];
  const query = {
    cell,
    sourceType: sourceType("RAILS_TABLE_PROJECTS"),
    bucketTypes: null,
    after: "",
    upTo: null,
  };
  for (let cursor: ListCursor | null = null, left = MOST_PAGES; ; left -= 1) {
    const fields: object = { ...query, cursor, limit: random.between(1, 4) };
    const page = await operator.toShard<ListRecordsAnswer>(shard, "listRecords", fields);
    judge.see(`listed: ${page.kind}`);
    if (page.kind !== "ok" || left === 0) return;
    records.push(...page.value.records);
    cursor = page.value.next;
    if (cursor === null) break;
  }
  const names = MOVING.filter((name) => simulation.shardOf(name) === shard);
  judge.transfers.listed(cell, names, startedMs, records);
}

/** Creates, replaces or destroys a name of the scope. */
export async function changeNames(simulation: Simulation, cell: Cell, random: Random): Promise<void> {
  const names = random.some(MOVING, random.pick([1, 1, 2]));
  const claimOf = (name: Name) => simulation.judge.claimOn(name);
  const own = names.filter((name) => claimOf(name)?.cell === cell.id);
  const free = names.filter((name) => claimOf(name) === undefined);
  const scope = random.chance(0.85) ? { scope: SCOPE } : {};
  cell.rows += 1;
  const described = ({ type, canonical }: Name): object => ({
    bucket: { type: bucketTypeName(type), value: canonical },
    subject: { type: "NAMESPACE", id: `${cell.id}-${cell.rows}` },
    source: { type: "RAILS_TABLE_PROJECTS", id: String(cell.rows) },
  });
  const isDestroy = random.chance(0.15);
  const owned = isDestroy
    ? {
        destroys: own.map(({ type, canonical }) => ({
          bucket: { type: bucketTypeName(type), value: canonical },
        })),
      }
    : { replaces: own.map((name) => ({ ...described(name), ...scope })) };
  if (own.length + free.length === 0) return;
  const ops = cell.placed({ creates: free.map((name) => ({ ...described(name), ...scope })), ...owned });
  await lease(simulation, cell, ops, random.chance(0.8) ? "COMMITTED" : "ROLLED_BACK", random);
}

/** Begins and decides a lease. It is not in the history of the clients, which knows no transfers. */
async function lease(
  { judge, unrecorded }: Simulation,
  { id: cell, api }: Cell,
  ops: Op[],
  outcome: Outcome,
  random: Random,
): Promise<void> {
  const id = random.uuid();
  unrecorded.add(id);
  const call = { caller: TRANSFER_CALLER, requestId: "" };
  const payloadHash = JSON.stringify(ops);
  const begin = { ...call, lease: id, ops, payloadHash, allowMissing: true };
  const begun = await api.toLedger<BeginAnswer>(cell, "begin", begin);
  const isLeased = begun.kind === "refused" && begun.refusal.code === "ABORTED";
  if (isLeased && judge.images.some(({ ranges }) => ranges.size > 0)) judge.see("Y3");
  if (begun.kind === "refused") return;
  await api.sleep(random.exponential(random.pick([1, 10, 200])));
  judge.requests(cell, id, outcome);
  for (let left = MOST_TRIES; left > 0; left -= 1) {
    const decided = await api.toLedger<PlacedLease>(cell, "decide", { ...call, lease: id, outcome });
    if (decided.kind !== "unknown") return;
  }
}

/** Prepares a transfer from one cell to another, verifies it, and cuts or aborts it. */
export async function transfer(simulation: Simulation, from: Cell, to: Cell, random: Random): Promise<void> {
  const { judge, operator } = simulation;
  const id = random.uuid();
  const pause = (): Promise<void> => operator.sleep(random.exponential(random.pick([5, 100, 1_000])));
  const send = (method: string, party: TransferCall["party"], more: object = {}) =>
    operator.toLedger<Transfer>(to.id, method, {
      caller: TRANSFER_CALLER,
      party,
      requestId: "",
      transfer: id,
      ...more,
    });
  /** Repeats a call whose outcome is unknown, or that leases are in the way of. */
  const sendUntil = async (...call: Parameters<typeof send>): Promise<Answer<Transfer>> => {
    for (let left = MOST_TRIES; ; left -= 1) {
      const answer = await send(...call);
      judge.see(`${call[0]}: ${answerText(answer)}`);
      const isBlocked = answer.kind === "refused" && answer.refusal.code === "ABORTED";
      if (left === 0 || answer.kind === "ok" || (answer.kind === "refused" && !isBlocked)) return answer;
      await pause();
    }
  };
  const askRouters = (): Promise<unknown> =>
    Promise.all(simulation.routers.map((router) => router.findMany(MOVING)));
  // An answer that a router read before or during a transfer must not outlive the cut.
  if (random.chance(0.5)) await askRouters();
  const prepared = await sendUntil("prepareTransfer", "from", { from: from.id, scope: SCOPE });
  if (prepared.kind === "refused") return;
  await pause();
  if (random.chance(0.5)) await askRouters();
  const known = await sendUntil("getTransfer", "operator");
  if (known.kind === "refused") return;
  if (known.kind === "ok") {
    if (random.chance(0.95)) await sendUntil("acceptTransfer", "to");
    for (const side of ["from", "to"] satisfies TransferSide[]) {
      const { count, hash } = known.value.expected[side];
      // A cell that has other rows than claims must not get a cut.
      const isWrong = random.chance(0.05);
      const hasMore = isWrong && simulation.faults.stream("wrong reports").chance(0.5);
      const report = {
        side,
        hash: isWrong && !hasMore ? OTHER_HASH : hash,
        count: hasMore ? count + 1 : count,
      };
      if (random.chance(0.95)) await sendUntil("reportTransfer", side, report);
    }
    await pause();
  }
  for (let tries = random.between(2, 6); tries > 0; tries -= 1) {
    const outcome = random.chance(0.8) ? "CUT" : "ABORTED";
    judge.requests(to.id, id, outcome === "CUT" ? "COMMITTED" : "ROLLED_BACK");
    const [decided] = await Promise.all([
      send("decideTransfer", "from", { outcome }),
      watchMove(simulation, [from, to], random),
    ]);
    judge.see(`decideTransfer: ${answerText(decided)}`);
    if (decided.kind === "ok") return;
    await pause();
  }
}

/** Looks at the names while a transfer is decided and the shards learn of it. */
async function watchMove(simulation: Simulation, cells: readonly Cell[], random: Random): Promise<void> {
  const { operator, routers } = simulation;
  const looks = Array.from({ length: random.between(2, 10) }, async () => {
    await operator.sleep(random.exponential(random.pick([10, 50, 300])));
    const kind = random.next();
    if (kind < 0.25) return list(simulation, random.pick(cells), random);
    if (kind < 0.6 || routers.length === 0) return lookUp(simulation, random);
    await random.pick(routers).find({ name: random.pick(MOVING), isUpperCase: false });
  });
  await Promise.all(looks);
}

const answerText = (answer: Answer<Transfer>): string =>
  answer.kind === "refused" ? (answer.refusal.reason ?? answer.refusal.code) : answer.kind;

/** Aborts the transfers that are open when the faults have ended. A growth waits for them (G10). */
export async function endTransfers(simulation: Simulation): Promise<void> {
  const { judge, operator } = simulation;
  for (const { cell, lease: id, row } of judge.facts.values()) {
    if (row.transfer === null || row.state !== "GRANTED") continue;
    judge.requests(cell, id, "ROLLED_BACK");
    const call = { caller: TRANSFER_CALLER, requestId: "", transfer: id, outcome: "ABORTED" };
    // Only an operator decides what a ledger that went back has lost (Y10).
    for (const party of ["to", "operator"])
      await simulation.runUntil(operator.toLedger(cell, "decideTransfer", { ...call, party }));
  }
}

/** Ends all transfers, and releases the claims of the scope, unless the ledger of their cell is full. */
export async function settleTransfers(simulation: Simulation): Promise<void> {
  const { judge, operator, coordinator } = simulation;
  const random = simulation.faults.stream("settled transfers");
  await endTransfers(simulation);
  await simulation.pass(SETTLING_MS, SETTLING_STEPS);
  for (const [shard, { ranges }] of judge.images.entries())
    judge.check(
      "I51",
      ranges.size === 0,
      () => `shard ${shard} still holds ${JSON.stringify([...ranges.values()])}`,
    );
  for (const name of MOVING) {
    const shard = simulation.shardOf(name);
    const startedMs = simulation.scheduler.nowMs;
    const answer = await simulation.runUntil(
      operator.toShard<LookupAnswer>(shard, "lookup", { keys: [name] }),
    );
    if (answer.kind === "ok" && answer.value.found[0] !== undefined)
      judge.transfers.lookedUp(name, startedMs, answer.value.found[0]);
  }
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const left = MOVING.flatMap((name) => judge.claimOn(name) ?? []);
    if (left.length === 0) return;
    for (const cell of simulation.cells) {
      const own = left.filter((claim) => claim.cell === cell.id);
      if (own.length === 0) continue;
      const destroys = own.map(({ bucket_type: type, canonical }) => ({
        bucket: { type: bucketTypeName(type), value: canonical },
      }));
      await simulation.runUntil(lease(simulation, cell, cell.placed({ destroys }), "COMMITTED", random));
    }
    await simulation.pass(2 * coordinator.limits.decisionWaitMs + 5_000, SETTLING_STEPS);
  }
}
