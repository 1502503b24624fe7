/** Tests of the search for the names of a subject, which has no index: in bounded messages. */
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import type { Result } from "../../../../src/coordinator/kernel/refusal.ts";
import type { BucketKey } from "../../../../src/coordinator/kernel/messages.ts";
import type { FoundNames } from "../../../../src/coordinator/capabilities/records/messages.ts";
import { migrate } from "../../../support/migrate.ts";
import {
  findStatement,
  lastVisitedStatement,
} from "../../../../src/coordinator/capabilities/records/scan-store.ts";
import { shardSchema } from "../../../../src/coordinator/kernel/shard/schema.ts";
import { Cluster } from "../../../support/cluster.ts";
import { own } from "../../../support/go-back.ts";
import { NodeSql } from "../../../support/node-sql.ts";
import { subjectOf } from "../../../support/types.ts";

const subject = { type: "USER", id: "42" } as const;

async function search(c: Cluster, limit: number): Promise<{ names: string[]; messages: number }> {
  const { type, id } = subjectOf(subject.type, subject.id);
  const names: string[] = [];
  for (let behind: BucketKey | null = null, messages = 1; ; messages += 1) {
    const answer: Result<FoundNames> = await c.clock.runUntil(
      c.shard(0).object.findNames({ ...c.envelope, subjectType: type, subjectId: id, behind, limit }),
    );
    if (!answer.ok) throw new Error(answer.refusal.detail);
    names.push(...answer.value.keys.map(({ canonical }) => canonical));
    behind = answer.value.next;
    if (behind === null) return { names, messages };
  }
}

/** A shard with seven claims of two cells, three of which have the subject. */
async function withClaims(): Promise<Cluster> {
  const c = await Cluster.start({ shards: 1, limits: { scanRows: 3 } });
  for (const name of ["b", "d", "e", "f"]) await own(c, "1", name);
  for (const [cell, value] of [
    ["1", "a"],
    ["2", "c"],
    ["1", "g"],
  ] as const)
    await own(c, cell, { value, subject });
  return c;
}

test("[M7] each message visits few claims, and together they find each name once", async () => {
  const c = await withClaims();
  expect(await search(c, 10)).toEqual({ names: ["a", "c", "g"], messages: 3 });
  expect((await search(c, 1)).names).toEqual(["a", "c", "g"]);
});

test("[M7] the search goes through the primary key from where it stopped", () => {
  const sql = new NodeSql(new DatabaseSync(":memory:"));
  migrate(sql, shardSchema);
  for (const [statement, bindings] of [
    [findStatement, [0, "", 3, 1, "42", 10]],
    [lastVisitedStatement, [0, "", 2]],
  ] as const) {
    const plan = JSON.stringify(sql.database.prepare(`EXPLAIN QUERY PLAN ${statement}`).all(...bindings));
    expect(plan).toContain("SEARCH claim USING PRIMARY KEY ((bucket_type,canonical)>(?,?))");
    expect(plan).not.toContain("FOR ORDER BY");
  }
});
