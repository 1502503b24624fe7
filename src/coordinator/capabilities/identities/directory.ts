import { noIdentities, type Identities, type IdentitySet } from "./identities.ts";
import { changedMeanwhile, ok, type Result } from "../../kernel/refusal.ts";
import type { DirectoryPart } from "../../kernel/directory/part.ts";
import type { ChangeIdentities } from "./identities.ts";

type Stored = Pick<DirectoryPart, "store">;

export const identitiesIn = ({ store }: Stored): IdentitySet => store.setting("identities", noIdentities);

export const setIdentities = ({ store }: Stored, { issuers, authorities }: Identities): IdentitySet =>
  store.putSetting("identities", { issuers, authorities });

declare module "../../kernel/audit-trail.ts" {
  interface AuditedActions {
    change_identities: true;
  }
}

/** Replaces the identities, based on those that the operator has read (A4). Runs inside a transaction. */
export function changeIdentities(
  part: Pick<DirectoryPart, "store" | "audit">,
  { position, identities, operator }: ChangeIdentities,
): Result<IdentitySet> {
  const before = identitiesIn(part);
  // A repeated change has been carried out already.
  if (textOf(before) === textOf(identities)) return ok(before);
  if (position !== before.position) return changedMeanwhile("the identities");
  const after = setIdentities(part, identities);
  part.audit.current.append(operator, {
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
