import { sentence } from "../src/cell/answer.ts";
import { listOf, objectOf, stringOf, type Connection } from "../src/cell/connection.ts";
import { inParallel } from "../src/cell/in-parallel.ts";
import type { Bucket, Reference } from "../src/cell/remote-leases.ts";

export interface ClaimRecord {
  bucket: Bucket;
  subject: Reference;
  source: Reference;
  cell: string;
  status: string;
  lease: string | undefined;
}

const LOOKUP = 100;
const PAGE = 500;

/** One result per bucket, in order; undefined: nobody has it. Throws when any of it cannot be told. */
export async function lookUp(connection: Connection, buckets: readonly Bucket[]): Promise<(ClaimRecord | undefined)[]> {
  const answer = await connection.call({
    method: "POST",
    path: "/v1/records/lookup",
    body: { buckets },
    read: (json) => listOf(objectOf(json)["results"], "results"),
  });
  if (answer.kind !== "ok") throw new Error(`a lookup failed: ${sentence(answer)}`);
  if (answer.value.length !== buckets.length) throw new Error(`a lookup of ${buckets.length} names got ${answer.value.length} results`);
  return answer.value.map((json, index) => {
    const result = objectOf(json);
    const asked = buckets[index];
    const echoed = bucketOf(result["bucket"]);
    if (echoed.type !== asked?.type || echoed.value !== asked.value)
      throw new Error(`a lookup of ${asked?.value} was answered about ${echoed.value}`);
    if (result["found"] === false) return undefined;
    const record = recordOf(result["record"]);
    const owner = stringOf(objectOf(result["cell"])["id"], "cell.id");
    if (record.cell !== owner) throw new Error(`a lookup of ${asked.value} names two owners: ${record.cell} and ${owner}`);
    return record;
  });
}

/** All of them, a few lookups at a time. */
export async function lookUpAll(
  connection: Connection,
  buckets: readonly Bucket[],
  progress: (done: number) => void,
): Promise<(ClaimRecord | undefined)[]> {
  const results: (ClaimRecord | undefined)[] = [];
  let done = 0;
  const starts = Array.from({ length: Math.ceil(buckets.length / LOOKUP) }, (_, index) => index * LOOKUP);
  await inParallel(starts, 4, async (start) => {
    const found = await lookUp(connection, buckets.slice(start, start + LOOKUP));
    for (const [index, record] of found.entries()) results[start + index] = record;
    progress((done += found.length));
  });
  return results;
}

/** Page by page, in the order of the listing. */
export async function listRecords(connection: Connection, cell: string, sourceType: string): Promise<ClaimRecord[]> {
  const records: ClaimRecord[] = [];
  for (let pageToken = ""; ;) {
    const query = new URLSearchParams({ source_type: sourceType, page_size: String(PAGE) });
    if (pageToken !== "") query.set("page_token", pageToken);
    const answer = await connection.call({ method: "GET", path: `/v1/cells/${cell}/records?${query.toString()}`, read: objectOf });
    if (answer.kind !== "ok") throw new Error(`the records of cell ${cell} cannot be listed: ${sentence(answer)}`);
    records.push(...listOf(answer.value["records"], "records").map(recordOf));
    const next = stringOf(answer.value["next_page_token"], "next_page_token");
    if (next === "") return records;
    if (next === pageToken) throw new Error(`the listing of cell ${cell}'s records repeats itself`);
    pageToken = next;
  }
}

function recordOf(json: unknown): ClaimRecord {
  const record = objectOf(json);
  return {
    bucket: bucketOf(record["bucket"]),
    subject: referenceOf(record["subject"]),
    source: referenceOf(record["source"]),
    cell: stringOf(record["cell_id"], "cell_id"),
    status: stringOf(record["status"], "status"),
    lease: typeof record["lease_uuid"] === "string" ? record["lease_uuid"] : undefined,
  };
}

function bucketOf(json: unknown): Bucket {
  const bucket = objectOf(json);
  return { type: stringOf(bucket["type"], "type"), value: stringOf(bucket["value"], "value") };
}

function referenceOf(json: unknown): Reference {
  const reference = objectOf(json);
  return { type: stringOf(reference["type"], "type"), id: stringOf(reference["id"], "id") };
}
