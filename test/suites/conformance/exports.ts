/** Tests of the export of a cell's own records: the same records as `listRecords`, as a stream. */
import { v4 as newUuid } from "uuid";
import { beforeAll, describe, expect, test } from "vitest";
import type * as z from "zod";
import * as schemas from "../../../src/coordinator/api/contract/schemas.ts";
import type { Client } from "./client.ts";
import { linesIn } from "./lines.ts";
import type { Open, StartOptions } from "./coordinator.ts";

type Wire = z.infer<typeof schemas.wholeRecord>;
type Line = z.infer<typeof schemas.exportLine>;
type RecordLine = Extract<Line, { record: Wire }>;

const TYPE = "RAILS_TABLE_NAMESPACES";
/** Source ids in their order, with the number of names of each. */
const SOURCES: readonly [id: string, routes: number, emails: number][] = [
  ["2", 1, 0],
  ["9", 2, 1],
  ["10", 7, 4],
  ["11", 1, 0],
  ["100", 0, 3],
  ["A", 1, 0],
  ["é", 3, 0],
  ["\u{10000}", 1, 1],
];

async function own(api: Client): Promise<void> {
  const creates = [...SOURCES.entries()].toReversed().flatMap(([at, [id, routes, emails]]) =>
    Array.from({ length: routes + emails }, (_, index) => ({
      bucket:
        index < routes
          ? { type: "ROUTES", value: `route-${at}-${index}` }
          : { type: "EMAILS", value: `${at}-${index}@example.com` },
      subject: { type: "NAMESPACE", id: "1" },
      source: { type: TYPE, id },
    })),
  );
  const uuid = newUuid();
  await api.json(201, "PUT", `/v1/cells/1/leases/${uuid}`, { key: "cell 1", body: { creates } });
  await api.json(200, "POST", `/v1/cells/1/leases/${uuid}/commit`, { key: "cell 1" });
}

const pathOf = (query: Record<string, string>, more = ""): string =>
  `?${String(new URLSearchParams({ source_type: TYPE, ...query }))}${more}`;

async function listed(api: Client, query: Record<string, string> = {}, more = ""): Promise<Wire[]> {
  const records: Wire[] = [];
  let token = "";
  do {
    const path = `/v1/cells/1/records${pathOf({ ...query, page_token: token }, more)}`;
    const page = await api.json<z.infer<typeof schemas.recordPage>>(200, "GET", path, { key: "cell 1" });
    records.push(...page.records);
    token = page.next_page_token;
  } while (token !== "");
  return records;
}

interface Exported {
  lines: RecordLine[];
  records: Wire[];
  end: Line;
}

async function exported(api: Client, query: Record<string, string> = {}, more = ""): Promise<Exported> {
  const { status, text } = await api.send("GET", `/v1/cells/1/records/export${pathOf(query, more)}`, {
    key: "cell 1",
  });
  expect(status).toBe(200);
  const [first, ...rest] = linesIn(text).map((line) => schemas.exportLine.parse(line));
  const end = rest.pop();
  if (first === undefined || !("as_of" in first) || end === undefined)
    throw new Error("the stream must have a first line and an end");
  const lines = rest.map((line) => {
    if (!("record" in line)) throw new Error("all lines between the first and the last must be records");
    return line;
  });
  return { lines, records: lines.map(({ record }) => record), end };
}

/**
 * Returns, for each line, the last source id that is complete with it, as a reader would compute it from the
 * records.
 */
const cursorsOf = (records: readonly Wire[], before: string): string[] =>
  records.map(({ source }, index) =>
    records[index + 1]?.source.id === source.id
      ? (records.findLast((each, at) => at < index && each.source.id !== source.id)?.source.id ?? before)
      : source.id,
  );

