import { expect, test } from "vitest";
import { migrate, readMetaNumber } from "../../../src/core/meta.ts";
import { ShardStore } from "../../../src/core/shard/store.ts";
import { shardSchema } from "../../../src/core/shard/schema.ts";
import { NodeSql } from "../../support/node-sql.ts";

const give = (sql: NodeSql, store: ShardStore, grants: number): number[] => {
  const given: number[] = [];
  for (let grant = 0; grant < grants; grant += 1)
    sql.transaction(["exchange"], () => {
      given.push(store.raiseEpoch());
      store.reserveEpochs();
    });
  return given;
};

test("[E1] 1,000 epochs are reserved by one row, and no instance assigns one a second time", () => {
  const sql = new NodeSql();
  migrate(sql, shardSchema);
  const before = sql.counts.transactions;
  const first = give(sql, new ShardStore(sql), 2_500);
  // A transaction that writes nothing is not counted.
  expect(sql.counts.transactions - before).toBe(3);
  expect(readMetaNumber(sql, "epoch")).toBeGreaterThanOrEqual(first.at(-1) ?? Infinity);
  const second = give(sql, new ShardStore(sql), 3);
  const third = give(sql, new ShardStore(sql), 3);
  const all = [...first, ...second, ...third];
  expect(all).toEqual(all.toSorted((a, b) => a - b));
  expect(new Set(all).size).toBe(all.length);
});
