import type { AuditState, AuditTrail } from "../../kernel/audit-trail.ts";
import type { Cell } from "../../kernel/directory/messages.ts";
import type { DirectoryStore } from "../../kernel/directory/store.ts";

/** For changes that have an audit entry. */
export interface AuditedStore {
  readonly store: DirectoryStore;
  readonly audit: AuditTrail;
}

// What an audit entry says of the directory's rows (O1).

export const cellState = ({ name, address, locationHint }: Cell): AuditState => ({
  name,
  address,
  location_hint: locationHint,
});