export function exportSuite(open: Open): void {
  const complete = { end: "complete" };

  /** In one answer and in several, with pages of different sizes. */
  describe.each<[string, StartOptions["variables"]]>([
    ["with default limits", {}],
    ["in pages of 1", { LEASEHOLD_MAX_PAGE_ITEMS: "1" }],
    ["in pages of 4", { LEASEHOLD_MAX_PAGE_ITEMS: "4" }],
  ])("%s", (_, variables = {}) => {
    let api: Client;
    let all: Wire[];

    beforeAll(async () => {
      api = await open({ variables });
      await own(api);
      all = await listed(api);
    });

    test("[R3] has the same records as the listing, in the same order", async () => {
      const { lines, records, end } = await exported(api);
      expect(records).toEqual(all);
      expect([...new Set(records.map(({ source }) => source.id))]).toEqual(SOURCES.map(([id]) => id));
      expect(lines.map(({ cursor }) => cursor)).toEqual(cursorsOf(all, ""));
      expect(end).toEqual(complete);
    });

    test("continues from every cursor with the records after it", async () => {
      for (const cursor of new Set((await exported(api)).lines.map((line) => line.cursor))) {
        const rest = await exported(api, { source_id_gt: cursor });
        expect(rest.records).toEqual(all.slice(all.findLastIndex(({ source }) => source.id === cursor) + 1));
        expect(rest.lines.map((line) => line.cursor)).toEqual(cursorsOf(rest.records, cursor));
        expect(rest.end).toEqual(complete);
      }
    });

    test.each<[Record<string, string>, string]>([
      [{ source_id_gt: "9" }, ""],
      [{ source_id_lte: "10" }, ""],
      [{ source_id_gt: "9", source_id_lte: "A" }, ""],
      [{ source_id_gt: "3" }, "&bucket_type=EMAILS"],
      [{}, "&bucket_type=EMAILS&bucket_type=ROUTES"],
    ])("accepts the filters of the listing: %j %s", async (query, more) => {
      const { records, end } = await exported(api, query, more);
      expect(records).toEqual(await listed(api, query, more));
      expect(records).not.toEqual([]);
      expect(end).toEqual(complete);
    });

    test.each<[Record<string, string>, string]>([
      [{ source_type: "RAILS_TABLE_USERS" }, ""],
      [{ source_id_gt: "9", source_id_lte: "9" }, ""],
      [{}, "&bucket_type=USERNAMES"],
    ])("without records has a first line and an end: %j %s", async (query, more) => {
      expect(await exported(api, query, more)).toEqual({ lines: [], records: [], end: complete });
    });
  });

  describe.each([1, 2, 5, 25, 26])("with at most %i records in one answer", (most) => {
    let api: Client;

    beforeAll(async () => {
      api = await open({
        variables: { LEASEHOLD_EXPORT_RECORDS: String(most), LEASEHOLD_MAX_PAGE_ITEMS: "3" },
      });
      await own(api);
    });

    test("ends at a complete source id, says where to continue, and has each record once", async () => {
      const all = await listed(api);
      expect(all).toHaveLength(25);
      const read: Wire[] = [];
      let answers = 0;
      for (let from: Record<string, string> = {}; ;) {
        const { lines, records, end } = await exported(api, from);
        answers += 1;
        read.push(...records);
        if (!("end" in end) || end.end !== "continue") {
          expect(end).toEqual(complete);
          break;
        }
        expect(records.length).toBeGreaterThanOrEqual(most);
        expect(records.findIndex(({ source }) => source.id === end.cursor)).toBeLessThan(most);
        expect(end.cursor).toBe(lines.at(-1)?.cursor);
        from = { source_id_gt: end.cursor };
      }
      expect(read).toEqual(all);
      if (most >= 25) expect(answers).toBe(1);
      else expect(answers).toBeGreaterThan(1);
    });
  });

  test("says when it began, and has the headers of every answer", async () => {
    const api = await open();
    const before = Date.now();
    const { text, headers } = await api.send("GET", `/v1/cells/1/records/export${pathOf({})}`, {
      key: "operator",
    });
    const [first] = linesIn(text) as [{ as_of: string }];
    expect(Math.abs(Date.parse(first.as_of) - before)).toBeLessThan(60_000);
    expect(headers.get("content-type")).toBe("application/x-ndjson; charset=utf-8");
    expect(headers.get("x-request-id")).toMatch(/^[\da-f-]{36}$/);
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
  });

  test("of a cell that is not registered is refused", async () => {
    const api = await open();
    expect(
      await api.problem(404, "GET", `/v1/cells/77/records/export${pathOf({})}`, { key: "operator" }),
    ).toMatchObject({ reason: "CELL_UNKNOWN" });
  });

  test("HEAD has the same headers", async () => {
    const api = await open();
    const { status, headers, text } = await api.send("HEAD", `/v1/cells/1/records/export${pathOf({})}`, {
      key: "cell 1",
    });
    expect([status, headers.get("content-type"), text]).toEqual([
      200,
      "application/x-ndjson; charset=utf-8",
      "",
    ]);
  });
}
