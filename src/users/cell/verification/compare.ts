import { DigestSum, digestWordsOf } from "../../../common/digest.ts";
import type { Types } from "../../../common/types/types.ts";
import type { ClaimRecord, Source } from "../../client/api-types.ts";
import type { RangeCounts } from "./counts.ts";
import { checkOrder } from "./examine.ts";
import type { IdRange, RangeDigest, VerificationPorts, VerifiedRow, VerifiedTable } from "./ports.ts";
import {
  digestedOf,
  isSame,
  keyOfRecord,
  namesOf,
  type NamedClaim,
  type RowNames,
  type Unnameable,
} from "./row-names.ts";

/** A row's name has no claim. `value`: the row has a claim on another name of that type instead. */
export interface Missing {
  action: "create";
  kind: "missing" | "different";
  reason: "no_claim" | "value";
  want: NamedClaim;
}

/**
 * A claim has the right name, but another row, subject, scope or spelling. A replace corrects it, so it is
 * never free in between.
 */
export interface Different {
  action: "replace";
  kind: "different";
  reason: "row" | "subject" | "scope" | "spelling";
  want: NamedClaim;
  record: ClaimRecord;
}

/** A claim that no row needs. */
export interface Extra {
  action: "destroy";
  kind: "extra" | "different";
  reason: "row_gone" | "not_claimed" | "value";
  record: ClaimRecord;
}

/** A difference between rows and claims, with the action that repairs it. */
export type Drift = Missing | Different | Extra;

/** Why a drift is not repaired. The first four need a person. */
export type SkipReason =
  /** Another cell holds the name. */
  | "other_cell"
  /** Two rows of this cell have the same name. */
  | "duplicate"
  /** The value cannot be a name. */
  | "unnameable"
  /** The claim belongs to a table or column that this run does not verify. */
  | "not_verified"
  /** A lease holds the name, or a deferred lease is going to destroy the claim. */
  | "leased"
  /** The row or the claim changed within `recentMs`. */
  | "recent"
  /** A row still needs the name, so the claim is not destroyed. */
  | "needed"
  /** It was repaired or changed by somebody else during the run. */
  | "changed";

export const rowOf = (drift: Drift): { type: string; id: string } =>
  drift.action === "destroy" ? drift.record.source : drift.want.source;

/** The count for a drift. A claim with another name than its row counts once, with the destroy. */
export const countsAs = ({ action, kind }: Drift): "missing" | "different" | "extra" | undefined =>
  action === "create" && kind === "different" ? undefined : kind;

export interface Duplicate {
  name: NamedClaim;
  /** The row itself, if two of its columns have the same name. */
  otherRow: Source;
}

export interface Comparison {
  /** Claims that the rows should have. */
  claims: number;
  drifts: Drift[];
  unnameable: Unnameable[];
  /** Names that two rows use: the entry of the row without the claim, and the row that has it. */
  duplicates: Duplicate[];
  /** Rows and records that changed within `recentMs`. */
  recent: number;
  /** Records that a lease holds. */
  leased: number;
  /**
   * Keys of names that rows use without a claim, and that are not repaired now. Their claims must not be
   * destroyed.
   */
  neededKeys: string[];
}

export interface Recency {
  recentMs: number;
  /** When the records were read, by the coordinator's clock. */
  asOfMs: number;
}

/** Compares all rows and all records of one range of source ids. */
export function compare(
  rows: readonly VerifiedRow[],
  records: readonly ClaimRecord[],
  recency: Recency,
  types: Types,
): Comparison {
  return new Comparer(rows, records, recency, types).run();
}

export const isRecentRow = ({ ageMs }: VerifiedRow, recentMs: number): boolean =>
  ageMs !== undefined && ageMs < recentMs;

export const isRecentRecord = (
  { updated_at: updatedAt }: ClaimRecord,
  { recentMs, asOfMs }: Recency,
): boolean => asOfMs - Date.parse(updatedAt) < recentMs;

/** A record whose replace is in progress is ACTIVE, and has the lease's uuid. */
export const isLeased = ({ status, lease_uuid: lease }: ClaimRecord): boolean =>
  status !== "ACTIVE" || lease !== null;

