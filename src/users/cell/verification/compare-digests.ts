import { DigestSum, digestWordsOf } from "../../../common/digest.ts";
import type { Types } from "../../../common/types/types.ts";
import { isRecentRow } from "./compare.ts";
import { checkOrder } from "./examine.ts";
import { digestedOf, namesOf } from "./row-names.ts";
import type { RangeCounts } from "./counts.ts";
import type { IdRange, RangeDigest, VerificationPorts, VerifiedRow, VerifiedTable } from "./ports.ts";

/** What the digests of one segment show. */
export interface DigestComparison {
  /** Ranges whose records have to be compared, in order. Adjacent ranges are joined. */
  unequal: IdRange[];
  /** One entry for each range, in order. */
  counts: (RangeCounts & Pick<IdRange, "upTo">)[];
  /** The end of the segment. Undefined: the end of the table, including records beyond its last row. */
  upTo: string | undefined;
}

interface SegmentScan {
  records: VerificationPorts["records"];
  types: Types;
  table: VerifiedTable;
  after: string;
  /** The last source id that this pass reads. Undefined: the end of the table. */
  end: string | undefined;
  recentMs: number;
  pageRows: number;
  rangeRows: number;
  /** How many ranges one call may have. */
  ranges: number;
}

interface LocalRange extends IdRange {
  rows: number;
  sum: DigestSum;
  /** The digest cannot prove this range equal: it has a recent row, or a value that is not a name. */
  needsRecords: boolean;
}

interface LocalDigests {
  local: LocalRange[];
  upTo: string | undefined;
}

/**
 * Reads the rows of the next segment and finds the ranges whose digests differ from the coordinator's. Keeps
 * only the sums in memory, not the rows.
 */
export async function compareDigests(scan: SegmentScan): Promise<DigestComparison> {
  const { local, upTo } = await digestRows(scan);
  const { source, bucketTypes } = scan.table;
  const ranges = local.map((range) => ({ after: range.after, upTo: range.upTo }));
  const { asOfMs, digests } = await scan.records.digests({ source, bucketTypes, ranges });
  const comparison: DigestComparison = { unequal: [], counts: [], upTo };
  for (const [index, range] of local.entries()) {
    const isEqual = isProof(range, digests[index], asOfMs - scan.recentMs);
    if (!isEqual) addUnequal(comparison.unequal, range);
    const [rows, claims] = isEqual ? [range.rows, range.sum.count] : [0, 0];
    comparison.counts.push({ upTo: range.upTo, rows, claims, ranges: 1, equalRanges: isEqual ? 1 : 0 });
  }
  return comparison;
}

/**
 * Equal digests prove nothing in a range with a hold or a recent change, because the lease may still end
 * either way, and the two sides were not read at the same moment. In any other range nothing has changed
 * between the two reads (V4).
 */
function isProof(
  { sum, needsRecords }: LocalRange,
  digest: RangeDigest | undefined,
  unchangedSinceMs: number,
): boolean {
  if (needsRecords || digest === undefined || digest.held) return false;
  if (digest.newestUpdatedAtMs !== undefined && digest.newestUpdatedAtMs > unchangedSinceMs) return false;
  return digest.count === sum.count && digest.hash === sum.hash;
}

function addUnequal(unequal: IdRange[], { after, upTo }: IdRange): void {
  const last = unequal.at(-1);
  if (last !== undefined && last.upTo === after) last.upTo = upTo;
  else unequal.push({ after, upTo });
}

/** Ranges continue across pages, so only the last range of a table is shorter than `rangeRows`. */
async function digestRows({
  table,
  after,
  end,
  recentMs,
  pageRows,
  rangeRows,
  ranges,
  types,
}: SegmentScan): Promise<LocalDigests> {
  const local: LocalRange[] = [];
  let open: VerifiedRow[] = [];
  let from = after;
  for (let read = 0, last = after; ;) {
    const limit = Math.min(pageRows, ranges * rangeRows - read);
    const rows = await table.page({ after: last, upTo: end, limit });
    checkOrder(table, last, rows);
    read += rows.length;
    last = rows.at(-1)?.id ?? last;
    open.push(...rows);
    for (; open.length >= rangeRows; open = open.slice(rangeRows)) {
      const range = rangeOf(from, open.slice(0, rangeRows), recentMs, types);
      local.push(range);
      from = range.upTo ?? from;
    }
    if (rows.length < limit) return { local: upToTheEnd(local, from, open, end, recentMs, types), upTo: end };
    if (read >= ranges * rangeRows) return { local, upTo: last };
  }
}

/** Extends the last range to the end, so that it covers records beyond the last row. */
function upToTheEnd(
  local: LocalRange[],
  from: string,
  open: readonly VerifiedRow[],
  end: string | undefined,
  recentMs: number,
  types: Types,
): LocalRange[] {
  const last = open.length > 0 ? undefined : local.pop();
  return [...local, { ...(last ?? rangeOf(from, open, recentMs, types)), upTo: end }];
}

function rangeOf(after: string, rows: readonly VerifiedRow[], recentMs: number, types: Types): LocalRange {
  const range: LocalRange = {
    after,
    upTo: rows.at(-1)?.id,
    rows: rows.length,
    sum: new DigestSum(),
    needsRecords: false,
  };
  for (const row of rows) {
    const { names, duplicates, unnameable } = namesOf(types, row.claims);
    for (const name of names) range.sum.add(digestWordsOf(digestedOf(types, name)));
    range.needsRecords ||= unnameable.length > 0 || duplicates.length > 0 || isRecentRow(row, recentMs);
  }
  return range;
}
