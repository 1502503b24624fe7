import type * as z from "zod";
import type { ClaimRecord } from "../../../kernel/messages.ts";
import type { RecordPosition, SourceRange } from "../messages.ts";
import { keyExpired } from "../../../auth/verifier.ts";
import { ok, refused, type Result } from "../../../kernel/refusal.ts";
import { isWithinSource } from "../scan-store.ts";
import { compareBytes, sourceIdOf, sourceOrder } from "../../../../common/source-order.ts";
import { accessRefusal } from "../../../api/access-refusal.ts";
import type { exportLine } from "../../../api/contract/schemas.ts";
import type { Call, Handler } from "../../../api/handler.ts";
import type { Lines } from "../../../api/lines.ts";
import type { Types } from "../../../../common/types/types.ts";
import type { recordRoutes } from "./routes.ts";
import { storedTypes, timeOf, toApiRecord } from "../../../api/answers.ts";
import { isSplit } from "./record-merge.ts";
import { READ_CALLS } from "../../../api/handlers/ledger-access.ts";
import { MAX_CALLS, rangeOf, readRange, selectionOf, type Selection } from "./range-handler.ts";

type Line = z.input<typeof exportLine>;

export const exportRecords: Handler<(typeof recordRoutes)["exportRecords"]> = async (call) => {
  const range = rangeOf(call.query, call.deployment.config.limits);
  if (!range.ok) return range;
  const selection = await selectionOf(call.deployment, call.query);
  if (!selection.ok) return selection;
  return ok({ status: 200, body: linesOf(call, { ...range.value, ...selection.value }) });
};

/**
 * Reads page by page, each page when the reader has taken the previous one. Before each page, the key is
 * checked again, so that a revoked or expired key gets no further records.
 */
async function* linesOf(
  call: Call<(typeof recordRoutes)["exportRecords"]>,
  range: SourceRange & Selection,
): Lines<Line> {
  const { deployment, waitUntil, principal, params, query } = call;
  const { limits } = deployment.config;
  const from = query.source_id_gt ?? "";
  let lines: Line[] = [{ as_of: timeOf(deployment.clock.now()) }];
  let behind: RecordPosition | undefined;
  let cursor = from;
  let calls = 0;
  for (let left = limits.exportRecords; ;) {
    const wanted = { ...range, behind, limit: Math.min(limits.maxPageItems, Math.max(left, 1)) };
    const page = await deployment.placed((placed) =>
      readRange(
        { ...call, deployment: placed },
        { ...wanted, calls: MAX_CALLS - calls - READ_CALLS, onCall: () => (calls += 1) },
      ),
    );
    if (!page.ok) {
      // A caller that got further is told to continue, and its next call is told when.
      const isBusy = page.refusal.reason === "TOO_MANY_READS" && cursor !== from;
      return yield isBusy ? ok([{ end: "continue", cursor }]) : page;
    }
    const { records, next } = page.value;
    const types = await deployment.types.forAnswer(storedTypes(records));
    if (!types.ok) return yield types;
    const isOpen = isSplit(page.value);
    for (const line of recordLines(types.value, records, cursor, isOpen)) {
      lines.push(line);
      if ("cursor" in line) ({ cursor } = line);
    }
    if (next === undefined) return yield ok([...lines, { end: "complete" }]);
    if (!isOpen) cursor = laterOf(cursor, lastWholeId(next));
    left -= records.length;
    const hasCalls = calls + deployment.placement.shards < MAX_CALLS;
    // An answer ends after a complete source id, because the cursor cannot say where one was left.
    if (!hasCalls || (left <= 0 && !isOpen)) {
      if (cursor === from) return yield noProgress(from);
      return yield ok([...lines, { end: "continue", cursor }]);
    }
    yield ok(lines);
    if (principal !== null && principal.expiresAtMs <= deployment.clock.now()) return yield keyExpired;
    const refusal = await accessRefusal(deployment, principal, params.cell, false, waitUntil);
    if (refusal !== undefined) return yield { ok: false, refusal };
    lines = [];
    behind = next;
  }
}

/**
 * Returns a source id with no unread records up to it, when everything up to this position has been read. The
 * shards may have read a long way without a record, so this moves on even if the page has none.
 */
function lastWholeId(position: RecordPosition): string {
  const id = sourceIdOf(position[0]);
  if (!isWithinSource(position)) return id;
  // More records of this id may follow, so the number before it is the last that is certainly complete.
  return /^[1-9]\d*$/.test(id) ? String(BigInt(id) - 1n) : "";
}

const laterOf = (a: string, b: string): string =>
  b !== "" && (a === "" || compareBytes(sourceOrder(a), sourceOrder(b)) < 0) ? b : a;

const noProgress = (from: string): Result<never> =>
  refused(
    "RESOURCE_EXHAUSTED",
    `the records of the first source id after \`${from}\` don't fit into one export; read them with the ` +
      "paged list, and continue the export with that id as `source_id_gt`",
  );

/**
 * Makes the lines of a page. The last record of a source id completes it, unless the page is split there
 * (`isOpen`).
 */
function* recordLines(
  types: Types,
  records: readonly ClaimRecord[],
  before: string,
  isOpen: boolean,
): Generator<Line & { cursor: string }> {
  let cursor = before;
  for (const [index, record] of records.entries()) {
    const { id } = record.source;
    const isLast = index === records.length - 1;
    if (records[index + 1]?.source.id !== id && !(isLast && isOpen)) cursor = id;
    yield { record: toApiRecord(types, record), cursor };
  }
}
