import type { LeaseState, Op } from "../../../../src/coordinator/kernel/messages.ts";
import type { RangeHoldRow } from "../../../../src/coordinator/capabilities/transfer/range-holds.ts";
import type { ClaimRow, HoldRow } from "../../../../src/coordinator/kernel/shard/rows.ts";
import { sourceType, subjectType } from "../../../support/types.ts";
import { nameKey, type LocalRow } from "../local.ts";
import type { Part } from "../part.ts";

/** A row of a ledger's table `lease`. */
export interface LedgerRow {
  lease: string;
  /** 0: granted. 1: an outcome. 2: a fence of a lease without a running begin. */
  decided: 0 | 1 | 2;
  state: LeaseState;
  fence: 0 | 1;
  pending: 0 | 1;
  position: number;
  created_position: number;
  created_at_ms: number;
  decided_at_ms: number | null;
  incarnation: number;
  counter: number;
  epochs: string | null;
  payload: string | null;
  creates: number;
  destroys: number;
  replaces: number;
  missing: number;
  decided_by: string | null;
  reason: string | null;
  /** The source and the scope of a transfer. */
  transfer: string | null;
}

/** The durable state of a lease, and what the judge saw of it. */
export interface Facts {
  cell: string;
  lease: string;
  state: LeaseState;
  /** The execution that was granted. A fence has none. */
  execution: { incarnation: number; counter: number; epochs: Record<string, number> } | undefined;
  ops: Op[];
  /** The current row. */
  row: LedgerRow;
  isApplied: boolean;
  seenAtMs: number;
  /** When the decision became durable. */
  decidedAtMs?: number;
  /** The position of the last change. */
  position: number;
  createdPosition: number;
}

/** What a shard has stored of its placement, and of a growth. */
export interface GrowingShard {
  /** The number of shards of its placement. 0: it has none. */
  shards: number;
  /** The number of shards before, while it still has rows of names that it serves no more. */
  fencedFrom: number | undefined;
  /** The sources that have handed over, while some have not. */
  target: { from: number; active: ReadonlySet<number> } | undefined;
}

/** The durable rows of a shard. */
export interface ShardImage {
  version: number;
  /** All rows, also copies of names that another shard serves. */
  stored: { claims: ReadonlyMap<string, ClaimRow>; holds: ReadonlyMap<string, HoldRow> };
  growing: GrowingShard;
  /** The rows about names whose rows here count (`Evidence.homeOf`). */
  claims: Map<string, ClaimRow>;
  holds: Map<string, HoldRow>;
  /** By source and scope (`rangeKey`). */
  ranges: Map<string, RangeHoldRow>;
  /** The number of claims that have ended. */
  pastClaims: number;
  /** How often the disk had gone back when it was read. */
  wentBack: number;
}

const rangeKey = (cell: string, scope: string | null): string => JSON.stringify([cell, scope]);

export const rangesByKey = (rows: readonly RangeHoldRow[]): Map<string, RangeHoldRow> =>
  new Map(rows.map((row) => [rangeKey(row.from_cell, row.scope), row]));

/** Returns the same range hold among others. */
export const sameRange = (
  ranges: ReadonlyMap<string, RangeHoldRow> | undefined,
  { from_cell: from, scope, epoch }: RangeHoldRow,
): RangeHoldRow | undefined => {
  const range = ranges?.get(rangeKey(from, scope));
  return range?.epoch === epoch ? range : undefined;
};

/** Returns the range hold whose transfer moves a claim. */
export const rangeOver = (
  ranges: ReadonlyMap<string, RangeHoldRow> | undefined,
  claim: Pick<ClaimRow, "cell" | "scope"> | undefined,
): RangeHoldRow | undefined => claim && ranges?.get(rangeKey(claim.cell, claim.scope));

export const attemptOf = (
  cell: string,
  { incarnation, counter }: { incarnation: number; counter: number },
): string => `${cell}/${incarnation}.${counter}`;
export const factKey = (cell: string, lease: string): string => `${cell}/${lease}`;
export const rowKey = ({ bucket_type, canonical }: Pick<HoldRow, "bucket_type" | "canonical">): string =>
  nameKey({ type: bucket_type, canonical });

/** The position up to which a ledger has examined its leases. */
export function throughOf(ledger: Part<object>): number {
  const [applied] = ledger.disk.readDurable<{ value: number }>(
    "SELECT value ->> 'through' AS value FROM meta WHERE name = 'applied'",
  );
  return applied?.value ?? 0;
}

/** Whether a ledger knows that all shards have applied a decision. A fence has nothing to apply. */
export const isApplied = (row: LedgerRow, through: number): boolean =>
  row.fence === 1 || (row.decided === 1 && row.pending === 0 && row.created_position <= through);

/** Whether a replace is held as a create, because nobody has its name (B12). */
export const isHeldAsCreate = (hold: HoldRow, { kind }: Op): boolean =>
  kind === "replace" && hold.kind === "create";

export const isHoldOf = (hold: HoldRow, { cell, lease, execution }: Facts, op: Op): boolean =>
  hold.cell === cell &&
  hold.lease === lease &&
  (hold.kind === op.kind || isHeldAsCreate(hold, op)) &&
  hold.incarnation === execution?.incarnation &&
  hold.counter === execution.counter &&
  hold.epoch === execution.epochs[op.shard] &&
  (hold.granted_by === null || hold.granted_by === op.shard);

/** Whether a claim matches a row of the cell in every field. */
export const isClaimOf = (
  { value, subject, source }: LocalRow,
  cell: string,
  claim: ClaimRow | undefined,
): boolean =>
  claim?.cell === cell &&
  claim.value === value &&
  claim.subject_type === subjectType(subject.type) &&
  claim.subject_id === subject.id &&
  claim.source_type === sourceType(source.type) &&
  claim.source_id === source.id;
