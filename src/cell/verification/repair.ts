import type { Batch, Conflict, Record as ClaimRecord } from "../../client/wire.ts";
import { bytesOf } from "../../core/ids.ts";
import { CLAIM_BYTES, chunkDefaults, type ChunkLimits } from "../chunks.ts";
import type { SourceRow } from "../changes.ts";
import {
  differenceOf,
  isLeased,
  isRecentRecord,
  isRecentRow,
  rowOf,
  type Different,
  type Drift,
  type Missing,
  type Recency,
  type SkipReason,
} from "./compare.ts";
import { isSame, keyOfRecord, namesOf, type NamedClaim } from "./row-names.ts";
import {
  rowKey,
  type LockedRows,
  type QueuedRow,
  type VerificationPorts,
  type VerifiedRow,
  type VerifiedTable,
} from "./ports.ts";
import type { Settings } from "./options.ts";

/** What became of a drift. */
export type DriftOutcome =
  | { drift: Drift; done: true }
  | { drift: Drift; done: false; skipReason: SkipReason };

/** Others may take and give up names meanwhile, so what a begin was refused for is left out, and the rest tried again; but not for ever. */
const ATTEMPTS = 4;

type Todo = { drift: Drift; op: Op };
type OpOf<List extends "creates" | "replaces" | "destroys"> = {
  list: List;
  body: NonNullable<Batch[List]>[number];
};
type Op = OpOf<"creates"> | OpOf<"replaces"> | OpOf<"destroys">;

/** What a mender works with. */
type Ports = Pick<VerificationPorts, "repair" | "records" | "tables" | "limits">;

/**
 * Puts claims right. What was read may be old, so each drift is judged again while its rows are locked, and names the epoch of the claim that it is
 * about (rules V2, B10): what changed meanwhile is left alone.
 */
export class Repairer {
  readonly #ports: Ports;
  readonly #limits: ChunkLimits;
  readonly #rowRecentMs: number;
  readonly #report: (outcome: DriftOutcome) => void;

  /** `rowRecentMs`: rows that were changed within this time are left alone. Rows that would lose a claim to them are protected by the recency of what was read. */
  constructor(
    ports: Ports,
    limits: ChunkLimits,
    rowRecentMs: number,
    report: (outcome: DriftOutcome) => void,
  ) {
    this.#ports = ports;
    this.#limits = limits;
    this.#rowRecentMs = rowRecentMs;
    this.#report = report;
  }

