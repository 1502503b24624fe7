import { compareBytes, sourceOrder } from "../../../common/source-order.ts";
import type { Types } from "../../../common/types/types.ts";
import { compare, type Comparison, type Recency } from "./compare.ts";
import type { IdRange, VerificationPorts, VerifiedRow, VerifiedTable } from "./ports.ts";

export interface Examined {
  comparison: Comparison;
  recency: Recency;
  rows: number;
  records: number;
  /** The last source id that was compared. Undefined: everything up to the end. */
  through: string | undefined;
}

interface Examination extends IdRange {
  records: VerificationPorts["records"];
  types: Types;
  table: VerifiedTable;
  recentMs: number;
  /** How many rows, and how many records, are in memory at a time. */
  pageRows: number;
  /** The first rows of the range, if they were read before. */
  rows?: VerifiedRow[];
}

/**
 * Compares the rows and records of a range page by page. Either side may have any number per page of the
 * other.
 */
export async function* examine({
  records,
  types,
  table,
  recentMs,
  pageRows,
  after,
  upTo,
  rows: known = [],
}: Examination): AsyncGenerator<Examined> {
  let from = after;
  let rows = [...known];
  checkOrder(table, from, rows);
  for (let isLocalEnd = false; ;) {
    const last = rows.at(-1)?.id;
    isLocalEnd ||= last !== undefined && last === upTo;
    if (rows.length < pageRows && !isLocalEnd) {
      // Fills the page up, so that the few rows left from the last page don't cost a call of their own.
      const limit = pageRows - rows.length;
      const more = await table.page({ after: last ?? from, upTo, limit });
      checkOrder(table, last ?? from, more);
      rows.push(...more);
      isLocalEnd = more.length < limit;
    }
    const to = isLocalEnd ? upTo : rows.at(-1)?.id;
    const page = await records.list({
      source: table.source,
      bucketTypes: table.bucketTypes,
      after: from,
      upTo: to,
      pageSize: pageRows,
    });
    const isRemoteEnd = page.nextPageToken === "";
    const through = isRemoteEnd ? to : page.records.at(-1)?.source.id;
    if (!isRemoteEnd && (through === undefined || !isAfter(through, from))) throw new RepeatedPage(table);
    const ripe = rows.filter(({ id }) => through === undefined || !isAfter(id, through));
    const recency = { recentMs, asOfMs: page.asOfMs };
    yield {
      comparison: compare(ripe, page.records, recency, types),
      recency,
      rows: ripe.length,
      records: page.records.length,
      through,
    };
    // Past the last id of the range there is nothing to read.
    if (through === undefined || (isRemoteEnd && (isLocalEnd || through === upTo))) return;
    from = through;
    rows = rows.slice(ripe.length);
  }
}

/** Without progress, the same page would be requested forever. */
class RepeatedPage extends Error {
  constructor({ source }: VerifiedTable) {
    super(`the coordinator answered the same page of records of \`${source}\` twice; run verification again`);
    this.name = "RepeatedPage";
  }
}

const isAfter = (id: string, other: string): boolean =>
  other === "" || compareBytes(sourceOrder(id), sourceOrder(other)) > 0;

/** If rows came in another order than records, the two sides of a range would have different ids. */
export function checkOrder({ name }: VerifiedTable, after: string, rows: readonly VerifiedRow[]): void {
  let last = after;
  for (const { id } of rows) {
    if (!isAfter(id, last))
      throw new Error(
        `the rows of ${name} must come in the order of their ids, and ${id} came after ${last}: ` +
          "check the type and the collation of the id column",
      );
    last = id;
  }
}
