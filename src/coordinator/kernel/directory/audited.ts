import type { AuditTrail } from "../../kernel/audit-trail.ts";
import type { DirectoryStore } from "../../kernel/directory/store.ts";

/** For changes that have an audit entry. */
export interface AuditedStore {
  readonly store: DirectoryStore;
  readonly audit: AuditTrail;
}
