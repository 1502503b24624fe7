import type { ClaimRecord } from "../../../src/core/messages.ts";
import type { SourceTypeName } from "../../../src/core/registry.ts";
import type { Cell } from "./cell.ts";
import { compareSources } from "./judge/source-order.ts";
import { nameKey } from "./local.ts";
import type { Random } from "./random.ts";
import type { Simulation } from "./simulation.ts";

/** Lists all of a cell's records of one source type in pages, shard by shard (R3). */
export async function scanRecords(simulation: Simulation, cell: Cell, random: Random): Promise<void> {
  const sourceType = random.pick(["RAILS_TABLE_ROUTES", "RAILS_TABLE_ROUTES", "RAILS_TABLE_USERS"] as const);
  for (const shard of simulation.coordinator.shards.keys())
    await scanShard(simulation, cell, sourceType, shard, random.pick([1, 1, 2, 5]));
}

async function scanShard(
  simulation: Simulation,
  cell: Cell,
  sourceType: SourceTypeName,
  shard: number,
  limit: number,
): Promise<void> {
  const { judge } = simulation;
  const before = judge.claimsOf(shard, cell.id, sourceType);
  const shown: ClaimRecord[] = [];
  for (let after = ""; ;) {
    const query = {
      cell: cell.id,
      sourceType,
      bucketTypes: ["ROUTES", "USERNAMES"],
      after,
      upTo: null,
      limit,
    };
    const answer = await cell.api.records(shard, query);
    if (answer.kind !== "ok") return;
    checkPage(simulation, cell, shown, answer.value.records);
    if (answer.value.records.length > limit) judge.see("page of one source");
    shown.push(...answer.value.records);
    if (answer.value.complete) break;
    after = answer.value.through;
  }
  judge.see("R3");
  const seen = new Set(shown.map(nameKey));
  for (const [key, claim] of judge.claimsOf(shard, cell.id, sourceType)) {
    const isShown = before.get(key) !== claim || seen.has(key);
    judge.check(
      "I12",
      isShown,
      () => `the claim of cell ${cell.id} on ${key} existed throughout the scan, but no page has it`,
    );
  }
}

function checkPage(
  { judge }: Simulation,
  cell: Cell,
  shown: readonly ClaimRecord[],
  page: readonly ClaimRecord[],
): void {
  const onEarlierPages = new Set(shown.map(({ source }) => source.id));
  let last = shown.at(-1);
  for (const record of page) {
    const { id } = record.source;
    judge.check(
      "I14",
      record.cell === cell.id,
      () => `cell ${cell.id} received ${record.canonical} of cell ${record.cell}`,
    );
    if (record.status === "LEASE_CREATING") judge.showed(record);
    judge.check(
      "I12",
      !onEarlierPages.has(id),
      () => `the records of source ${id} of cell ${cell.id} are on two pages`,
    );
    const isAfter = last === undefined || compareSources(last.source.id, id) <= 0;
    judge.check("I12", isAfter, () => `source ${id} of cell ${cell.id} comes after ${last?.source.id}`);
    last = record;
  }
}
