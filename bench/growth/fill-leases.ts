import { createHash, randomUUID } from "node:crypto";
import { raiseIncarnation } from "../../src/coordinator/kernel/instances.ts";
import { encodeExecutions } from "../../src/coordinator/kernel/ledger/executions.ts";
import { encodePayload } from "../../src/coordinator/kernel/ledger/payload.ts";
import { msOf, Positions } from "../../src/coordinator/kernel/ledger/position.ts";
import type { LeaseRow } from "../../src/coordinator/kernel/ledger/lease-table.ts";
import { LedgerStore, plainLease } from "../../src/coordinator/kernel/ledger/store.ts";
import type { AttemptId, Op } from "../../src/coordinator/kernel/messages.ts";
import { shardOf } from "../../src/coordinator/kernel/placement.ts";
import { newHold } from "../../src/coordinator/kernel/shard/prepare.ts";
import { ShardLog } from "../../src/coordinator/kernel/shard/shard-log.ts";
import { noShardHooks } from "../../src/coordinator/kernel/shard/hooks.ts";
import { ShardStore } from "../../src/coordinator/kernel/shard/store.ts";
import { payloadHash } from "../../src/coordinator/api/batch.ts";
import { bucketType, sourceOf, subjectOf } from "../../test/support/types.ts";
import { inSteps } from "./in-steps.ts";
import { outstandingNames, type NumberedNames } from "./numbered-names.ts";
import type { FileSql } from "./objects.ts";

/** The cell that owns all of the leases. */
export const CELL = "1";
const MINUTE_MS = 60_000;
/**
 * The times of the decisions, as ages. They are within the retention time of one day, so nothing is deleted
 * during a measurement.
 */
const DECIDED_MS = [12 * 60 * MINUTE_MS, 10 * MINUTE_MS] as const;
/** The times of the begins, as ages: after all decided leases, and too recent to be stale. */
const OUTSTANDING_MS = [5 * MINUTE_MS, MINUTE_MS] as const;

/** Writes leases of one ledger as an instance of it would, with an incarnation that no other instance has. */
export class LeaseFiller {
  readonly #sql: FileSql;
  readonly #store: LedgerStore;
  readonly #positions: Positions;
  readonly #nowMs = Date.now();
  readonly #incarnation: number;
  #attempts = 0;

  constructor(sql: FileSql) {
    this.#sql = sql;
    this.#store = new LedgerStore(sql, CELL);
    this.#positions = new Positions(this.#store.lastPosition());
    this.#incarnation = raiseIncarnation(sql, randomUUID(), this.#positions.last + 1);
  }

  /** Writes leases that are committed and applied by every shard, so their batches are no longer stored. */
  async decided(count: number): Promise<void> {
    await inSteps(count, (from, to) => {
      this.#sql.transaction([], () => {
        for (let index = from; index < to; index += 1) this.#store.insert(this.#decidedRow(index / count));
        const last = this.#store.lastPosition();
        this.#store.setApplied({ through: last, last }, { shards: {} });
        return null;
      });
    });
  }

  /** Writes granted leases, each with one create, and the hold in the shard of its name. */
  async outstanding(count: number, shards: readonly FileSql[]): Promise<void> {
    const names = outstandingNames();
    await inSteps(count, (from, to) => {
      const indexes = Array.from({ length: to - from }, (_, offset) => from + offset);
      const ops = indexes.map((index) => createOf(names, index, shards.length));
      const rows = new Map<Op, LeaseRow>(
        ops.map((op, offset) => [op, this.#grantedRow(op, (from + offset) / count)]),
      );
      for (const [shard, own] of Map.groupBy(ops, (op) => op.shard)) {
        const sql = shards[shard];
        if (sql !== undefined) this.#hold(sql, own, rows);
      }
      this.#sql.transaction([], () => {
        for (const row of rows.values()) this.#store.insert(row);
        return null;
      });
    });
  }

  /** Inserts the holds with the next epochs of the shard, and records these epochs in the leases. */
  #hold(sql: FileSql, ops: readonly Op[], rows: ReadonlyMap<Op, LeaseRow>): void {
    const log = new ShardLog(sql, { now: () => this.#nowMs });
    const store = new ShardStore(sql, log, noShardHooks());
    const shardIncarnation = raiseIncarnation(sql, randomUUID(), log.position + 1);
    sql.transaction([], () => {
      for (const op of ops) {
        const row = rows.get(op);
        if (row === undefined) continue;
        const epoch = log.nextEpoch();
        row.epochs = encodeExecutions(new Map([[op.shard, { epoch, incarnation: shardIncarnation }]]));
        const { lease, incarnation, counter, created_position: position } = row;
        const holder = { cell: CELL, lease, incarnation, counter, epoch };
        store.insertHolds([newHold(op, holder, randomUUID(), msOf(position))]);
      }
      log.append();
      return null;
    });
  }

  /** `done` is the position within the time span, from 0 to 1. */
  #decidedRow(done: number): LeaseRow {
    const position = this.#positionAt(DECIDED_MS, done);
    const lease = randomUUID();
    const common = this.#common(lease, position);
    const hash = createHash("sha256").update(lease).digest("hex");
    return {
      ...common,
      decided: 1,
      decided_at_ms: common.created_at_ms,
      state: "COMMITTED",
      payload_hash: hash,
      epochs: null,
      payload: null,
      decided_by: "cell",
      decided_by_key: null,
    };
  }

  #grantedRow(op: Op, done: number): LeaseRow {
    const common = this.#common(randomUUID(), this.#positionAt(OUTSTANDING_MS, done));
    const [hash, payload] = [payloadHash([op], false), encodePayload([op])];
    return {
      ...common,
      decided: 0,
      decided_at_ms: null,
      state: "GRANTED",
      payload_hash: hash,
      epochs: null,
      payload,
      decided_by: null,
      decided_by_key: null,
    };
  }

  #common(lease: string, position: number) {
    const attemptId: AttemptId = { incarnation: this.#incarnation, counter: ++this.#attempts };
    const counts = { creates: 1, destroys: 0, replaces: 0, missing: 0 };
    return {
      shards: 1,
      lease,
      position,
      created_position: position,
      created_at_ms: msOf(position),
      fence: 0 as const,
      ...attemptId,
      ...counts,
      reason: null,
      ...plainLease,
    };
  }

  #positionAt([fromMs, toMs]: readonly [number, number], done: number): number {
    return this.#positions.next(Math.floor(this.#nowMs - fromMs + (fromMs - toMs) * done));
  }
}

function createOf(names: NumberedNames, index: number, shards: number): Op {
  const { value, canonical } = names.at(index);
  const id = String(index + 1);
  return {
    kind: "create",
    index: 0,
    type: bucketType("ROUTES"),
    value,
    canonical,
    subject: subjectOf("NAMESPACE", id),
    source: sourceOf("RAILS_TABLE_ROUTES", id),
    shard: shardOf(bucketType("ROUTES"), canonical, shards),
  };
}
