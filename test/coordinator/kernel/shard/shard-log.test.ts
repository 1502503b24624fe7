import { expect, test } from "vitest";
import { migrate } from "../../../support/migrate.ts";
import { ShardLog } from "../../../../src/coordinator/kernel/shard/shard-log.ts";
import { shardSchema } from "../../../../src/coordinator/kernel/shard/schema.ts";
import { NodeSql } from "../../../support/node-sql.ts";

const clock = { now: () => 1_000 };
const LOG_ROWS = 16_384;

function newSql(): NodeSql {
  const sql = new NodeSql();
  migrate(sql, shardSchema);
  return sql;
}

const transact = (sql: NodeSql, log: ShardLog, work: () => void): void =>
  sql.transaction(["exchange"], () => {
    work();
    log.append();
  });

const rows = (sql: NodeSql): number => sql.all<{ n: number }>("SELECT count(*) AS n FROM log")[0]?.n ?? 0;

test("[E1] [H1] no instance assigns an epoch a second time, and each transaction is one row", () => {
  const sql = newSql();
  const assigned: number[] = [];
  for (let instance = 0; instance < 3; instance += 1) {
    const log = new ShardLog(sql, clock);
    for (let round = 0; round < 5; round += 1)
      transact(sql, log, () => {
        for (let execution = 0; execution < round; execution += 1) assigned.push(log.nextEpoch());
      });
  }
  expect(assigned).toEqual(assigned.toSorted((a, b) => a - b));
  expect(new Set(assigned).size).toBe(assigned.length);
  expect(rows(sql)).toBe(15);
  expect(new ShardLog(sql, clock).position).toBeGreaterThanOrEqual(assigned.at(-1) ?? Infinity);
});

test("[H1] the log keeps a constant number of rows, and each transaction raises the position", () => {
  const sql = newSql();
  const log = new ShardLog(sql, clock);
  let before = 0;
  for (let round = 0; round < LOG_ROWS + 100; round += 1) {
    transact(sql, log, () => {});
    expect(log.position).toBeGreaterThan(before);
    before = log.position;
  }
  expect(rows(sql)).toBe(LOG_ROWS);
  expect(new ShardLog(sql, clock).position).toBe(before);
});

test("[H4] an instance whose newest row is not on disk any more fails before it writes", () => {
  const sql = newSql();
  const log = new ShardLog(sql, clock);
  for (let round = 0; round < 3; round += 1) transact(sql, log, () => {});
  sql.database.exec("DELETE FROM log WHERE position = 3");
  expect(() => transact(sql, log, () => {})).toThrow("does not end with the row");
  expect(rows(sql)).toBe(2);
});