  /** Throws what makes going on useless, such as a coordinator that cannot be reached; every drift before that was reported. */
  async repair(drifts: readonly Drift[], recency: Recency): Promise<void> {
    const taken: Missing[] = [];
    for (const chunk of chunksOf(drifts, this.#limits)) taken.push(...(await this.#chunk(chunk, recency)));
    const changes = await this.#holders(taken);
    for (const chunk of chunksOf(changes, this.#limits)) await this.#chunk(chunk, recency);
  }

  /** Names that are taken: by another row of this cell, which may have given them up, or by another cell. */
  async #holders(taken: readonly Missing[]): Promise<Different[]> {
    const changes: Different[] = [];
    for await (const [drift, found] of withHolders(this.#ports, taken)) {
      const judged = judge(drift, found, this.#ports.tables);
      if (typeof judged === "string") this.#skip(drift, judged);
      else changes.push(judged);
    }
    return changes;
  }

  /** One lease. Answers the creates that stumbled over a claim of this cell. */
  async #chunk(drifts: readonly Drift[], recency: Recency): Promise<Missing[]> {
    const taken: Missing[] = [];
    let remaining = [...drifts];
    for (let attempt = 0; remaining.length > 0; attempt += 1) {
      if (attempt === ATTEMPTS) {
        for (const drift of remaining) this.#skip(drift, "changed");
        break;
      }
      const { todo, result } = await this.#lease(remaining, recency);
      if (result.kind === "rolled_back") {
        for (const { drift } of todo) this.#skip(drift, "changed");
        break;
      }
      if (result.kind !== "refused") {
        for (const { drift } of todo) this.#report({ drift, done: true });
        break;
      }
      const refused = new Set<Drift>();
      for (const conflict of result.conflicts) {
        const drift = driftOf(todo, conflict);
        if (drift === undefined) continue;
        refused.add(drift);
        if (drift.action === "create" && conflict.kind === "taken" && conflict.owner === "self")
          taken.push(drift);
        else this.#skip(drift, skipReasonOf(conflict));
      }
      if (refused.size === 0) throw new Error("a lease was refused for conflicts that are none of its own");
      remaining = todo.map(({ drift }) => drift).filter((drift) => !refused.has(drift));
    }
    return taken;
  }

  async #lease(
    drifts: readonly Drift[],
    recency: Recency,
  ): Promise<{ todo: Todo[]; result: Awaited<ReturnType<VerificationPorts["repair"]>> }> {
    const rows = new Map(drifts.flatMap(rowsOf).map((row) => [rowKey(row), row]));
    let todo: Todo[] = [];
    let skipped: { drift: Drift; skipReason: SkipReason }[] = [];
    const result = await this.#ports.repair([...rows.values()], (locked) => {
      // A transaction may be tried again: only the last time counts.
      [todo, skipped] = [[], []];
      for (const drift of drifts) {
        const op = opFor(drift, locked, this.#rowRecentMs, recency);
        if (typeof op === "string") skipped.push({ drift, skipReason: op });
        else todo.push({ drift, op });
      }
      return todo.length === 0 ? undefined : batchOf(todo);
    });
    for (const each of skipped) this.#skip(each.drift, each.skipReason);
    return { todo, result };
  }

  #skip(drift: Drift, skipReason: SkipReason): void {
    this.#report({ drift, done: false, skipReason });
  }
}

/** Rows whose claims a drift is about: all have to be as they were found. */
function rowsOf(drift: Drift): SourceRow[] {
  if (drift.action !== "replace") return [rowOf(drift)];
  return [drift.want.source, drift.record.source];
}

/** What is to be done about a drift, judged by the rows as they are now, locked. */
function opFor(drift: Drift, locked: LockedRows, rowRecentMs: number, recency: Recency): Op | SkipReason {
  const own = rowKey(rowOf(drift));
  // A row that would lose its claim to this one is protected as any other.
  if (rowsOf(drift).some((row) => isYoung(locked, row, rowKey(row) === own ? rowRecentMs : recency.recentMs)))
    return "recent";
  if (drift.action === "destroy") {
    const { record, reason } = drift;
    // A row that was there and is not found by its id any more: gone a moment ago, or not found for another reason. The next run will see.
    if (reason !== "row_gone" && !locked.has(rowKey(record.source))) return "changed";
    if (hasName(locked, record.source, keyOfRecord(record))) return "changed";
    return { list: "destroys", body: { bucket: record.bucket, source: record.source, epoch: record.epoch } };
  }
  const want = nameIn(locked, drift.want.source, drift.want.key);
  if (want === undefined) return "changed";
  const claim = { bucket: want.bucket, subject: want.subject, source: want.source };
  if (drift.action === "create") return { list: "creates", body: claim };
  const { record } = drift;
  if (rowKey(record.source) !== rowKey(want.source) && hasName(locked, record.source, want.key))
    return "duplicate";
  if (isRecentRecord(record, recency)) return "recent";
  return { list: "replaces", body: { ...claim, epoch: record.epoch } };
}

function isYoung(locked: LockedRows, row: SourceRow, recentMs: number): boolean {
  const now = locked.get(rowKey(row));
  return now !== undefined && isRecentRow(now, recentMs);
}

function nameIn(locked: LockedRows, row: SourceRow, key: string): NamedClaim | undefined {
  const now = locked.get(rowKey(row));
  return now === undefined ? undefined : namesOf(now.claims).names.find((name) => name.key === key);
}

/** Also one that no claim could be made of: its claim is the row's own all the same. */
function hasName(locked: LockedRows, row: SourceRow, key: string): boolean {
  const now = locked.get(rowKey(row));
  return now !== undefined && namesOf(now.claims).keys.has(key);
}

function batchOf(todo: readonly Todo[]): Batch {
  const of = (list: Op["list"]): unknown[] => todo.flatMap(({ op }) => (op.list === list ? [op.body] : []));
  const lists = (["creates", "replaces", "destroys"] as const).map((list) => [list, of(list)] as const);
  return Object.fromEntries(lists.filter(([, ops]) => ops.length > 0)) as Batch;
}

function driftOf(todo: readonly Todo[], { list, index }: Conflict): Drift | undefined {
  return todo.filter(({ op }) => op.list === list)[index]?.drift;
}

/** Of a claim that is another one by now, or gone, somebody else has taken care. */
function skipReasonOf({ kind, owner }: Conflict): SkipReason {
  if (kind === "leased") return "leased";
  return kind === "taken" || (kind === "not_owner" && owner === "other") ? "other_cell" : "changed";
}

/** Under every limit of a begin, and each name once: the coordinator takes no batch that has one twice. Those wait for another one. */
function* chunksOf(drifts: readonly Drift[], limits: ChunkLimits): Generator<Drift[]> {
  for (let remaining = drifts; remaining.length > 0;) {
    const chunk: Drift[] = [];
    const rest: Drift[] = [];
    const keys = new Set<string>();
    let bytes = 0;
    for (const drift of remaining) {
      const key = drift.action === "destroy" ? keyOfRecord(drift.record) : drift.want.key;
      const size =
        bytesOf((drift.action === "destroy" ? drift.record : drift.want).bucket.value) + CLAIM_BYTES;
      const fits = chunk.length === 0 || (chunk.length < limits.ops && bytes + size <= limits.bytes);
      if (!fits || keys.has(key)) rest.push(drift);
      else {
        chunk.push(drift);
        keys.add(key);
        bytes += size;
      }
    }
    yield chunk;
    remaining = rest;
  }
}

export type Holder = ClaimRecord | "other" | undefined;

/** Who has the names that these rows lack. */
export async function* withHolders(
  { records, limits }: Pick<VerificationPorts, "records" | "limits">,
  missing: readonly Missing[],
): AsyncGenerator<[Missing, Holder]> {
  for (let at = 0; at < missing.length; at += limits.lookupBuckets) {
    const asked = missing.slice(at, at + limits.lookupBuckets);
    const found = await records.lookup(asked.map(({ want }) => want.bucket));
    for (const [index, drift] of asked.entries()) yield [drift, found[index]];
  }
}

/** What is to be done about a name that somebody has. Only a row that can be looked at can be found not to need it any more. */
export function judge(
  drift: Missing,
  holder: Holder,
  tables: readonly VerifiedTable[],
): Different | SkipReason {
  if (holder === "other") return "other_cell";
  if (holder === undefined || isSame(drift.want, holder)) return "changed";
  if (isLeased(holder)) return "leased";
  const its = tables.find(({ source }) => source === holder.source.type);
  // Of a table that is seen whole, it is known as well that it does not claim such names at all any more.
  const isVerified =
    its !== undefined && (its.hasEveryAttribute || its.bucketTypes.includes(holder.bucket.type));
  return isVerified ? differenceOf(drift.want, holder) : "not_verified";
}

/**
 * Rows that were saved although their lease was rolled back: they are known to lack their claims, so nobody waits until they are old, nor is asked.
 * Those whose names are theirs in the end leave the queue; the rest stays in it, for a person. Answers what could not be mended.
 */
export async function repairQueued(
  ports: VerificationPorts,
  settings: Settings,
  queued: readonly QueuedRow[],
  report: (source: string, outcome: DriftOutcome) => void,
): Promise<(Missing | Different)[]> {
  // What a column that is switched off was about has to wait for it.
  const tables = ports.tables.filter(({ hasEveryAttribute }) => hasEveryAttribute);
  const unrepaired: (Missing | Different)[] = [];
  for (const table of tables) {
    const ids = queued.filter(({ type }) => type === table.source).map(({ id }) => id);
    if (ids.length === 0) continue;
    await repairRows(ports, settings, table, await table.read(ids), (outcome) => {
      report(table.source, outcome);
      if (!outcome.done && outcome.drift.action !== "destroy") unrepaired.push(outcome.drift);
    });
  }
  const sources = new Set<string>(tables.map(({ source }) => source));
  const open = new Set(unrepaired.map(({ want }) => rowKey(want.source)));
  const repaired = queued.filter((row) => sources.has(row.type) && !open.has(rowKey(row)));
  if (repaired.length > 0) await ports.queue.remove(repaired);
  return unrepaired;
}

async function repairRows(
  ports: VerificationPorts,
  settings: Settings,
  { source, bucketTypes }: VerifiedTable,
  rows: readonly VerifiedRow[],
  report: (outcome: DriftOutcome) => void,
): Promise<void> {
  const needed = rows
    .flatMap(({ claims }) => namesOf(claims).names)
    .map((want): Missing => ({ action: "create", kind: "missing", reason: "no_claim", want }));
  const drifts: Missing[] = [];
  for await (const [drift, holder] of withHolders(ports, needed)) {
    if (holder !== undefined && holder !== "other" && isSame(drift.want, holder)) continue;
    drifts.push(drift);
  }
  if (drifts.length === 0) return;
  const limits = { ...chunkDefaults, ops: settings.leaseOps };
  // For the coordinator's clock: claims of other rows that were changed just now are left alone here as well.
  const { asOfMs } = await ports.records.list({
    source,
    bucketTypes,
    after: "",
    upTo: undefined,
    pageSize: 1,
  });
  await new Repairer(ports, limits, 0, report).repair(drifts, { recentMs: settings.recentMs, asOfMs });
}
