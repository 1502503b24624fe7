import type { AuditState } from "../audit.ts";
import type { Cell, MintedKey } from "./messages.ts";

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
