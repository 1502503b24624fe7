import type { AuditState, AuditTrail } from "../audit-trail.ts";
import type { Cell, MintedKey } from "./messages.ts";
import type { DirectoryStore } from "./store.ts";

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

export const keyState = ({ role, cell, note, expiresAtMs, revokedAtMs }: MintedKey): AuditState => ({
  role,
  cell_id: cell,
  note,
  expires_at_ms: expiresAtMs,
  is_revoked: revokedAtMs !== null,
});
