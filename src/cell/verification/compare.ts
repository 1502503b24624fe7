import type { Record as ClaimRecord } from "../../client/api-types.ts";
import type { Different, Drift, Extra, Missing } from "./drift.ts";
import { isSame, keyOfRecord, namesOf, type NamedClaim, type RowNames, type Unnameable } from "./named.ts";
import type { VerifiedRow } from "./ports.ts";

export interface Comparison {
  /** Claims that the rows stand for. */
  claims: number;
  drifts: Drift[];
  unnameable: Unnameable[];
  /** Names that two rows have: the one without the claim. */
  duplicates: NamedClaim[];
  /** Rows and records that are too young to be judged, and records that a lease is at work on. */
  recent: number;
  leased: number;
  /** Keys of names that rows use without having their claims, and that nothing is done about now: nobody may give them up. */
  wanted: string[];
}

export interface Recency {
  recentMs: number;
  /** The coordinator's clock when the records were read. */
  asOfMs: number;
}

/** Compares the rows and the records of one range of source ids: all of both must be there. */
export function compare(
  rows: readonly VerifiedRow[],
  records: readonly ClaimRecord[],
  recency: Recency,
): Comparison {
  return new Comparer(rows, records, recency).run();
}

export const isRecentRow = ({ ageMs }: VerifiedRow, recentMs: number): boolean =>
  ageMs !== undefined && ageMs < recentMs;

export const isRecentRecord = (
  { updated_at: updatedAt }: ClaimRecord,
  { recentMs, asOfMs }: Recency,
): boolean => asOfMs - Date.parse(updatedAt) < recentMs;

/** A replace in flight shows the old record, ACTIVE, with the lease's uuid. */
export const isLeased = ({ status, lease_uuid: lease }: ClaimRecord): boolean =>
  status !== "ACTIVE" || lease !== null;

class Comparer {
  readonly #rows: readonly VerifiedRow[];
  readonly #recency: Recency;
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
    wanted: [],
  };

  constructor(rows: readonly VerifiedRow[], records: readonly ClaimRecord[], recency: Recency) {
    this.#rows = rows;
    this.#recency = recency;
    this.#records = new Map(records.map((record) => [keyOfRecord(record), record]));
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
    const read = namesOf(row.claims);
    const { names, duplicates, unnameable } = read;
    this.#names.set(row.id, read);
    this.#result.claims += names.length;
    if (isRecentRow(row, this.#recency.recentMs)) {
      this.#young.add(row.id);
      this.#result.recent += 1;
    } else {
      this.#result.unnameable.push(...unnameable);
      this.#result.duplicates.push(...duplicates);
    }
    // What no claim can be made of is a name in use all the same, whichever row has its claim.
    const named = new Set(names.map(({ key }) => key));
    for (const key of read.keys)
      if (!named.has(key) && this.#records.get(key)?.source.id !== row.id) this.#result.wanted.push(key);
  }

  /** Whether the record of this name is spoken for. */
  #match(id: string, name: NamedClaim): boolean {
    const record = this.#records.get(name.key);
    const { drifts, wanted, duplicates } = this.#result;
    if (record === undefined) {
      if (this.#young.has(id)) wanted.push(name.key);
      else drifts.push({ action: "create", kind: "missing", because: "no_claim", want: name });
      return false;
    }
    if (isSame(name, record)) return true;
    if (record.source.id !== id && this.#uses(record.source.id, name.key)) {
      // The record is that row's, which has a turn of its own.
      if (!this.#young.has(id)) duplicates.push(name);
      wanted.push(name.key);
      return false;
    }
    const different = differenceOf(name, record);
    if (this.#isLeft(different)) wanted.push(name.key);
    else drifts.push(different);
    return true;
  }

  #unmatched(record: ClaimRecord): void {
    if (this.#uses(record.source.id, keyOfRecord(record))) return;
    const names = this.#names.get(record.source.id)?.names;
    const hasAnother = names?.some(({ bucket }) => bucket.type === record.bucket.type) === true;
    const extra: Extra = hasAnother
      ? { action: "destroy", kind: "different", because: "value", record }
      : {
          action: "destroy",
          kind: "extra",
          because: names === undefined ? "row_gone" : "not_claimed",
          record,
        };
    if (this.#isLeft(extra)) return;
    const instead = this.#result.drifts.find((drift): drift is Missing => isInstead(drift, record));
    if (instead !== undefined) [instead.kind, instead.because] = ["different", "value"];
    this.#result.drifts.push(extra);
  }

  /** The claims of a row that was changed just now are left alone like the row itself, however old they are. */
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

/** The row of the record has another name of that kind now, which lacks its claim. */
const isInstead = (drift: Drift, { source, bucket }: ClaimRecord): boolean =>
  drift.action === "create" &&
  drift.kind === "missing" &&
  drift.want.source.id === source.id &&
  drift.want.bucket.type === bucket.type;

export function differenceOf(want: NamedClaim, record: ClaimRecord): Different {
  const isSameRow = want.source.type === record.source.type && want.source.id === record.source.id;
  const isSameSubject = want.subject.type === record.subject.type && want.subject.id === record.subject.id;
  const because = !isSameRow ? "row" : isSameSubject ? "spelling" : "subject";
  return { action: "replace", kind: "different", because, want, record };
}
