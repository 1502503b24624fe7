import type * as z from "zod";
import type { ClaimRecord, SourceRange } from "../../core/messages.ts";
import { keyExpired } from "../../auth/verifier.ts";
import { ok } from "../../core/refusal.ts";
import { accessRefusal } from "../access-refusal.ts";
import type { exportLine } from "../contract/schemas.ts";
import type { Call, Handlers } from "../handler.ts";
import type { Lines } from "../lines.ts";
import { timeOf, toApiRecord } from "../answers.ts";
import { rangeOf, readRange } from "./record-range.ts";

type Line = z.input<typeof exportLine>;

/**
 * The platform allows a Worker 10,000 calls for one request, or 1,000 by older pages of its documentation.
 * With many shards, this limit is reached before `exportRecords`.
 */
const MAX_CALLS = 900;

export const exportHandlers: Handlers<"exportRecords"> = {
  exportRecords(call) {
    const range = rangeOf(call.query, call.deployment.config.limits);
    return range.ok ? ok(async () => ok({ status: 200, body: linesOf(call, range.value) })) : range;
  },
};

/**
 * Reads page by page, each page when the reader has taken the previous one. Before each page, the key is
 * checked again, so that a revoked or expired key gets no further records.
 */
async function* linesOf(call: Call<"exportRecords">, { after: from, upTo }: SourceRange): Lines<Line> {
  const { deployment, waitUntil, principal, params, query } = call;
  const { limits, shards } = deployment.config;
  let lines: Line[] = [{ as_of: timeOf(deployment.clock.now()) }];
  let after = from;
  let cursor = query.source_id_gt ?? "";
  let calls = 0;
  for (let left = limits.exportRecords; ;) {
    const page = await readRange(call, {
      after,
      upTo,
      limit: Math.min(limits.maxPageItems, left),
      onCall: () => (calls += 1),
    });
    if (!page.ok) {
      // A caller that got further is told to continue, and its next call is told when.
      const isBusy = page.refusal.reason === "TOO_MANY_READS" && cursor !== (query.source_id_gt ?? "");
      return yield isBusy ? ok([{ end: "continue", cursor }]) : page;
    }
    const { records, next } = page.value;
    for (const line of recordLines(records, cursor)) lines.push(line);
    cursor = records.at(-1)?.source.id ?? cursor;
    left -= records.length;
    const mayGoOn = left > 0 && calls + shards < MAX_CALLS;
    if (next === undefined) return yield ok([...lines, { end: "complete" }]);
    if (!mayGoOn) return yield ok([...lines, { end: "continue", cursor }]);
    yield ok(lines);
    if (principal !== null && principal.expiresAtMs <= deployment.clock.now()) return yield keyExpired;
    const refusal = await accessRefusal(deployment, principal, params.cell, waitUntil);
    if (refusal !== undefined) return yield { ok: false, refusal };
    lines = [];
    after = next;
  }
}

/**
 * Makes the lines of a page. A page has all records of each of its source ids, so the last record of a source
 * id completes it.
 */
function* recordLines(records: readonly ClaimRecord[], before: string): Generator<Line> {
  let cursor = before;
  for (const [index, record] of records.entries()) {
    const { id } = record.source;
    if (records[index + 1]?.source.id !== id) cursor = id;
    yield { record: toApiRecord(record), cursor };
  }
}
