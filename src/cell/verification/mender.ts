import type { Batch, Conflict } from "../../client/api-types.ts";
import { bytesOf } from "../../core/ids.ts";
import { CLAIM_BYTES, type ChunkLimits } from "../chunks.ts";
import type { SourceRow } from "../changes.ts";
import { isRecentRecord, isRecentRow, type Recency } from "./compare.ts";
import { rowOf, type Different, type Drift, type LeftBecause, type Missing } from "./drift.ts";
import { judge, withHolders } from "./holders.ts";
import { keyOfRecord, namesOf, type NamedClaim } from "./named.ts";
import { rowKey, type LockedRows, type VerificationPorts } from "./ports.ts";

/** What became of a drift. */
export type Outcome = { drift: Drift; done: true } | { drift: Drift; done: false; left: LeftBecause };

/** Others may take and give up names meanwhile, so what a begin was refused for is left out, and the rest tried again; but not for ever. */
const TRIES = 4;

type Todo = { drift: Drift; op: Op };
type OpOf<List extends "creates" | "replaces" | "destroys"> = {
  list: List;
  body: NonNullable<Batch[List]>[number];
};
type Op = OpOf<"creates"> | OpOf<"replaces"> | OpOf<"destroys">;

/** What a mender works with. */
type Ports = Pick<VerificationPorts, "mend" | "records" | "tables" | "limits">;

/**
 * Puts claims right. What was read may be old, so each drift is judged again while its rows are locked, and names the epoch of the claim that it is
 * about (rules V2, B10): what changed meanwhile is left alone.
 */
export class Mender {
  readonly #ports: Ports;
  readonly #limits: ChunkLimits;
  readonly #rowRecentMs: number;
  readonly #report: (outcome: Outcome) => void;

  /** `rowRecentMs`: rows that were changed within this time are left alone. Rows that would lose a claim to them are protected by the recency of what was read. */
  constructor(ports: Ports, limits: ChunkLimits, rowRecentMs: number, report: (outcome: Outcome) => void) {
    this.#ports = ports;
    this.#limits = limits;
    this.#rowRecentMs = rowRecentMs;
    this.#report = report;
  }

  /** Throws what makes going on useless, such as a coordinator that cannot be reached; every drift before that was reported. */
  async mend(drifts: readonly Drift[], recency: Recency): Promise<void> {
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
      if (typeof judged === "string") this.#leave(drift, judged);
      else changes.push(judged);
    }
    return changes;
  }

  /** One lease. Answers the creates that stumbled over a claim of this cell. */
  async #chunk(drifts: readonly Drift[], recency: Recency): Promise<Missing[]> {
    const taken: Missing[] = [];
    let left = [...drifts];
    for (let tried = 0; left.length > 0; tried += 1) {
      if (tried === TRIES) {
        for (const drift of left) this.#leave(drift, "changed");
        break;
      }
      const { todo, mended } = await this.#lease(left, recency);
      if (mended.kind === "undone") {
        for (const { drift } of todo) this.#leave(drift, "changed");
        break;
      }
      if (mended.kind !== "refused") {
        for (const { drift } of todo) this.#report({ drift, done: true });
        break;
      }
      const refused = new Set<Drift>();
      for (const conflict of mended.conflicts) {
        const drift = driftOf(todo, conflict);
        if (drift === undefined) continue;
        refused.add(drift);
        if (drift.action === "create" && conflict.kind === "taken" && conflict.owner === "self")
          taken.push(drift);
        else this.#leave(drift, reasonOf(conflict));
      }
      if (refused.size === 0) throw new Error("a lease was refused for conflicts that are none of its own");
      left = todo.map(({ drift }) => drift).filter((drift) => !refused.has(drift));
    }
    return taken;
  }

  async #lease(
    drifts: readonly Drift[],
    recency: Recency,
  ): Promise<{ todo: Todo[]; mended: Awaited<ReturnType<VerificationPorts["mend"]>> }> {
    const rows = new Map(drifts.flatMap(rowsOf).map((row) => [rowKey(row), row]));
    let todo: Todo[] = [];
    let left: { drift: Drift; left: LeftBecause }[] = [];
    const mended = await this.#ports.mend([...rows.values()], (locked) => {
      // A transaction may be tried again: only the last time counts.
      [todo, left] = [[], []];
      for (const drift of drifts) {
        const op = opOf(drift, locked, this.#rowRecentMs, recency);
        if (typeof op === "string") left.push({ drift, left: op });
        else todo.push({ drift, op });
      }
      return todo.length === 0 ? undefined : batchOf(todo);
    });
    for (const each of left) this.#leave(each.drift, each.left);
    return { todo, mended };
  }

  #leave(drift: Drift, left: LeftBecause): void {
    this.#report({ drift, done: false, left });
  }
}

/** Rows whose claims a drift is about: all have to be as they were found. */
function rowsOf(drift: Drift): SourceRow[] {
  if (drift.action !== "replace") return [rowOf(drift)];
  return [drift.want.source, drift.record.source];
}

/** What is to be done about a drift, judged by the rows as they are now, locked. */
function opOf(drift: Drift, locked: LockedRows, rowRecentMs: number, recency: Recency): Op | LeftBecause {
  const own = rowKey(rowOf(drift));
  // A row that would lose its claim to this one is protected as any other.
  if (rowsOf(drift).some((row) => isYoung(locked, row, rowKey(row) === own ? rowRecentMs : recency.recentMs)))
    return "recent";
  if (drift.action === "destroy") {
    const { record, because } = drift;
    // A row that was there and is not found by its id any more: gone a moment ago, or not found for another reason. The next run will see.
    if (because !== "row_gone" && !locked.has(rowKey(record.source))) return "changed";
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
function reasonOf({ kind, owner }: Conflict): LeftBecause {
  if (kind === "leased") return "leased";
  return kind === "taken" || (kind === "not_owner" && owner === "other") ? "other_cell" : "changed";
}

/** Under every limit of a begin, and each name once: the coordinator takes no batch that has one twice. Those wait for another one. */
function* chunksOf(drifts: readonly Drift[], limits: ChunkLimits): Generator<Drift[]> {
  for (let left = drifts; left.length > 0;) {
    const chunk: Drift[] = [];
    const rest: Drift[] = [];
    const keys = new Set<string>();
    let bytes = 0;
    for (const drift of left) {
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
    left = rest;
  }
}
