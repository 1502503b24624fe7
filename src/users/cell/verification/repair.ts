import type { Batch, Conflict, ForeignRecord, ClaimRecord, Source } from "../../client/api-types.ts";
import { bytesOf } from "../../../common/ids.ts";
import { CLAIM_BYTES, chunkDefaults, type ChunkLimits } from "../chunks.ts";
import type { SourceRow } from "../changes.ts";
import type { Types } from "../../../common/types/types.ts";
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

/** Whether a drift was repaired, and if not, why. */
export type DriftOutcome = { drift: Drift; done: true } | ({ drift: Drift; done: false } & Skipped);

/** Why a drift is skipped, and who has its name, if that is known. */
export interface Skipped {
  skipReason: SkipReason;
  otherCell?: string;
  otherRow?: Source;
}

/**
 * Claims may change while a run repairs them. A refused lease is retried without the drifts that were in
 * conflict, but only so many times.
 */
const ATTEMPTS = 4;

type Todo = { drift: Drift; op: Op };
type OpOf<List extends "creates" | "replaces" | "destroys"> = {
  list: List;
  body: NonNullable<Batch[List]>[number];
};
type Op = OpOf<"creates"> | OpOf<"replaces"> | OpOf<"destroys">;

type Ports = Pick<VerificationPorts, "repair" | "records" | "tables" | "limits" | "types">;

/**
 * Repairs drift. Rows and records may have changed since they were read, so each drift is checked again while
 * its rows are locked, and its op names the epoch of the claim (V2, B10). A drift that has changed is
 * skipped.
 */
export class Repairer {
  readonly #ports: Ports;
  readonly #limits: ChunkLimits;
  readonly #rowRecentMs: number;
  readonly #report: (outcome: DriftOutcome) => void;

  /**
   * `rowRecentMs`: rows that changed within this time are skipped. Rows that would lose a claim are protected
   * by the `recency` passed to `repair` instead.
   */
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

