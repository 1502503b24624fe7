import type { AuditEntry, Operations } from "./api-types.ts";
import type { Caller } from "./caller.ts";
import type { CallOptions } from "./connection.ts";
import { pagesOf, type Page, type Pages } from "./pages.ts";

/** A page of audit entries. */
export interface AuditPage extends Page<AuditEntry> {
  /** The list has every change that was made before this time. Null: not known. */
  completeThrough: string | null;
}

export interface AuditOptions extends CallOptions {
  /** Only changes by this key. */
  keyId?: string | undefined;
  /** Only changes of this kind. */
  action?: AuditEntry["action"] | undefined;
  /** Only changes that are about this cell. */
  cell?: string | undefined;
  /** Only changes of this cell, key, lease or part, or of the `types`. */
  target?: string | undefined;
  /** Only changes at or after this time (RFC 3339). */
  after?: string | undefined;
  /** Only changes before this time (RFC 3339). */
  before?: string | undefined;
  pageSize?: number | undefined;
  pageToken?: string | undefined;
}

/** What operators changed. For operators. */
export class Audit {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** Lists changes, the latest first. New ones appear within a minute. */
  list(options: AuditOptions = {}): Pages<AuditEntry, AuditPage> {
    const { keyId, action, cell, target, after, before, pageSize, pageToken, ...call } = options;
    const query = { key_id: keyId, action, cell, target, after, before, page_size: pageSize };
    return pagesOf(this.#caller, "listAudit", { ...call, query }, pageOf, pageToken);
  }
}

const pageOf = (answer: Operations["listAudit"]["answer"]): AuditPage => ({
  items: answer.entries,
  nextPageToken: answer.next_page_token,
  completeThrough: answer.complete_through,
});
