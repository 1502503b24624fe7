import { expect, test } from "vitest";
import type { ClaimRecord } from "../../../../src/users/client/api-types.ts";
import { examine } from "../../../../src/users/cell/verification/examine.ts";
import type {
  IdRange,
  VerifiedRecords,
  VerifiedRow,
  VerifiedTable,
} from "../../../../src/users/cell/verification/ports.ts";
import { shipped } from "../../../support/types.ts";

const PAGE = 10;

interface Sides {
  rows: readonly number[];
  records: readonly number[];
}

/** Has one claim for each id. Pages of records and of rows have the same size. */
class World {
  readonly asked: [after: string, upTo: string | undefined][] = [];
  readonly #sides: Sides;

  constructor(sides: Sides) {
    this.#sides = sides;
  }

  readonly table: VerifiedTable = {
    name: "routes",
    source: "RAILS_TABLE_ROUTES",
    bucketTypes: ["ROUTES"],
    hasEveryAttribute: true,
    count: async () => this.#sides.rows.length,
    page: async ({ limit, ...range }) => within(this.#sides.rows, range).slice(0, limit).map(rowOf),
    read: async () => [],
  };

  readonly records: VerifiedRecords = {
    list: async ({ after, upTo, pageSize }) => {
      this.asked.push([after, upTo]);
      const found = within(this.#sides.records, { after, upTo });
      const isLast = found.length <= pageSize;
      return {
        records: found.slice(0, pageSize).map(recordOf),
        asOfMs: 0,
        nextPageToken: isLast ? "" : "more",
      };
    },
    digests: async () => ({ asOfMs: 0, digests: [] }),
    lookup: async () => [],
  };

  async run(range: IdRange, rows?: VerifiedRow[]) {
    const totals = { rows: 0, records: 0, drifts: 0 };
    const parts = { records: this.records, types: shipped, table: this.table, recentMs: 0, pageRows: PAGE };
    for await (const { comparison, ...counts } of examine({
      ...parts,
      ...range,
      ...(rows === undefined ? {} : { rows }),
    })) {
      totals.rows += counts.rows;
      totals.records += counts.records;
      totals.drifts += comparison.drifts.length;
    }
    return totals;
  }
}

const within = (ids: readonly number[], { after, upTo }: IdRange): number[] =>
  ids.filter((id) => id > Number(after === "" ? -1 : after) && (upTo === undefined || id <= Number(upTo)));
const claimOf = (id: number) => ({
  bucket: { type: "ROUTES" as const, value: `name-${id}` },
  subject: { type: "NAMESPACE" as const, id: String(id) },
  source: { type: "RAILS_TABLE_ROUTES" as const, id: String(id) },
});
const rowOf = (id: number): VerifiedRow => ({
  id: String(id),
  claims: [{ ...claimOf(id), attribute: "path" }],
  ageMs: undefined,
});
const recordOf = (id: number): ClaimRecord =>
  ({ ...claimOf(id), status: "ACTIVE", lease_uuid: null, updated_at: "1970-01-01T00:00:00Z" }) as ClaimRecord;
const ids = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

test("a range whose last row is known takes one call", async () => {
  const world = new World({ rows: ids(30), records: ids(30) });
  const rows = ids(10).map(rowOf);
  expect(await world.run({ after: "", upTo: "10" }, rows)).toEqual({ rows: 10, records: 10, drifts: 0 });
  expect(await world.run({ after: "10", upTo: "20" })).toEqual({ rows: 10, records: 10, drifts: 0 });
  expect(world.asked).toEqual([
    ["", "10"],
    ["10", "20"],
  ]);
});

test("pages of records stay full if there are more records than rows", async () => {
  const world = new World({ rows: ids(100).filter((id) => id % 10 !== 0), records: ids(100) });
  expect(await world.run({ after: "", upTo: undefined })).toEqual({ rows: 90, records: 100, drifts: 10 });
  expect(world.asked).toHaveLength(10);
});

test("pages are also full if there are fewer records than rows, or records beyond the last row", async () => {
  const world = new World({ rows: ids(30), records: [5, 15, 31, 32] });
  expect(await world.run({ after: "", upTo: undefined })).toEqual({ rows: 30, records: 4, drifts: 30 });
  const empty = new World({ rows: [], records: ids(25) });
  expect(await empty.run({ after: "", upTo: undefined })).toEqual({ rows: 0, records: 25, drifts: 25 });
  expect(empty.asked).toHaveLength(3);
});
