import type { Change, ChangesPage, ChangesRequest } from "./messages.ts";
import { loggedChanges } from "./logged-changes.ts";
import type { ShardLog } from "../../kernel/shard/shard-log.ts";

/** The number of log rows that are read at a time, because a few rows can fill a page. */
const CHUNK_ROWS = 32;

/** A page reads at most this many rows, also if the filters leave nothing of them. */
const PAGE_ROWS = 512;

/** A page ends with the transaction that brings it to this many changes, whatever its filters. */
const PAGE_VISITED = 2_000;

type Filter = Pick<ChangesRequest, "cell" | "type" | "limit">;

/**
 * Returns a page of what happened after a position, in order (F4), and how many changes were read for it.
 * Undefined if the log does not go back that far.
 *
 * @param lastPosition - the page ends there, because the next transaction is of another incarnation
 */
export function changesPage(
  log: ShardLog,
  after: number,
  filter: Filter,
  lastPosition = Infinity,
): { page: Omit<ChangesPage, "incarnations">; visited: number } | undefined {
  const changes: Change[] = [];
  let through = after;
  let visited = 0;
  for (let rows = 0; rows < PAGE_ROWS; rows += CHUNK_ROWS) {
    const chunk = log.textsAfter(through, CHUNK_ROWS);
    if (chunk === undefined) return undefined;
    for (const transaction of chunk) {
      // The rows up to there may have left the log without a change. The next page must not begin again.
      if (transaction.position > lastPosition)
        return { page: { after, through: lastPosition, changes, hasMore: true }, visited };
      for (const { movedFrom, ...change } of loggedChanges(transaction)) {
        visited += 1;
        if (isWanted(change, movedFrom, filter)) changes.push(change);
      }
      through = transaction.position;
      const isFull = changes.length >= filter.limit || visited >= PAGE_VISITED;
      if (isFull) return { page: { after, through, changes, hasMore: log.position > through }, visited };
    }
    if (chunk.length < CHUNK_ROWS) return { page: { after, through, changes, hasMore: false }, visited };
  }
  return { page: { after, through, changes, hasMore: true }, visited };
}

function isWanted({ cell, claim }: Change, movedFrom: string | undefined, filter: Filter): boolean {
  if (filter.cell !== null && cell !== filter.cell && movedFrom !== filter.cell) return false;
  return filter.type === null || claim?.type === filter.type;
}
