import type { BucketKey, Decision } from "../messages.ts";
import type { Sql } from "../ports.ts";
import { digestWordsOfHold } from "./digest-words.ts";
import type { HookLists } from "../half.ts";
import type { HeldEntry } from "./held-names.ts";
import { nameOf } from "./hold-entries.ts";
import type { ShardHooks } from "./hooks.ts";
import { ManyRows } from "./many-rows.ts";
import { notNull } from "./record.ts";
import {
  bucketText,
  CHANGED_COLUMNS,
  type ChangedClaimRow,
  claimTable,
  type Claimant,
  type ClaimRow,
  type Holding,
  type HoldRow,
} from "./rows.ts";
import type { ShardLog } from "./shard-log.ts";

/** What a bucket has: everything that a prepare needs to know of it. */
export interface Occupants {
  claim: Claimant | undefined;
  hold: Holding | undefined;
}

type OccupantRow = Pick<ClaimRow, "bucket_type" | "canonical"> &
  (Claimant | { [Column in keyof Claimant]: null });

const OCCUPANTS = new ManyRows(
  2,
  (keys) => `SELECT column1 AS bucket_type, column2 AS canonical,
      claim.cell, claim.subject_type, claim.subject_id, claim.source_type, claim.source_id,
      claim.scope, claim.epoch
    FROM (VALUES ${keys}) LEFT JOIN claim ON claim.bucket_type = column1 AND claim.canonical = column2`,
);

const INSERT_CLAIMS = new ManyRows(
  claimTable.names.length,
  (claims) => `INSERT INTO claim (${claimTable.names.join(", ")}) VALUES ${claims}`,
);

/** Five claims fit into a statement with 100 parameters. */
export function insertClaims(sql: Sql, claims: readonly ClaimRow[]): void {
  INSERT_CLAIMS.all(
    sql,
    claims.map((claim) => claimTable.valuesOf(claim)),
  );
}

const READ_CLAIMS = new ManyRows(
  2,
  (keys) => `SELECT * FROM claim WHERE (bucket_type, canonical) IN (VALUES ${keys})`,
);

/** Returns the claims on these keys, by `bucketText`. */
export function claimsOn(sql: Sql, keys: readonly BucketKey[]): Map<string, ClaimRow> {
  const rows = READ_CLAIMS.all<ClaimRow>(
    sql,
    keys.map(({ type, canonical }) => [type, canonical]),
  );
  return new Map(rows.map((row) => [bucketText(row.bucket_type, row.canonical), row]));
}

const DELETE_CLAIMS = new ManyRows(
  2,
  (keys) => `DELETE FROM claim WHERE (bucket_type, canonical) IN (VALUES ${keys})
    RETURNING ${CHANGED_COLUMNS}`,
);

/** What a shard has of names: the SQL statements on its claims, and its holds. It makes no decisions. */
export class ShardStore {
  readonly #sql: Sql;
  readonly #log: Pick<ShardLog, "held" | "nextEpoch">;
  readonly #hooks: Pick<HookLists<ShardHooks>, "claimsEnding" | "holdChanged">;
  readonly #onChange: (cell: string) => void;
  #hasChanged = false;

  /** @param onChange is called with the cell of each hold that is made or ends */
  constructor(
    sql: Sql,
    log: Pick<ShardLog, "held" | "nextEpoch">,
    hooks: Pick<HookLists<ShardHooks>, "claimsEnding" | "holdChanged">,
    onChange: (cell: string) => void = () => {},
  ) {
    this.#sql = sql;
    this.#log = log;
    this.#hooks = hooks;
    this.#onChange = onChange;
  }

  /** Returns whether claims or holds were changed since the last call. */
  takeChanged(): boolean {
    const hasChanged = this.#hasChanged;
    this.#hasChanged = false;
    return hasChanged;
  }

