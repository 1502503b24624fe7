import type { AuditEntry, AuditOptions } from "../../users/client/index.ts";
import { checkKeyId, pageSizeFor, type LimitOption } from "../framework/arguments.ts";
import { usageError } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { copyNote } from "../output/copy-note.ts";
import { listResult, type Result } from "../output/result.ts";
import { auditChanges, type AuditChange } from "../../common/status/audit-changes.ts";

interface ListOptions extends LimitOption {
  cell?: string;
  key?: string;
  action?: AuditEntry["action"];
  target?: string;
  since?: number;
}

const TARGET = /^[\w-]{1,64}$/;

export async function listAudit(context: Context, options: ListOptions): Promise<Result> {
  const { cell, key, action, target, since, limit } = options;
  if (key !== undefined) checkKeyId(key, "--key");
  // A key must not get into a URL, which proxies log.
  if (target !== undefined && !TARGET.test(target))
    throw usageError("--target must be the id of a cell, a key, a lease or a part, or `types`");
  const sinceMs = since === undefined ? undefined : context.io.now() - since * 1_000;
  const { items, isCut, completeThrough } = await read(context, limit, {
    cell,
    keyId: key,
    action,
    target,
    after: sinceMs === undefined ? undefined : new Date(sinceMs).toISOString(),
    pageSize: pageSizeFor(limit),
  });
  return listResult<AuditChange<AuditEntry>>({
    name: "entries",
    items,
    isCut,
    columns: [
      { title: "TIME", value: ({ at }) => at },
      { title: "ACTION", value: ({ action: did }) => did },
      { title: "TARGET", value: (entry) => entry.target },
      { title: "CELL", value: ({ cell_id: id }) => id },
      { title: "KEY", value: ({ key_id: id }) => id },
      { title: "NOTE OF THE KEY", value: ({ key_note: note }) => note },
      { title: "REASON", value: ({ reason }) => reason },
    ],
    empty: "There are no such changes.",
    about: { complete_through: completeThrough },
    notes: [copyNote("changes", completeThrough)],
  });
}

interface Read {
  items: AuditChange<AuditEntry>[];
  isCut: boolean;
  completeThrough: string | null;
}

/** Reads pages, because only they tell up to when the list is complete. */
async function read(context: Context, limit: number, options: AuditOptions): Promise<Read> {
  const all: AuditEntry[] = [];
  let completeThrough: string | null | undefined;
  for await (const page of (await context.client()).audit.list(options).pages()) {
    // The first page was read first, so it is complete up to the earliest time.
    if (completeThrough === undefined) completeThrough = page.completeThrough;
    all.push(...page.items);
    if (auditChanges(all).length > limit) break;
  }
  const changes = auditChanges(all);
  return {
    items: changes.slice(0, limit),
    isCut: changes.length > limit,
    completeThrough: completeThrough ?? null,
  };
}
