/** Removals of cells with more claims than one call reads. */
import { v4 as newUuid } from "uuid";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DigestSum } from "../../../src/common/digest.ts";
import type { DigestWords } from "../../../src/coordinator/kernel/messages.ts";
import { shardOf } from "../../../src/coordinator/kernel/placement.ts";
import { startTestCoordinator } from "../../../src/users/testing/index.ts";
import { Coordinator } from "../../suites/conformance/coordinator.ts";
import { claim, freshName } from "../../suites/conformance/leases.ts";
import { path, RemovedCells, SOURCE } from "../../suites/conformance/removed-cells.ts";
import { bucketType } from "../../support/types.ts";

/**
 * A call waits for 200 messages at most, and each message reads one claim here. The names are random, and
 * half of these claims are always more than 200.
 */
const CLAIMS = 600;
const SHARDS = 2;
const variables = { LEASEHOLD_SCAN_ROWS: "1" };
const RANGE = 50;

/** A new name on a shard. */
function nameOn(shard: number): string {
  for (;;) {
    const name = freshName();
    if (shardOf(bucketType("ROUTES"), name, SHARDS) === shard) return name;
  }
}

let api: Coordinator;
let cells: RemovedCells;
let close: () => Promise<void>;

beforeAll(async () => {
  const started = await startTestCoordinator({ cells: ["1"], shards: SHARDS, variables });
  close = () => started.close();
  api = new Coordinator(started);
  cells = new RemovedCells(api);
  await cells.own("1", CLAIMS);
  await cells.drain("1");
});

afterAll(() => close());

/** The digest that an export of cell 1 has, from so many calls that each reads few claims. */
async function exported() {
  const sum = new DigestSum();
  for (let after = 0; after < CLAIMS; after += RANGE) {
    const range = { source_id_gt: String(after), source_id_lte: String(after + RANGE) };
    const { digests } = await api.json<{ digests: { count: number; hash: string }[] }>(
      200,
      "POST",
      "/v1/cells/1/records/digests",
      { body: { source_type: SOURCE, ranges: [range] } },
    );
    for (const { count, hash } of digests) sum.add(wordsOf(hash), count);
  }
  return { source_type: SOURCE, count: sum.count, hash: sum.hash };
}

const wordsOf = (hash: string) =>
  hash.match(/.{8}/g)?.map((word) => Number.parseInt(word, 16)) as unknown as DigestWords;

async function approve(body: object): Promise<{ status: number; cursor: string; compared_claims: number }> {
  const { status, text } = await api.send("POST", path("1"), { body });
  return { ...(JSON.parse(text) as { cursor: string; compared_claims: number }), status };
}

test("[X2] counts in several calls", async () => {
  const counts: number[] = [];
  for (let cursor: string | null = ""; cursor !== null;) {
    const removal = await cells.show("1", cursor);
    counts.push(removal.claims_total);
    ({ cursor } = removal);
  }
  expect(counts.length).toBeGreaterThan(2);
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(CLAIMS);
});

test("[X2] compares in several calls, and takes the cursor only with the same export", async () => {
  const body = { export: [await exported()] };
  const first = await approve(body);
  expect(first.status).toBe(202);
  const others = { ...body, export: [], cursor: first.cursor };
  for (const wrong of [others, { ...body, cursor: `${first.cursor}A` }, { ...body, cursor: "x" }])
    expect(await api.problem(400, "POST", path("1"), { body: wrong })).toMatchObject({ field: "cursor" });
  const compared = [first.compared_claims];
  let answer = await approve({ ...body, cursor: first.cursor });
  for (; answer.status === 202; answer = await approve({ ...body, cursor: answer.cursor }))
    compared.push(answer.compared_claims);
  expect(answer).toMatchObject({ status: 200, cell: { state: "DRAINING" } });
  expect(compared.length).toBeGreaterThan(1);
  expect(compared).toEqual([...new Set(compared)].toSorted((a, b) => a - b));
  expect(await cells.show("1")).toMatchObject({ progress: null });
});

test("[X2] notices a claim that the export lacks, on whichever call it is compared", async () => {
  const all = await exported();
  const body = { export: [{ ...all, count: all.count - 1 }] };
  let answer = await approve(body);
  while (answer.status === 202) answer = await approve({ ...body, cursor: answer.cursor });
  expect(answer).toMatchObject({ status: 409, reason: "EXPORT_DIFFERS" });
});

test.each([
  // The first call stops in the middle of shard 0, which notices changes of its own claims.
  ["on the shard that is being read", "CELL_HAS_LEASES", [nameOn(0)]],
  // The claims of the other shard are the same again, so only the ledger notices it.
  ["on another shard", "CONCURRENT_CHANGE", [nameOn(1)]],
  // The claims are the same again, but the cell could have begun leases.
  ["of the cell's state", "CONCURRENT_CHANGE", []],
])("[X2] notices a change %s between two calls of one comparison", async (_, refusal, names) => {
  const body = { export: [await exported()] };
  const { cursor } = await api.json<{ cursor: string }>(202, "POST", path("1"), { body });
  await api.json(200, "POST", "/v1/admin/cells/1/unfreeze", {});
  for (const name of names) {
    const lease = `/v1/cells/1/leases/${newUuid()}`;
    await api.json(201, "PUT", lease, { key: "cell 1", body: { creates: [claim(name)] } });
    await api.json(200, "POST", `${lease}/rollback`, { key: "cell 1" });
  }
  await cells.drain("1");
  let answer = await approve({ ...body, cursor });
  while (answer.status === 202) answer = await approve({ ...body, cursor: answer.cursor });
  expect(answer).toMatchObject({ status: 409, reason: refusal });
  expect(await cells.show("1")).toMatchObject({ state: "DRAINING", progress: null });
});
