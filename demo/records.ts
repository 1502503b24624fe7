import { inParallel } from "../src/users/cell/in-parallel.ts";
import type { Bucket, Client, LookupResult, ClaimRecord as ApiRecord } from "../src/users/client/index.ts";
import type { Claim } from "./entry.ts";

export interface ClaimRecord extends Claim {
  cell: string;
  status: ApiRecord["status"];
  lease: string | undefined;
}

const LOOKUP = 100;
const PAGE = 500;

/**
 * Returns one result per bucket, in order, and undefined for a free name. Throws if an answer is incomplete
 * or contradicts itself.
 */
export async function lookUp(
  { records }: Client,
  buckets: readonly Bucket[],
): Promise<(ClaimRecord | undefined)[]> {
  const results = await records.lookup(buckets);
  if (results.length !== buckets.length)
    throw new Error(`a lookup of ${buckets.length} names got ${results.length} results`);
  return results.map((result, index) => foundOf(result, buckets[index]));
}

function foundOf(
  { bucket, found, record, cell }: LookupResult,
  asked: Bucket | undefined,
): ClaimRecord | undefined {
  if (bucket.type !== asked?.type || bucket.value !== asked.value)
    throw new Error(`a lookup of ${asked?.value} was answered about ${bucket.value}`);
  if (!found) return undefined;
  if (record === undefined || !("subject" in record))
    throw new Error(`a lookup of ${asked.value} was answered without the record`);
  if (record.cell_id !== cell?.id)
    throw new Error(`a lookup of ${asked.value} names two owners: ${record.cell_id} and ${cell?.id}`);
  return recordOf(record);
}

/** Looks all buckets up, with at most 4 requests in parallel. */
export async function lookUpAll(
  client: Client,
  buckets: readonly Bucket[],
  progress: (done: number) => void,
): Promise<(ClaimRecord | undefined)[]> {
  const results: (ClaimRecord | undefined)[] = [];
  let done = 0;
  const starts = Array.from({ length: Math.ceil(buckets.length / LOOKUP) }, (_, index) => index * LOOKUP);
  await inParallel(starts, 4, async (start) => {
    const found = await lookUp(client, buckets.slice(start, start + LOOKUP));
    for (const [index, record] of found.entries()) results[start + index] = record;
    progress((done += found.length));
  });
  return results;
}

/** Returns all records of a source type, in the order of the listing. */
export const listRecords = async (
  { records }: Client,
  sourceType: ApiRecord["source"]["type"],
  pageSize = PAGE,
  range: { sourceIdGt?: string; sourceIdLte?: string } = {},
): Promise<ClaimRecord[]> => (await records.list({ sourceType, pageSize, ...range }).all()).map(recordOf);

const recordOf = ({
  bucket,
  subject,
  source,
  cell_id: cell,
  status,
  lease_uuid: lease,
}: ApiRecord): ClaimRecord => ({
  bucket,
  subject,
  source,
  cell,
  status,
  lease: lease ?? undefined,
});
