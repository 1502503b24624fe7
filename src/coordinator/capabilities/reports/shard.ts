import { refused, ok, type Result } from "../../kernel/refusal.ts";
import type { LoggedHolds, ShardLog } from "../../kernel/shard/shard-log.ts";
import type { Report } from "./messages.ts";

/** A page ends after this many transactions, or with the transaction that brings it to this many keys. */
const PAGE_TRANSACTIONS = 256;
const PAGE_KEYS = 400;

/** The number of log rows that are read at a time, because a few rows can fill a page. */
const CHUNK_ROWS = 32;

/** Returns the keys that were put on hold after a position, for routers (Q3). */
export function readReport(log: ShardLog, after: number | null): Result<Report> {
  const newest = log.position;
  // A router's word proves no loss: it is no peer, and nothing of it is stored (H4).
  if (after !== null && after > newest) {
    return refused(
      "UNAVAILABLE",
      `the shard is at position ${newest}, and the report should begin after position ${after}`,
      { retryAfterMs: 1_000 },
    );
  }
  const report = reportAfter(log, after ?? newest);
  return report === undefined
    ? refused(
        "FAILED_PRECONDITION",
        `the shard no longer has all changes after position ${after}; forget what it has answered, and ` +
          "ask for its newest position",
        { reason: "REPORT_PRUNED" },
      )
    : ok(report);
}

/**
 * Returns the first page of a report: the keys that were put on hold after a position (Q3). A full page
 * depends on nothing but its position. Undefined if the log does not go back that far.
 */
export function reportAfter(log: ShardLog, after: number): Report | undefined {
  const rows: LoggedHolds[] = [];
  let through = after;
  for (let keys = 0; rows.length < PAGE_TRANSACTIONS;) {
    const chunk = log.holdsAfter(through, CHUNK_ROWS);
    if (chunk === undefined) return undefined;
    for (const row of chunk) {
      rows.push(row);
      keys += row.keys.length;
      through = row.position;
      if (keys >= PAGE_KEYS) return pageOf(after, rows, true);
    }
    if (chunk.length < CHUNK_ROWS) return pageOf(after, rows, false);
  }
  return pageOf(after, rows, true);
}

function pageOf(after: number, rows: readonly LoggedHolds[], isFull: boolean): Report {
  return {
    after,
    through: rows.at(-1)?.position ?? after,
    held: rows.flatMap(({ position, keys }) => (keys.length === 0 ? [] : [{ position, keys }])),
    hasMore: isFull,
  };
}
