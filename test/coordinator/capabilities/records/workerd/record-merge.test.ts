/** Tests of the merge of the shards' records into pages. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { ClaimRecord } from "../../../../../src/coordinator/kernel/messages.ts";
import type {
  ListCursor,
  ListRecordsAnswer,
  RecordPosition,
} from "../../../../../src/coordinator/capabilities/records/messages.ts";
import { ok, type Result } from "../../../../../src/coordinator/kernel/refusal.ts";
import {
  bySource,
  comparePositions,
  positionOfRecord,
} from "../../../../../src/coordinator/capabilities/records/record-order.ts";
import { afterSource } from "../../../../../src/coordinator/capabilities/records/scan-store.ts";
import {
  isSplit,
  mergeRecords,
  type MergedPage,
} from "../../../../../src/coordinator/capabilities/records/edge/record-merge.ts";
import { bucketType, sourceOf, subjectOf } from "../../../../support/types.ts";

const recordOf = (id: string, name: string): ClaimRecord => ({
  type: bucketType("ROUTES"),
  canonical: name,
  uuid: name,
  value: name,
  subject: subjectOf("NAMESPACE", "1"),
  source: sourceOf("RAILS_TABLE_ROUTES", id),
  cell: "1",
  epoch: 1,
  status: "ACTIVE",
  lease: null,
  scope: null,
  createdAtMs: 0,
  updatedAtMs: 0,
});

/** Shards that visit `rows` records per message. Records whose name begins with "x" are filtered out. */
function shardsOf(records: readonly ClaimRecord[], shards: number, rows: number) {
  let calls = 0;
  const fetch = async (
    shard: number,
    { behind }: ListCursor,
    limit: number,
  ): Promise<Result<ListRecordsAnswer>> => {
    calls += 1;
    const own = records
      .filter((_, index) => index % shards === shard)
      .toSorted(bySource)
      .filter((record) => comparePositions(positionOfRecord(record), behind) > 0);
    const visited = own.slice(0, Math.min(rows, limit));
    const last = visited.at(-1);
    const next =
      last === undefined || visited.length === own.length
        ? null
        : { behind: positionOfRecord(last), scan: null };
    return ok({ records: visited.filter(({ canonical }) => !canonical.startsWith("x")), next });
  };
  return { fetch, calls: () => calls };
}

const START = afterSource("");

async function pagesOf(
  records: readonly ClaimRecord[],
  { shards, rows, limit, extra, calls }: Record<"shards" | "rows" | "limit" | "extra" | "calls", number>,
): Promise<{ pages: MergedPage[]; calls: number[] }> {
  const { fetch, calls: sent } = shardsOf(records, shards, rows);
  const pages: MergedPage[] = [];
  const counts: number[] = [];
  for (let behind: RecordPosition | undefined = START; behind !== undefined;) {
    const before = sent();
    const page: Result<MergedPage> = await mergeRecords(
      { shards, width: 4, limit, extra, calls, behind },
      fetch,
    );
    if (!page.ok) throw new Error(page.refusal.detail);
    pages.push(page.value);
    counts.push(sent() - before);
    behind = page.value.next;
  }
  return { pages, calls: counts };
}

test("[R3] [M7] pages have each record once, in order, with a limited number of messages", async () => {
  const records = fc
    .uniqueArray(fc.tuple(fc.integer({ min: 1, max: 6 }), fc.boolean(), fc.integer({ min: 0, max: 200 })), {
      selector: ([, , name]) => name,
      maxLength: 40,
    })
    .map((all) => all.map(([id, isOut, name]) => recordOf(String(id), `${isOut ? "x" : "n"}${name}`)));
  const small = fc.integer({ min: 1, max: 5 });
  await fc.assert(
    fc.asyncProperty(
      records,
      small,
      small,
      small,
      small,
      small,
      async (all, shards, rows, limit, extra, calls) => {
        const { pages, calls: counts } = await pagesOf(all, { shards, rows, limit, extra, calls });
        const shown = pages.flatMap((page) => page.records);
        const expected = all.filter(({ canonical }) => !canonical.startsWith("x")).toSorted(bySource);
        expect(shown).toEqual(expected);
        for (const count of counts) expect(count).toBeLessThanOrEqual(Math.max(calls, shards));
        for (const page of pages) expect(page.records.length).toBeLessThanOrEqual(limit + extra);
        for (const [index, page] of pages.entries()) {
          const next = pages.slice(index + 1).flatMap((later) => later.records)[0];
          if (next !== undefined && next.source.id === page.records.at(-1)?.source.id)
            expect(isSplit(page)).toBe(true);
        }
      },
    ),
    { numRuns: 300 },
  );
});

test("[R3] a page has all records of its source ids, unless one id has more than fit", async () => {
  const ids = ["1", "2", "2", "2", "3", "4", "4", "4", "4", "4", "4", "5"];
  const records = ids.map((id, index) => recordOf(id, `n${String(index).padStart(2, "0")}`));
  const { pages } = await pagesOf(records, { shards: 3, rows: 100, limit: 2, extra: 3, calls: 100 });
  expect(pages.map((page) => page.records.map(({ source }) => source.id).join(""))).toEqual([
    "1222",
    "34444",
    "44",
    "5",
  ]);
  expect(pages.map(isSplit)).toEqual([false, true, false, false]);
});

test("[R3] a page whose messages are used up leaves an incomplete source id to the next", async () => {
  const ids = ["1", "2", "3", "3", "3", "3"];
  const records = ids.map((id, index) => recordOf(id, `n${index}`));
  const { pages } = await pagesOf(records, { shards: 1, rows: 2, limit: 100, extra: 100, calls: 2 });
  expect(pages.map((page) => page.records.map(({ source }) => source.id).join(""))).toEqual(["12", "3333"]);
  expect(pages.map(isSplit)).toEqual([false, false]);
});
