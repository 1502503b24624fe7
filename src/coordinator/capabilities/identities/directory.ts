import type { Identities, IdentitySet } from "./identities.ts";
import { changedMeanwhile, ok, type Result } from "../../kernel/refusal.ts";
import type { ChangeIdentities } from "../../kernel/directory/messages.ts";
import type { AuditedStore } from "../../kernel/directory/audited.ts";

declare module "../../kernel/audit-trail.ts" {
  interface AuditedActions {
    change_identities: true;
  }
}

/** Replaces the identities, based on those that the operator has read (A4). Runs inside a transaction. */
export function changeIdentities(
  { store, audit }: AuditedStore,
  { position, identities, operator }: ChangeIdentities,
): Result<IdentitySet> {
  const before = store.identities;
  // A repeated change has been carried out already.
  if (textOf(before) === textOf(identities)) return ok(before);
  if (position !== before.position) return changedMeanwhile("the identities");
  const after = store.setIdentities(identities);
  audit.append(operator, {
    action: "change_identities",
    cell: null,
    target: "identities",
    before: stateOf(before),
    after: stateOf(after),
  });
  return ok(after);
}

const textOf = ({ issuers, authorities }: Identities): string => JSON.stringify({ issuers, authorities });

/** The most names that an audit entry lists. */
const MAX_LISTED = 20;

const stateOf = ({ position, issuers, authorities }: IdentitySet) => ({
  version: position,
  issuers: issuers.map(({ name }) => name).slice(0, MAX_LISTED),
  authorities: authorities.map(({ name }) => name).slice(0, MAX_LISTED),
});
