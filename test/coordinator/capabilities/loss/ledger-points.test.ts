import { expect, test } from "vitest";
import { LedgerPoints } from "../../../../src/coordinator/capabilities/loss/ledger-points.ts";
import { shardSchema } from "../../../../src/coordinator/kernel/shard/schema.ts";
import { ShardLog } from "../../../../src/coordinator/kernel/shard/shard-log.ts";
import { migrate } from "../../../support/migrate.ts";
import { NodeSql } from "../../../support/node-sql.ts";

const LOG_ROWS = 16_384;

function newSql(): NodeSql {
  const sql = new NodeSql();
  migrate(sql, shardSchema);
  return sql;
}

/** The log of an instance, and the points of ledgers that it has. */
function logOf(sql: NodeSql): [ShardLog, LedgerPoints] {
  const log = new ShardLog(sql, { now: () => 1_000 });
  const points = new LedgerPoints(log);
  log.sightings.provide(points);
  return [log, points];
}

const transact = (sql: NodeSql, log: ShardLog, work: () => void): void =>
  sql.transaction(["exchange"], () => {
    work();
    log.append();
  });

test("[H3] what is known of a ledger survives the row that it was written in", () => {
  const sql = newSql();
  const [log, points] = logOf(sql);
  const told = [
    ["1", { incarnation: 7, position: 70 }],
    ["2", { incarnation: 8, position: 80 }],
  ] as const;
  for (const [cell, point] of told) transact(sql, log, () => points.note(cell, point, null));
  transact(sql, log, () => points.note("2", { incarnation: 8, position: 81 }, null));
  for (let round = 0; round < 2 * LOG_ROWS; round += 1) transact(sql, log, () => {});
  const [, later] = logOf(sql);
  expect(later.of("1")).toEqual({ incarnation: 7, position: 70 });
  expect(later.of("2")).toEqual({ incarnation: 8, position: 81 });
  expect(later.of("3")).toBeUndefined();
});

test("[H5] the point of another incarnation counts only after the stored point was confirmed", () => {
  const sql = newSql();
  const [log, points] = logOf(sql);
  const [first, second] = [
    { incarnation: 7, position: 70 },
    { incarnation: 9, position: 60 },
  ];
  transact(sql, log, () => points.note("1", first, null));
  transact(sql, log, () => points.note("1", second, null));
  transact(sql, log, () => points.note("1", second, { incarnation: 7, position: 69 }));
  expect(points.of("1")).toEqual(first);
  transact(sql, log, () => points.note("1", second, first));
  expect(points.of("1")).toEqual(second);
  // A late message of the earlier instance changes nothing.
  transact(sql, log, () => points.note("1", { incarnation: 7, position: 99 }, null));
  expect(points.of("1")).toEqual(second);
});

test("[H3] a transaction that changes nothing stores nothing of the ledgers", () => {
  const [log, points] = logOf(newSql());
  points.note("1", { incarnation: 7, position: 70 }, null);
  log.discard();
  expect(points.of("1")).toBeUndefined();
});
