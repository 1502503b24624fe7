import type { ClaimRecord, Source } from "../../client/api-types.ts";
import type { Types } from "../../../common/types/types.ts";
import {
  isSame,
  keyOfRecord,
  namesOf,
  type NamedClaim,
  type RowNames,
  type Unnameable,
} from "./row-names.ts";
import type { VerifiedRow } from "./ports.ts";

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