  /**
   * Reports an outcome for each drift. Throws if continuing is pointless, for example without the
   * coordinator.
   */
  async repair(drifts: readonly Drift[], recency: Recency): Promise<void> {
    const taken: Missing[] = [];
    for (const chunk of chunksOf(drifts, this.#limits, this.#ports.types))
      taken.push(...(await this.#chunk(chunk, recency)));
    const changes = await this.#holders(taken);
    for (const chunk of chunksOf(changes, this.#limits, this.#ports.types)) await this.#chunk(chunk, recency);
  }

  /**
   * Looks up who holds the taken names: another cell, or another row of this cell, which may not need it any
   * more.
   */
  async #holders(taken: readonly Missing[]): Promise<Different[]> {
    const changes: Different[] = [];
    for await (const [drift, found] of withHolders(this.#ports, taken)) {
      const judged = judge(drift, found, this.#ports.tables);
      if ("skipReason" in judged) this.#skip(drift, judged);
      else changes.push(judged);
    }
    return changes;
  }

  /** Repairs with one lease. Answers the creates that were refused because the name has a claim. */
  async #chunk(drifts: readonly Drift[], recency: Recency): Promise<Missing[]> {
    const taken: Missing[] = [];
    let remaining = [...drifts];
    for (let attempt = 0; remaining.length > 0; attempt += 1) {
      if (attempt === ATTEMPTS) {
        for (const drift of remaining) this.#skip(drift, { skipReason: "changed" });
        break;
      }
      const { todo, result } = await this.#lease(remaining, recency);
      if (result.kind === "rolled_back") {
        for (const { drift } of todo) this.#skip(drift, { skipReason: "changed" });
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
        if (drift.action === "create" && conflict.kind === "taken") taken.push(drift);
        else this.#skip(drift, { skipReason: skipReasonOf(conflict) });
      }
      if (refused.size === 0)
        throw new Error("the coordinator refused a lease with conflicts that do not match its batch");
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
    let skipped: (Skipped & { drift: Drift })[] = [];
    const result = await this.#ports.repair([...rows.values()], (locked) => {
      // The transaction may be retried, so only the last call counts.
      [todo, skipped] = [[], []];
      for (const drift of drifts) {
        const op = opFor(drift, this.#ports.types, locked, this.#rowRecentMs, recency);
        if (typeof op === "string") skipped.push({ drift, ...skippedBy(drift, op) });
        else todo.push({ drift, op });
      }
      return todo.length === 0 ? undefined : batchOf(todo);
    });
    for (const { drift, ...reason } of skipped) this.#skip(drift, reason);
    return { todo, result };
  }

  #skip(drift: Drift, reason: Skipped): void {
    this.#report({ drift, done: false, ...reason });
  }
}

/** A replace that is skipped as a duplicate would take the claim from a row that uses the name too. */
const skippedBy = (drift: Drift, skipReason: SkipReason): Skipped =>
  skipReason === "duplicate" && drift.action === "replace"
    ? { skipReason, otherRow: drift.record.source }
    : { skipReason };

/** The rows of a drift, which are locked while it is repaired. */
function rowsOf(drift: Drift): SourceRow[] {
  if (drift.action !== "replace") return [rowOf(drift)];
  return [drift.want.source, drift.record.source];
}

/** The op that repairs a drift, or why it is skipped, judged by the locked rows. */
function opFor(
  drift: Drift,
  types: Types,
  locked: LockedRows,
  rowRecentMs: number,
  recency: Recency,
): Op | SkipReason {
  const own = rowKey(rowOf(drift));
  // A replace takes the claim from another row, and that row may be recent too.
  if (rowsOf(drift).some((row) => isYoung(locked, row, rowKey(row) === own ? rowRecentMs : recency.recentMs)))
    return "recent";
  if (drift.action === "destroy") {
    const { record, reason } = drift;
    // The row existed when it was read. The next run decides, because it may have been deleted just now.
    if (reason !== "row_gone" && !locked.has(rowKey(record.source))) return "changed";
    if (hasName(types, locked, record.source, keyOfRecord(types, record))) return "changed";
    return { list: "destroys", body: { bucket: record.bucket, source: record.source, epoch: record.epoch } };
  }
  const want = nameIn(types, locked, drift.want.source, drift.want.key);
  if (want === undefined) return "changed";
  const { bucket, subject, source, scope } = want;
  const claim = { bucket, subject, source, ...(scope === undefined ? {} : { scope }) };
  if (drift.action === "create") return { list: "creates", body: claim };
  const { record } = drift;
  if (rowKey(record.source) !== rowKey(want.source) && hasName(types, locked, record.source, want.key))
    return "duplicate";
  if (isRecentRecord(record, recency)) return "recent";
  return { list: "replaces", body: { ...claim, epoch: record.epoch } };
}

function isYoung(locked: LockedRows, row: SourceRow, recentMs: number): boolean {
  const now = locked.get(rowKey(row));
  return now !== undefined && isRecentRow(now, recentMs);
}

function nameIn(types: Types, locked: LockedRows, row: SourceRow, key: string): NamedClaim | undefined {
  const now = locked.get(rowKey(row));
  return now === undefined ? undefined : namesOf(types, now.claims).names.find((name) => name.key === key);
}

/** Includes names that the row cannot claim, because an existing claim on them is still its own. */
function hasName(types: Types, locked: LockedRows, row: SourceRow, key: string): boolean {
  const now = locked.get(rowKey(row));
  return now !== undefined && namesOf(types, now.claims).keys.has(key);
}

function batchOf(todo: readonly Todo[]): Batch {
  const of = (list: Op["list"]): unknown[] => todo.flatMap(({ op }) => (op.list === list ? [op.body] : []));
  const lists = (["creates", "replaces", "destroys"] as const).map((list) => [list, of(list)] as const);
  return Object.fromEntries(lists.filter(([, ops]) => ops.length > 0)) as Batch;
}

function driftOf(todo: readonly Todo[], { list, index }: Conflict): Drift | undefined {
  return todo.filter(({ op }) => op.list === list)[index]?.drift;
}

/** `changed`: the claim is gone, or another one with the same name, so somebody else has changed it. */
function skipReasonOf({ kind, owner }: Conflict): SkipReason {
  if (kind === "leased") return "leased";
  return kind === "not_owner" && owner === "other" ? "other_cell" : "changed";
}

/**
 * Batches within the limits of a begin. The coordinator refuses a name twice in a batch, so the second one
 * waits.
 */
function* chunksOf(drifts: readonly Drift[], limits: ChunkLimits, types: Types): Generator<Drift[]> {
  for (let remaining = drifts; remaining.length > 0;) {
    const chunk: Drift[] = [];
    const rest: Drift[] = [];
    const keys = new Set<string>();
    let bytes = 0;
    for (const drift of remaining) {
      const key = drift.action === "destroy" ? keyOfRecord(types, drift.record) : drift.want.key;
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

export type Holder = ClaimRecord | ForeignRecord | undefined;

/** Looks up who holds the names that these rows lack. */
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

/**
 * Decides what to do about a missing name that is taken. A claim moves only away from a row whose table is
 * verified, because only then can the run see that the row does not need it any more.
 */
export function judge(drift: Missing, holder: Holder, tables: readonly VerifiedTable[]): Different | Skipped {
  if (holder === undefined) return { skipReason: "changed" };
  // The coordinator shows a cell no sources of other cells' records.
  if (!("source" in holder)) return { skipReason: "other_cell", otherCell: holder.cell_id };
  if (isSame(drift.want, holder)) return { skipReason: "changed" };
  if (isLeased(holder)) return { skipReason: "leased" };
  const its = tables.find(({ source }) => source === holder.source.type);
  // If all attributes of a table are enabled, a claim of any other bucket type is extra too.
  const isVerified =
    its !== undefined && (its.hasEveryAttribute || its.bucketTypes.includes(holder.bucket.type));
  return isVerified
    ? differenceOf(drift.want, holder)
    : { skipReason: "not_verified", otherRow: holder.source };
}

/**
 * Repairs rows that were saved although their lease was rolled back. They are known to lack their claims, so
 * they don't have to be old, and need no approval. Rows that get all their names leave the queue; the others
 * stay in it for a person. Answers the drifts that could not be repaired.
 */
export async function repairQueued(
  ports: VerificationPorts,
  settings: Settings,
  queued: readonly QueuedRow[],
  report: (source: string, outcome: DriftOutcome) => void,
): Promise<(Missing | Different)[]> {
  // A row may be queued for a disabled column, so it waits until all columns are enabled.
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
    .flatMap(({ claims }) => namesOf(ports.types, claims).names)
    .map((want): Missing => ({ action: "create", kind: "missing", reason: "no_claim", want }));
  const drifts: Missing[] = [];
  for await (const [drift, holder] of withHolders(ports, needed)) {
    if (holder !== undefined && "source" in holder && isSame(drift.want, holder)) continue;
    drifts.push(drift);
  }
  if (drifts.length === 0) return;
  const limits = { ...chunkDefaults, ops: settings.leaseOps };
  // Reads the coordinator's clock: recent claims of other rows are skipped here too.
  const { asOfMs } = await ports.records.list({
    source,
    bucketTypes,
    after: "",
    upTo: undefined,
    pageSize: 1,
  });
  await new Repairer(ports, limits, 0, report).repair(drifts, { recentMs: settings.recentMs, asOfMs });
}
