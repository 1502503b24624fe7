/** Tests of the counts that a removal shows: in bounded messages, from the index alone. */
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import type { Result } from "../../../../src/coordinator/kernel/refusal.ts";
import type {
  CellClaimCounts,
  CellClaimPosition,
  ClaimCount,
} from "../../../../src/coordinator/capabilities/removal/messages.ts";
import { migrate } from "../../../support/migrate.ts";
import {
  countStatement,
  lastCountedStatement,
} from "../../../../src/coordinator/capabilities/removal/shard.ts";
import { shardSchema } from "../../../../src/coordinator/kernel/shard/schema.ts";
import { Cluster } from "../../../support/cluster.ts";
import { own } from "../../../support/go-back.ts";
import { NodeSql } from "../../../support/node-sql.ts";

test("[M7] each message counts a bounded number of claims, and together they count each once", async () => {
  const c = await Cluster.start({ shards: 1, limits: { scanRows: 3 } });
  for (const name of ["a", "b", "c", "d", "e", "f", "g"]) await own(c, "1", name);
  await own(c, "2", "other");
  const counts: ClaimCount[] = [];
  let messages = 0;
  for (let behind: CellClaimPosition | null = null, isDone = false; !isDone; messages += 1) {
    const answer: Result<CellClaimCounts> = await c.clock.runUntil(
      c.shard(0).object.countCellClaims({ ...c.envelope, cell: "1", behind }),
    );
    if (!answer.ok) throw new Error(answer.refusal.detail);
    counts.push(...answer.value.counts);
    behind = answer.value.next;
    isDone = behind === null;
  }
  expect(counts.map(({ claims }) => claims)).toEqual([3, 3, 1]);
  expect(messages).toBe(3);
});

test("[M7] counts are read from the index alone", () => {
  const sql = new NodeSql(new DatabaseSync(":memory:"));
  migrate(sql, shardSchema);
  for (const statement of [countStatement, lastCountedStatement]) {
    const plan = sql.database.prepare(`EXPLAIN QUERY PLAN ${statement}`).all("1", 0, "", 0, "", 10);
    expect(JSON.stringify(plan)).toContain("USING COVERING INDEX claim_by_source (cell=? AND");
    expect(JSON.stringify(plan)).not.toContain("FOR ORDER BY");
  }
});
