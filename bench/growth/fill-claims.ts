import { randomUUID } from "node:crypto";
import { digestWordsOf } from "../../src/common/digest.ts";
import { raiseIncarnation } from "../../src/coordinator/kernel/instances.ts";
import { shardOf } from "../../src/coordinator/kernel/placement.ts";
import { ShardLog } from "../../src/coordinator/kernel/shard/shard-log.ts";
import { sourceOrder } from "../../src/common/source-order.ts";
import { bucketType, sourceOf, subjectOf } from "../../test/support/types.ts";
import { inSteps } from "./in-steps.ts";
import { storedNames, type Name } from "./numbered-names.ts";
import type { FileSql } from "./objects.ts";
import { cellIds, type Variant } from "./variants.ts";

/** Fills the same columns as `ShardStore.apply`. */
const INSERT = `INSERT INTO claim (bucket_type, canonical, value, uuid, cell, subject_type, subject_id,
                                   source_type, source_id, source_order, epoch, created_at_ms, updated_at_ms,
                                   digest_0, digest_1, digest_2, digest_3)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

interface NewClaim extends Name {
  cell: string;
  id: string;
}

export async function fillClaims(shards: readonly FileSql[], { claims, cells }: Variant): Promise<void> {
  const names = storedNames();
  const owners = cellIds(cells);
  // Claims are inserted in the order of their names, with ascending ids, so the rows of both indexes arrive
  // nearly in order.
  const order = names.inNameOrder(claims);
  const nowMs = Date.now();
  await inSteps(claims, (from, to) => {
    const made = Array.from({ length: to - from }, (_, offset): NewClaim => {
      const sequence = from + offset;
      const index = order.next().value ?? 0;
      return { ...names.at(index), cell: owners[sequence % owners.length] ?? "1", id: String(sequence + 1) };
    });
    for (const [shard, own] of Map.groupBy(made, ({ canonical }) =>
      shardOf(bucketType("ROUTES"), canonical, shards.length),
    )) {
      const sql = shards[shard];
      if (sql !== undefined) insertInto(sql, own, nowMs);
    }
  });
}

function insertInto(sql: FileSql, claims: readonly NewClaim[], nowMs: number): void {
  const type = bucketType("ROUTES");
  const log = new ShardLog(sql, { now: () => nowMs });
  raiseIncarnation(sql, randomUUID(), log.position + 1);
  sql.transaction([], () => {
    for (const { canonical, value, cell, id } of claims) {
      const epoch = log.nextEpoch();
      const subject = subjectOf("NAMESPACE", id);
      const source = sourceOf("RAILS_TABLE_ROUTES", id);
      const words = digestWordsOf({
        type,
        canonical,
        value,
        subject,
        source,
        scope: null,
      });
      sql.all(
        INSERT,
        type,
        canonical,
        value,
        randomUUID(),
        cell,
        subject.type,
        subject.id,
        source.type,
        source.id,
        sourceOrder(id),
        epoch,
        nowMs,
        nowMs,
        ...words,
      );
    }
    log.append();
    return null;
  });
}
