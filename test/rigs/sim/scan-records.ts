import type { ClaimRecord } from "../../../src/coordinator/kernel/messages.ts";
import type {
  ListCursor,
  ListRecordsAnswer,
} from "../../../src/coordinator/capabilities/records/messages.ts";
import type { Answer } from "../../../src/coordinator/kernel/ports.ts";
import { ok, refused } from "../../../src/coordinator/kernel/refusal.ts";
import { readDigests } from "../../../src/coordinator/capabilities/records/edge/digest-parts.ts";
import { bucketType, sourceType as numberOf } from "../../support/types.ts";
import type { Cell } from "./cell.ts";
import { compareSources } from "./judge/source-order.ts";
import { nameKey } from "./local.ts";
import type { Random } from "./random.ts";
import type { Simulation } from "./simulation.ts";

/**
 * Lists all of a cell's records of one source type in pages, shard by shard (R3), and reads digests of them,
 * which the judge compares with the claims (R4).
 */
export async function scanRecords(simulation: Simulation, cell: Cell, random: Random): Promise<void> {
  const source = random.pick(["RAILS_TABLE_ROUTES", "RAILS_TABLE_ROUTES", "RAILS_TABLE_USERS"] as const);
  const sourceType = numberOf(source);
  for (let shard = 0; shard < simulation.isolate.shards; shard += 1)
    await scanShard(simulation, cell, sourceType, shard, random.pick([1, 1, 2, 5]));
  const query = {
    cell: cell.id,
    sourceType,
    bucketTypes: null,
    ranges: [{ after: "", upTo: null }],
  };
  for (let shard = 0; shard < simulation.isolate.shards; shard += 1)
    await readDigests(query.ranges.length, DIGEST_CALLS, async (cursor) => {
      // The cell's claims have time to change between two parts.
      if (cursor !== null) await cell.api.sleep(random.exponential(PART_PAUSE_MS));
      const answer = await cell.api.digests(shard, { ...query, cursor });
      return answer.kind === "ok" ? ok(answer.value) : refused("UNAVAILABLE", "the shard did not answer");
    });
}

/** The types of the names that have rows. */
const BUCKET_TYPES = [bucketType("ROUTES"), bucketType("USERNAMES")];

/** The mean pause between two parts of a digest. */
const PART_PAUSE_MS = 3_000;

/** More messages than the claims of a run take. */
const DIGEST_CALLS = 100;

async function scanShard(
  simulation: Simulation,
  cell: Cell,
  sourceType: number,
  shard: number,
  limit: number,
): Promise<void> {
  const { judge } = simulation;
  const { scanRows } = simulation.coordinator.limits;
  const before = judge.claimsOf(shard, cell.id, sourceType, BUCKET_TYPES);
  const shown: ClaimRecord[] = [];
  for (let cursor: ListCursor | null = null; ;) {
    const query = {
      cell: cell.id,
      sourceType,
      bucketTypes: BUCKET_TYPES,
      after: "",
      upTo: null,
      cursor,
      limit,
    };
    const answer: Answer<ListRecordsAnswer> = await cell.api.records(shard, query);
    if (answer.kind !== "ok") return;
    checkPage(simulation, cell, shown, answer.value.records);
    checkLimit(simulation, Math.min(limit, scanRows), answer.value.records);
    const [last, first] = [shown.at(-1), answer.value.records[0]];
    if (first !== undefined && last?.source.id === first.source.id) judge.see("source on two pages");
    shown.push(...answer.value.records);
    cursor = answer.value.next;
    if (cursor === null) break;
    judge.see("M7");
  }
  judge.see("R3");
  const seen = new Set(shown.map(nameKey));
  for (const [key, claim] of judge.claimsOf(shard, cell.id, sourceType, BUCKET_TYPES)) {
    const isShown = before.get(key) !== claim || seen.has(key);
    judge.check(
      "I12",
      isShown,
      () => `the claim of cell ${cell.id} on ${key} existed throughout the scan, but no page has it`,
    );
  }
}

/** A message has at most as many records as it may read rows (M7). */
function checkLimit({ judge }: Simulation, limit: number, page: readonly ClaimRecord[]): void {
  judge.check("I16", page.length <= limit, () => `a message for ${limit} records has ${page.length}`);
}

function checkPage(
  { judge }: Simulation,
  cell: Cell,
  shown: readonly ClaimRecord[],
  page: readonly ClaimRecord[],
): void {
  let last = shown.at(-1);
  for (const record of page) {
    const { id } = record.source;
    judge.check(
      "I14",
      record.cell === cell.id,
      () => `cell ${cell.id} received ${record.canonical} of cell ${record.cell}`,
    );
    if (record.status === "LEASE_CREATING") judge.showed(record);
    const isAfter = last === undefined || comparePlaces(last, record) < 0;
    judge.check(
      "I12",
      isAfter,
      () => `${record.canonical} of source ${id} comes after ${last?.canonical} of ${last?.source.id}`,
    );
    last = record;
  }
}

const comparePlaces = (a: ClaimRecord, b: ClaimRecord): number =>
  compareSources(a.source.id, b.source.id) ||
  // R3 doesn't define the order of two spellings of one number.
  (a.source.id === b.source.id ? 0 : -1) ||
  a.type - b.type ||
  Buffer.compare(Buffer.from(a.canonical), Buffer.from(b.canonical));