class Comparer {
  readonly #rows: readonly VerifiedRow[];
  readonly #recency: Recency;
  readonly #types: Types;
  readonly #records: Map<string, ClaimRecord>;
  readonly #names = new Map<string, RowNames>();
  readonly #young = new Set<string>();
  readonly #result: Comparison = {
    claims: 0,
    drifts: [],
    unnameable: [],
    duplicates: [],
    recent: 0,
    leased: 0,
    neededKeys: [],
  };

  constructor(rows: readonly VerifiedRow[], records: readonly ClaimRecord[], recency: Recency, types: Types) {
    this.#rows = rows;
    this.#recency = recency;
    this.#types = types;
    this.#records = new Map(records.map((record) => [keyOfRecord(types, record), record]));
  }

  run(): Comparison {
    for (const row of this.#rows) this.#read(row);
    const matched = new Set<string>();
    for (const [id, { names }] of this.#names)
      for (const name of names) if (this.#match(id, name)) matched.add(name.key);
    for (const [key, record] of this.#records) if (!matched.has(key)) this.#unmatched(record);
    return this.#result;
  }

  #read(row: VerifiedRow): void {
    const read = namesOf(this.#types, row.claims);
    const { names, duplicates, unnameable } = read;
    this.#names.set(row.id, read);
    this.#result.claims += names.length;
    if (isRecentRow(row, this.#recency.recentMs)) {
      this.#young.add(row.id);
      this.#result.recent += 1;
    } else {
      this.#result.unnameable.push(...unnameable);
      this.#result.duplicates.push(...duplicates.map((name) => ({ name, otherRow: name.source })));
    }
    // Names that the row uses but cannot claim are needed too, unless the row has the claim.
    const named = new Set(names.map(({ key }) => key));
    for (const key of read.keys)
      if (!named.has(key) && this.#records.get(key)?.source.id !== row.id) this.#result.neededKeys.push(key);
  }

  /** Whether the record of this name belongs to this row, or will by a replace. */
  #match(id: string, name: NamedClaim): boolean {
    const record = this.#records.get(name.key);
    const { drifts, neededKeys, duplicates } = this.#result;
    if (record === undefined) {
      if (this.#young.has(id)) neededKeys.push(name.key);
      else drifts.push({ action: "create", kind: "missing", reason: "no_claim", want: name });
      return false;
    }
    if (isSame(name, record)) return true;
    if (record.source.id !== id && this.#uses(record.source.id, name.key)) {
      // The other row still uses the name, so the record stays with it.
      if (!this.#young.has(id)) duplicates.push({ name, otherRow: record.source });
      neededKeys.push(name.key);
      return false;
    }
    const different = differenceOf(name, record);
    if (this.#isLeft(different)) neededKeys.push(name.key);
    else drifts.push(different);
    return true;
  }

  #unmatched(record: ClaimRecord): void {
    if (this.#uses(record.source.id, keyOfRecord(this.#types, record))) return;
    const names = this.#names.get(record.source.id)?.names;
    const hasAnother = names?.some(({ bucket }) => bucket.type === record.bucket.type) === true;
    const extra: Extra = hasAnother
      ? { action: "destroy", kind: "different", reason: "value", record }
      : {
          action: "destroy",
          kind: "extra",
          reason: names === undefined ? "row_gone" : "not_claimed",
          record,
        };
    if (this.#isLeft(extra)) return;
    const instead = this.#result.drifts.find((drift): drift is Missing => isInstead(drift, record));
    if (instead !== undefined) [instead.kind, instead.reason] = ["different", "value"];
    this.#result.drifts.push(extra);
  }

  /** Claims of a recent row are skipped like the row itself, however old they are. */
  #isLeft(drift: Different | Extra): boolean {
    const { record } = drift;
    if (isLeased(record)) return Boolean((this.#result.leased += 1));
    const isYoung =
      this.#young.has(record.source.id) ||
      (drift.action === "replace" && this.#young.has(drift.want.source.id));
    if (isYoung) return true;
    if (isRecentRecord(record, this.#recency)) return Boolean((this.#result.recent += 1));
    return false;
  }

  #uses(id: string, key: string): boolean {
    return this.#names.get(id)?.keys.has(key) === true;
  }
}

/** Whether this missing name of the same row and type replaces the name of the record. */
const isInstead = (drift: Drift, { source, bucket }: ClaimRecord): boolean =>
  drift.action === "create" &&
  drift.kind === "missing" &&
  drift.want.source.id === source.id &&
  drift.want.bucket.type === bucket.type;

export function differenceOf(want: NamedClaim, record: ClaimRecord): Different {
  const isSameRow = want.source.type === record.source.type && want.source.id === record.source.id;
  const isSameSubject = want.subject.type === record.subject.type && want.subject.id === record.subject.id;
  const isSameSpelling = want.bucket.value === record.bucket.value;
  const reason = !isSameRow ? "row" : !isSameSubject ? "subject" : isSameSpelling ? "scope" : "spelling";
  return { action: "replace", kind: "different", reason, want, record };
}

/** What the digests of one segment show. */
export interface DigestComparison {
  /** Ranges whose records have to be compared, in order. Adjacent ranges are joined. */
  unequal: IdRange[];
  /** One entry for each range, in order. */
  counts: (RangeCounts & Pick<IdRange, "upTo">)[];
  /** The end of the segment. Undefined: the end of the table, including records beyond its last row. */
  upTo: string | undefined;
}

interface SegmentScan {
  records: VerificationPorts["records"];
  types: Types;
  table: VerifiedTable;
  after: string;
  /** The last source id that this pass reads. Undefined: the end of the table. */
  end: string | undefined;
  recentMs: number;
  pageRows: number;
  rangeRows: number;
  /** How many ranges one call may have. */
  ranges: number;
}

interface LocalRange extends IdRange {
  rows: number;
  sum: DigestSum;
  /** The digest cannot prove this range equal: it has a recent row, or a value that is not a name. */
  needsRecords: boolean;
}

interface LocalDigests {
  local: LocalRange[];
  upTo: string | undefined;
}

/**
 * Reads the rows of the next segment and finds the ranges whose digests differ from the coordinator's. Keeps
 * only the sums in memory, not the rows.
 */
export async function compareDigests(scan: SegmentScan): Promise<DigestComparison> {
  const { local, upTo } = await digestRows(scan);
  const { source, bucketTypes } = scan.table;
  const ranges = local.map((range) => ({ after: range.after, upTo: range.upTo }));
  const { asOfMs, digests } = await scan.records.digests({ source, bucketTypes, ranges });
  const comparison: DigestComparison = { unequal: [], counts: [], upTo };
  for (const [index, range] of local.entries()) {
    const isEqual = isProof(range, digests[index], asOfMs - scan.recentMs);
    if (!isEqual) addUnequal(comparison.unequal, range);
    const [rows, claims] = isEqual ? [range.rows, range.sum.count] : [0, 0];
    comparison.counts.push({ upTo: range.upTo, rows, claims, ranges: 1, equalRanges: isEqual ? 1 : 0 });
  }
  return comparison;
}

/**
 * Equal digests prove nothing in a range with a hold or a recent change, because the lease may still end
 * either way, and the two sides were not read at the same moment. In any other range nothing has changed
 * between the two reads (V4).
 */
function isProof(
  { sum, needsRecords }: LocalRange,
  digest: RangeDigest | undefined,
  unchangedSinceMs: number,
): boolean {
  if (needsRecords || digest === undefined || digest.held) return false;
  if (digest.newestUpdatedAtMs !== undefined && digest.newestUpdatedAtMs > unchangedSinceMs) return false;
  return digest.count === sum.count && digest.hash === sum.hash;
}

function addUnequal(unequal: IdRange[], { after, upTo }: IdRange): void {
  const last = unequal.at(-1);
  if (last !== undefined && last.upTo === after) last.upTo = upTo;
  else unequal.push({ after, upTo });
}

/** Ranges continue across pages, so only the last range of a table is shorter than `rangeRows`. */
async function digestRows({
  table,
  after,
  end,
  recentMs,
  pageRows,
  rangeRows,
  ranges,
  types,
}: SegmentScan): Promise<LocalDigests> {
  const local: LocalRange[] = [];
  let open: VerifiedRow[] = [];
  let from = after;
  for (let read = 0, last = after; ;) {
    const limit = Math.min(pageRows, ranges * rangeRows - read);
    const rows = await table.page({ after: last, upTo: end, limit });
    checkOrder(table, last, rows);
    read += rows.length;
    last = rows.at(-1)?.id ?? last;
    open.push(...rows);
    for (; open.length >= rangeRows; open = open.slice(rangeRows)) {
      const range = rangeOf(from, open.slice(0, rangeRows), recentMs, types);
      local.push(range);
      from = range.upTo ?? from;
    }
    if (rows.length < limit) return { local: upToTheEnd(local, from, open, end, recentMs, types), upTo: end };
    if (read >= ranges * rangeRows) return { local, upTo: last };
  }
}

/** Extends the last range to the end, so that it covers records beyond the last row. */
function upToTheEnd(
  local: LocalRange[],
  from: string,
  open: readonly VerifiedRow[],
  end: string | undefined,
  recentMs: number,
  types: Types,
): LocalRange[] {
  const last = open.length > 0 ? undefined : local.pop();
  return [...local, { ...(last ?? rangeOf(from, open, recentMs, types)), upTo: end }];
}

function rangeOf(after: string, rows: readonly VerifiedRow[], recentMs: number, types: Types): LocalRange {
  const range: LocalRange = {
    after,
    upTo: rows.at(-1)?.id,
    rows: rows.length,
    sum: new DigestSum(),
    needsRecords: false,
  };
  for (const row of rows) {
    const { names, duplicates, unnameable } = namesOf(types, row.claims);
    for (const name of names) range.sum.add(digestWordsOf(digestedOf(types, name)));
    range.needsRecords ||= unnameable.length > 0 || duplicates.length > 0 || isRecentRow(row, recentMs);
  }
  return range;
}
