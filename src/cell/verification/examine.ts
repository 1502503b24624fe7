import { compareBytes, sourceOrder } from "../../core/source-order.ts";
import { compare, type Comparison, type Recency } from "./compare.ts";
import type { IdRange, VerificationPorts, VerifiedRow, VerifiedTable } from "./ports.ts";

export interface Examined {
  comparison: Comparison;
  recency: Recency;
  rows: number;
  records: number;
  /** The source id up to which all was compared; undefined: to the end. */
  through: string | undefined;
}

interface Examination extends IdRange {
  records: VerificationPorts["records"];
  table: VerifiedTable;
  recentMs: number;
  /** Rows, and records, that are in memory at a time. */
  pageRows: number;
  /** The first of them, where they were read already. */
  rows?: VerifiedRow[];
}

/** Compares rows and records of a range, page by page: however few rows there are for however many records, or the other way round. */
export async function* examine({
  records,
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
      // Filled up, or what a page of records has left over would get a call of its own.
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
      comparison: compare(ripe, page.records, recency),
      recency,
      rows: ripe.length,
      records: page.records.length,
      through,
    };
    // Behind the last id of the range there is nothing to ask about.
    if (through === undefined || (isRemoteEnd && (isLocalEnd || through === upTo))) return;
    from = through;
    rows = rows.slice(ripe.length);
  }
}

/** A page that does not go on would be asked for again for ever. */
class RepeatedPage extends Error {
  constructor({ source }: VerifiedTable) {
    super(`the listing of the records of ${source} repeats itself`);
    this.name = "RepeatedPage";
  }
}

const isAfter = (id: string, other: string): boolean =>
  other === "" || compareBytes(sourceOrder(id), sourceOrder(other)) > 0;

/** In another order than the coordinator's, rows and records of a range would not be about the same ids: every claim would look extra. */
export function checkOrder({ name }: VerifiedTable, after: string, rows: readonly VerifiedRow[]): void {
  let last = after;
  for (const { id } of rows) {
    if (!isAfter(id, last))
      throw new Error(`the rows of ${name} do not come in the order of their ids: ${id} after ${last}`);
    last = id;
  }
}
