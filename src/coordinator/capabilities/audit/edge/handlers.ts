import type * as z from "zod";
import type { AuditState } from "../../../kernel/audit-trail.ts";
import { ok } from "../../../kernel/refusal.ts";
import { listAudit, type AuditPosition, type ListedEntry } from "./cron.ts";
import { timeOf } from "../../../api/answers.ts";
import { auditRoutes } from "./routes.ts";
import type { Handlers } from "../../../api/handler.ts";
import { pageOf } from "../../../api/paging.ts";
import { UNREADABLE_PROJECTION, withFailure } from "../../../isolate/reach.ts";

type ApiEntry = z.input<(typeof auditRoutes)["listAudit"]["responses"][200]["schema"]>["entries"][number];

const auditHandlers: Handlers<typeof auditRoutes> = {
  async listAudit(call) {
    const page = await pageOf<AuditPosition>(call);
    if (!page.ok) return page;
    const { limit, position, next } = page.value;
    const { key_id: keyId, action, cell, target, after: afterMs, before: beforeMs } = call.query;
    const listed = await listAudit(call.deployment.env, {
      limit,
      ...(keyId === undefined ? {} : { keyId }),
      ...(action === undefined ? {} : { action }),
      ...(cell === undefined ? {} : { cell }),
      ...(target === undefined ? {} : { target }),
      ...(afterMs === undefined ? {} : { afterMs }),
      ...(beforeMs === undefined ? {} : { beforeMs }),
      ...(position === undefined ? {} : { last: position }),
    });
    // The error of D1 is only for the log, so it is replaced here.
    if (!listed.ok) return withFailure(listed, UNREADABLE_PROJECTION);
    const { entries, more, completeThroughMs } = listed.value;
    const last = more ? entries.at(-1) : undefined;
    return ok({
      status: 200,
      body: {
        entries: entries.map(toApiEntry),
        complete_through: completeThroughMs === null ? null : timeOf(completeThroughMs),
        next_page_token: await next(last && { atMs: last.atMs, id: last.id }),
      },
    });
  },
};

const toApiEntry = (entry: ListedEntry): ApiEntry => ({
  id: entry.id,
  at: timeOf(entry.atMs),
  key_id: entry.keyId,
  key_note: entry.keyNote,
  action: entry.action,
  cell_id: entry.cellId,
  target: entry.target,
  part: entry.part,
  reason: entry.reason,
  request_id: entry.requestId,
  before: stateOf(entry.before),
  after: stateOf(entry.after),
});

/** Shows times as the API shows them. */
function stateOf(json: string | null): Record<string, unknown> | null {
  if (json === null) return null;
  const fields = Object.entries(JSON.parse(json) as AuditState).map(([name, value]) =>
    name.endsWith(TIME) && typeof value === "number"
      ? [name.slice(0, -MILLISECONDS.length), timeOf(value)]
      : [name, value],
  );
  return Object.fromEntries(fields) as Record<string, unknown>;
}

const MILLISECONDS = "_ms";
const TIME = `_at${MILLISECONDS}`;

export { auditHandlers as handlers, auditRoutes as routes };
