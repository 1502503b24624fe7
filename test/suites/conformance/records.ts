/** Tests of lookups and of the listing of a cell's own records. */
import { v4 as newUuid } from "uuid";
import { beforeAll, describe, expect, test, vi } from "vitest";
import type * as z from "zod";
import { DigestSum, digestWordsOf } from "../../../src/common/digest.ts";
import type { TypeKind } from "../../../src/common/types/types.ts";
import type * as schemas from "../../../src/coordinator/api/contract/schemas.ts";
import { shipped } from "../../support/types.ts";
import type { Client } from "./client.ts";
import { addressOf, committed, freshName } from "./leases.ts";
import type { Open } from "./coordinator.ts";

type DigestAnswer = z.infer<typeof schemas.digestAnswer>;
type RecordPage = z.infer<typeof schemas.recordPage>;

const numberOf = (kind: TypeKind, name: string): number => shipped.named(kind, name)?.number ?? 0;

export function recordSuite(open: Open): void {
  let api: Client;

  /** Claims names for cell 1, each with its source id. */
  async function own(
    entries: readonly [value: string, id: string][],
    sourceType: string,
    type = "ROUTES",
  ): Promise<void> {
    const uuid = newUuid();
    const creates = entries.map(([value, id]) => ({
      bucket: { type, value },
      subject: { type: "NAMESPACE", id: "1" },
      source: { type: sourceType, id },
    }));
    await api.json(201, "PUT", `/v1/cells/1/leases/${uuid}`, { key: "cell 1", body: { creates } });
    await api.json(200, "POST", `/v1/cells/1/leases/${uuid}/commit`, { key: "cell 1" });
  }

  async function pages(query: string): Promise<string[][]> {
    const read: string[][] = [];
    let token = "";
    do {
      const page: RecordPage = await api.json(
        200,
        "GET",
        `/v1/cells/1/records?${query}&page_token=${token}`,
        { key: "cell 1" },
      );
      read.push(page.records.map(({ source }) => source.id));
      token = page.next_page_token;
    } while (token !== "");
    return read;
  }

  beforeAll(async () => {
    api = await open();
  });

  describe("one name", () => {
    test("of another cell shows the owner and nothing else", async () => {
      const { value } = await committed(api);
      const path = `/v1/records/ROUTES/${value}`;
      const foreign = {
        record: { bucket: { type: "ROUTES", value }, cell_id: "1", status: "ACTIVE" },
        cell: { id: "1", address: addressOf("1") },
      };
      expect(await api.json(200, "GET", path, { key: "cell 2" })).toEqual(foreign);
      const body = { buckets: [{ type: "ROUTES", value }] };
      expect(await api.json(200, "POST", "/v1/records/lookup", { key: "cell 2", body })).toEqual({
        results: [{ bucket: { type: "ROUTES", value }, found: true, ...foreign }],
      });
      expect(await api.json(200, "GET", path, { key: "cell 1" })).toMatchObject({
        record: { subject: { type: "NAMESPACE", id: "7" } },
      });
    });
  });

  describe("many names", () => {
    test("100 of them, in one call", async () => {
      const buckets = Array.from({ length: 100 }, (_, index) => ({
        type: "USERNAMES",
        value: `nobody-${index}`,
      }));
      const { results } = await api.json<{ results: unknown[] }>(200, "POST", "/v1/records/lookup", {
        key: "router",
        body: { buckets },
      });
      expect(results).toHaveLength(100);
    });
  });

  describe("a cell's records", () => {
    // The order that the API promises: decimal ids first, as numbers, then the others by bytes.
    const ordered = [
      "0",
      "1",
      "2",
      "9",
      "10",
      "11",
      "100",
      "9007199254740993",
      "-1",
      "A",
      "a",
      "a0",
      "a1",
      "é",
      "\uffff",
      "\u{10000}",
    ];
    const type = "RAILS_TABLE_NAMESPACES";

    beforeAll(async () => {
      const shuffled = ordered.toSorted((a, b) => (`${a}x` < `${b}x` ? 1 : -1));
      await own(
        shuffled.map((id, index) => [`ordered-${index}`, id]),
        type,
      );
      // Several names of one source id, on several shards and of several types.
      await own(
        Array.from({ length: 30 }, (_, index) => [`siblings-${index}`, "10"] as [string, string]),
        type,
      );
      await own(
        Array.from({ length: 5 }, (_, index) => [`mail-${index}@example.com`, "10"] as [string, string]),
        type,
        "EMAILS",
      );
      await own([["elsewhere", "5"]], "RAILS_TABLE_USERS");
    });

    const distinct = (read: readonly string[][]): string[] => [...new Set(read.flat())];

    test.each([1, 2, 3, 7, 31, 36, 1_000, 5_000])(
      "[R3] are in order and with complete source ids, in pages of %i",
      async (size) => {
        const read = await pages(`source_type=${type}&page_size=${size}`);
        expect(distinct(read)).toEqual(ordered);
        expect(read.flat()).toHaveLength(ordered.length + 35);
        for (const [index, page] of read.entries()) {
          // Every page but the last is full, and no source id is on two pages.
          if (index < read.length - 1) expect(page.length).toBeGreaterThanOrEqual(Math.min(size, 1_000));
          for (const id of page) expect(read[index + 1] ?? []).not.toContain(id);
        }
      },
    );

    test.each([
      ["source_id_gt=9", (id: string) => ordered.indexOf(id) > ordered.indexOf("9")],
      ["source_id_lte=10", (id: string) => ordered.indexOf(id) <= ordered.indexOf("10")],
      [
        "source_id_gt=9&source_id_lte=a",
        (id: string) =>
          ordered.indexOf(id) > ordered.indexOf("9") && ordered.indexOf(id) <= ordered.indexOf("a"),
      ],
      ["source_id_gt=%C3%A9", (id: string) => ordered.indexOf(id) > ordered.indexOf("é")],
      ["source_id_gt=", () => true],
      ["source_id_gt=9&source_id_lte=9", () => false],
      ["source_id_gt=zz&source_id_lte=zz", () => false],
    ])("are filtered by %s", async (filter, fits) => {
      for (const size of [2, 1_000])
        expect(distinct(await pages(`source_type=${type}&${filter}&page_size=${size}`))).toEqual(
          ordered.filter(fits),
        );
    });

    test("are filtered by bucket types, in any order", async () => {
      const list = async (query: string) =>
        (
          await api.json<RecordPage>(200, "GET", `/v1/cells/1/records?source_type=${type}&${query}`, {
            key: "cell 1",
          })
        ).records;
      expect(await list("bucket_type=EMAILS")).toHaveLength(5);
      expect(await list("bucket_type=USERNAMES")).toHaveLength(0);
      const both = await list("bucket_type=EMAILS&bucket_type=ROUTES&source_id_gt=9&source_id_lte=10");
      expect(both).toEqual(
        await list(
          "bucket_type=ROUTES&bucket_type=EMAILS&bucket_type=ROUTES&source_id_gt=9&source_id_lte=10",
        ),
      );
      // Within one source id, routes come before emails, and each type is sorted by its canonical value.
      expect(both.map(({ bucket }) => bucket.type)).toEqual([
        ...Array.from({ length: 31 }, () => "ROUTES"),
        ...Array.from({ length: 5 }, () => "EMAILS"),
      ]);
      const routes = both.slice(0, 31).map(({ bucket }) => bucket.value);
      expect(routes).toEqual(routes.toSorted());
    });

    test("are visible to their cell only, and each source type has its own listing", async () => {
      expect(
        (await api.json<RecordPage>(200, "GET", `/v1/cells/2/records?source_type=${type}`, { key: "cell 2" }))
          .records,
      ).toEqual([]);
      expect(await pages("source_type=RAILS_TABLE_USERS")).toEqual([["5"]]);
      expect(await pages("source_type=RAILS_TABLE_PROJECTS")).toEqual([[]]);
    });

    test("end with the page that has the last record, even if one source id fills it", async () => {
      await own(
        Array.from({ length: 150 }, (_, index) => [`many-${index}`, "1"] as [string, string]),
        "RAILS_TABLE_ORGANIZATIONS",
      );
      for (const size of [1, 10, 100, 150])
        expect(await pages(`source_type=RAILS_TABLE_ORGANIZATIONS&page_size=${size}`)).toHaveLength(1);
    });

    test("say when they were read", async () => {
      const { as_of: asOf } = await api.json<RecordPage>(
        200,
        "GET",
        `/v1/cells/1/records?source_type=${type}`,
        { key: "cell 1" },
      );
      expect(new Date(asOf).toISOString()).toBe(asOf);
    });
  });

  describe("digests of a cell's records", () => {
    const sourceType = "RAILS_TABLE_REDIRECT_ROUTES";

    const ask = (ranges: unknown[], more: object = {}): Promise<DigestAnswer> =>
      api.json(200, "POST", "/v1/cells/1/records/digests", {
        key: "cell 1",
        body: { source_type: sourceType, ranges, ...more },
      });

    /** The digest that a cell computes from the records itself. */
    async function addedUp(
      query: string,
    ): Promise<{ count: number; hash: string; newest_updated_at: string | null }> {
      const { records } = await api.json<RecordPage>(
        200,
        "GET",
        `/v1/cells/1/records?source_type=${sourceType}&page_size=1000&${query}`,
        {
          key: "cell 1",
        },
      );
      const sum = new DigestSum();
      for (const { bucket, subject, source, scope = null } of records) {
        sum.add(
          digestWordsOf({
            type: numberOf("bucket", bucket.type),
            canonical: bucket.value.toLowerCase(),
            value: bucket.value,
            subject: { type: numberOf("subject", subject.type), id: subject.id },
            source: { type: numberOf("source", source.type), id: source.id },
            scope,
          }),
        );
      }
      const newest = records.map(({ updated_at: at }) => at).toSorted();
      return { count: sum.count, hash: sum.hash, newest_updated_at: newest.at(-1) ?? null };
    }

    beforeAll(async () => {
      await own(
        Array.from({ length: 60 }, (_, index) => [`Digested-${index}`, String(index)] as [string, string]),
        sourceType,
      );
      await own([["Digested-x", "x"]], sourceType);
      await own([["digested@example.com", "5"]], sourceType, "EMAILS");
      await untilApplied();
    });

    /** A digest is held until the shards have applied a commit, which is answered before (C3). */
    async function untilApplied(): Promise<void> {
      await vi.waitFor(async () => expect((await ask([{}])).digests[0]?.held).toBe(false));
    }

    test("[R4] are the sums over the records, for each range, in order", async () => {
      const { as_of: asOf, digests } = await ask([
        { source_id_lte: "9" },
        { source_id_gt: 9, source_id_lte: "20" },
        { source_id_gt: "58", source_id_lte: "59" },
        { source_id_gt: "y" },
      ]);
      expect(new Date(asOf).toISOString()).toBe(asOf);
      const queries = [
        "source_id_lte=9",
        "source_id_gt=9&source_id_lte=20",
        "source_id_gt=58&source_id_lte=59",
        "source_id_gt=y",
      ];
      expect(digests).toEqual(
        await Promise.all(queries.map(async (query) => ({ ...(await addedUp(query)), held: false }))),
      );
      expect(digests.map(({ count }) => count)).toEqual([11, 11, 1, 0]);
      expect(digests[3]).toEqual({ count: 0, hash: "0".repeat(32), held: false, newest_updated_at: null });
    });

    test("[R4] cover the requested bucket types", async () => {
      expect((await ask([{}], { bucket_types: ["EMAILS", "EMAILS"] })).digests).toEqual([
        { ...(await addedUp("bucket_type=EMAILS")), held: false },
      ]);
    });

    test("[R4] are held while a lease touches the range, and count its claims after the commit", async () => {
      const uuid = newUuid();
      const value = freshName();
      const source = { type: sourceType, id: "100" };
      const ranges = [{ source_id_lte: "99" }, { source_id_gt: "99" }];
      const before = (await ask(ranges)).digests;
      const body = {
        creates: [{ bucket: { type: "ROUTES", value }, subject: { type: "NAMESPACE", id: "1" }, source }],
      };
      await api.json(201, "PUT", `/v1/cells/1/leases/${uuid}`, { key: "cell 1", body });
      const during = (await ask(ranges)).digests;
      expect(during).toEqual([before[0], { ...before[1], held: true }]);
      await api.json(200, "POST", `/v1/cells/1/leases/${uuid}/commit`, { key: "cell 1" });
      await untilApplied();
      const after = (await ask(ranges)).digests;
      expect(after).toEqual([before[0], { ...(await addedUp("source_id_gt=99")), held: false }]);
    });

    test("[R4] are visible to their cell only", async () => {
      const body = { source_type: sourceType, ranges: [{}] };
      expect(
        await api.json(200, "POST", "/v1/cells/2/records/digests", { key: "cell 2", body }),
      ).toMatchObject({ digests: [{ count: 0 }] });
    });
  });
}