  claim({ type, canonical }: BucketKey): ClaimRow | undefined {
    return this.#sql.all<ClaimRow>(
      "SELECT * FROM claim WHERE bucket_type = ? AND canonical = ?",
      type,
      canonical,
    )[0];
  }

  /** Returns some claims of a cell, in the order of the index by source. */
  claimsOf(cell: string, limit: number): { type: number; canonical: string; epoch: number }[] {
    return this.#sql.all(
      `SELECT bucket_type AS type, canonical, epoch FROM claim WHERE cell = ?
        ORDER BY source_type, source_order, bucket_type, canonical LIMIT ?`,
      cell,
      limit,
    );
  }

  holdOn(bucketType: number, canonical: string): HoldRow | undefined {
    return this.#log.held.on(bucketText(bucketType, canonical));
  }

  /** Returns the holds on these keys, by `bucketText`. */
  holdsOn(keys: readonly BucketKey[]): Map<string, HoldRow> {
    return new Map(
      keys.flatMap(({ type, canonical }): [string, HoldRow][] => {
        const name = bucketText(type, canonical);
        const hold = this.#log.held.on(name);
        return hold === undefined ? [] : [[name, hold]];
      }),
    );
  }

  /** Returns the holds that a decision may end: those of its execution, or on the names of a release. */
  holdsOf({ epoch, grantedBy, keys }: Decision): HoldRow[] {
    if (epoch === null) return [...this.holdsOn(keys ?? []).values()];
    return this.#entriesOf(epoch, grantedBy).flatMap((entry) => this.#log.held.holdsOf(entry));
  }

  countHoldsOf({ epoch, grantedBy, keys = [] }: Decision): number {
    if (epoch === null) return keys.length;
    return this.#entriesOf(epoch, grantedBy).reduce((sum, { left }) => sum + left, 0);
  }

  #entriesOf(epoch: number, grantedBy: number | undefined): HeldEntry[] {
    return this.#log.held.ofExecution({ epoch, granted_by: grantedBy ?? null });
  }

  /** Returns the claims and holds of buckets, by `bucketText`. */
  occupants(keys: readonly BucketKey[]): Map<string, Occupants> {
    const rows = OCCUPANTS.all<OccupantRow>(
      this.#sql,
      keys.map(({ type, canonical }) => [type, canonical]),
    );
    return new Map(
      rows.map((row) => {
        const name = bucketText(row.bucket_type, row.canonical);
        const claim = row.cell === null ? undefined : row;
        return [name, { claim, hold: this.#log.held.holding(name) }];
      }),
    );
  }

  insertHolds(holds: readonly HoldRow[]): void {
    this.#log.held.add(holds, () => this.#log.nextEpoch());
    this.#changed(holds, true);
  }

  deleteHolds(holds: readonly HoldRow[]): void {
    this.#log.held.end(holds.map(nameOf));
    this.#changed(holds, false);
  }

  /**
   * Carries out committed holds. The prepares have checked that a create has no claim, and that a destroy or
   * replace has one. Capabilities see claims before they end (K1).
   *
   * @returns the claims that were ended, or that a replace has changed, by `bucketText`
   */
  apply(holds: readonly HoldRow[], nowMs: number): Map<string, ChangedClaimRow> {
    const { create = [], destroy = [], replace = [] } = Object.groupBy(holds, ({ kind }) => kind);
    insertClaims(
      this.#sql,
      create.map((hold) => claimOf(hold, nowMs)),
    );
    const ends = [...destroy, ...replace];
    for (const ending of this.#hooks.claimsEnding) ending(ends, nowMs);
    const changed = DELETE_CLAIMS.all<ChangedClaimRow>(this.#sql, destroy.map(keyOf));
    for (const hold of replace) changed.push(...this.#replace(hold, nowMs));
    return new Map(changed.map((row) => [bucketText(row.bucket_type, row.canonical), row]));
  }

  #replace(hold: HoldRow, nowMs: number): ChangedClaimRow[] {
    return this.#sql.all<ChangedClaimRow>(
      `UPDATE claim SET (value, subject_type, subject_id, source_type, source_id, source_order, scope, epoch,
                         updated_at_ms, digest_0, digest_1, digest_2, digest_3)
                      = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        WHERE bucket_type = ? AND canonical = ?
        RETURNING ${CHANGED_COLUMNS}`,
      hold.value,
      hold.subject_type,
      hold.subject_id,
      hold.source_type,
      hold.source_id,
      hold.source_order,
      hold.scope,
      hold.epoch,
      nowMs,
      ...digestWordsOfHold(hold),
      ...keyOf(hold),
    );
  }

  #changed(holds: readonly HoldRow[], isHeld: boolean): void {
    if (holds.length > 0) this.#hasChanged = true;
    for (const { cell, bucket_type: type, canonical } of holds) {
      this.#onChange(cell);
      for (const changed of this.#hooks.holdChanged) changed({ type, canonical }, isHeld);
    }
  }
}

function claimOf(hold: HoldRow, nowMs: number): ClaimRow {
  const [digest_0, digest_1, digest_2, digest_3] = digestWordsOfHold(hold);
  const { bucket_type, canonical, cell, scope, epoch, held_at_ms: created_at_ms } = hold;
  return {
    bucket_type,
    canonical,
    value: notNull(hold.value),
    uuid: notNull(hold.uuid),
    cell,
    subject_type: notNull(hold.subject_type),
    subject_id: notNull(hold.subject_id),
    source_type: notNull(hold.source_type),
    source_id: notNull(hold.source_id),
    source_order: notNull(hold.source_order),
    scope,
    epoch,
    created_at_ms,
    updated_at_ms: nowMs,
    digest_0,
    digest_1,
    digest_2,
    digest_3,
  };
}

const keyOf = ({ bucket_type, canonical }: HoldRow): [type: number, canonical: string] => [
  bucket_type,
  canonical,
];
