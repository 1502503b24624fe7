import {
  TimeoutError,
  UnavailableError,
  type Client,
  type CredentialUse,
  type IdentitySet,
  type Key,
} from "../../users/client/index.ts";

export const credentialKinds = ["authority", "issuer", "key", "certificate", "token"] as const;

/** Something by which callers are recognized: keys, and what is accepted beside them. */
export interface Credential {
  kind: (typeof credentialKinds)[number];
  /** What the log has as `key_id`, and what revokes it. Null: an authority or issuer. */
  id: string | null;
  role: Key["role"] | null;
  cell_id: string | null;
  /** `NOT_ACCEPTED`: no authority or issuer accepts it any more. */
  state: "VALID" | "EXPIRED" | "REVOKED" | "NOT_ACCEPTED";
  /** Of a key, its note. */
  name: string | null;
  issued_by: string | null;
  /** Null: only of keys is it known. */
  created_at: string | null;
  expires_at: string | null;
  /** The hour of the last use. Null: none is recorded. Left out: not known. */
  last_used_at?: string | null;
  revoked_at: string | null;
}

/** What the deployment has recorded of certificates, tokens and last uses. Undefined: it can't be read. */
export type Uses = ReadonlyMap<string, CredentialUse> | undefined;

const PAGE_SIZE = 1_000;

export async function readUses(client: Client): Promise<Uses> {
  try {
    const uses = await client.keys.uses({ pageSize: PAGE_SIZE }).all();
    return new Map(uses.map((use) => [use.id, use]));
  } catch (error) {
    if (error instanceof UnavailableError || error instanceof TimeoutError) return undefined;
    throw error;
  }
}

/**
 * Yields authorities and issuers, then keys in the order of their last change, then what is not listed but
 * was used: keys that were made offline, certificates, and subjects of tokens.
 */
export async function* credentialsOf(client: Client, uses: Uses, nowMs: number): AsyncGenerator<Credential> {
  const identities = await client.identities.get();
  yield* sourcesOf(identities, nowMs);
  const listed = new Set<string>();
  const revokedAt = new Map<string, string>();
  for await (const key of client.keys.list()) {
    const use = uses?.get(key.id);
    // A certificate or subject that was revoked is listed like a key.
    if (use === undefined || use.kind === "key") {
      listed.add(key.id);
      yield ofKey(key, uses, nowMs);
    } else if (key.revoked_at !== null) revokedAt.set(key.id, key.revoked_at);
  }
  for (const kind of ["key", "certificate", "token"] as const)
    for (const use of uses?.values() ?? [])
      if (use.kind === kind && !listed.has(use.id))
        yield ofUse({ ...use, revoked_at: revokedAt.get(use.id) ?? use.revoked_at }, identities, nowMs);
}

const NOBODY = {
  id: null,
  role: null,
  cell_id: null,
  issued_by: null,
  created_at: null,
  expires_at: null,
  revoked_at: null,
};

function sourcesOf({ authority_expiries: expiries, issuers }: IdentitySet, nowMs: number): Credential[] {
  return [
    ...expiries.map(({ name, expires_at: expiresAt }): Credential => ({
      ...NOBODY,
      kind: "authority",
      state: isOver(expiresAt, nowMs) ? "EXPIRED" : "VALID",
      name,
      expires_at: expiresAt,
    })),
    ...issuers.map(({ name }): Credential => ({
      ...NOBODY,
      kind: "issuer",
      state: "VALID",
      name,
    })),
  ];
}

function ofKey({ note, ...key }: Key, uses: Uses, nowMs: number): Credential {
  const state = key.revoked_at !== null ? "REVOKED" : isOver(key.expires_at, nowMs) ? "EXPIRED" : "VALID";
  const used = uses === undefined ? {} : { last_used_at: uses.get(key.id)?.last_used_at ?? null };
  return { kind: "key", ...key, state, name: note, issued_by: null, ...used };
}

function ofUse(use: CredentialUse, identities: IdentitySet, nowMs: number): Credential {
  const { first_used_at: _, ...shown } = use;
  const isExpired = use.expires_at !== null && isOver(use.expires_at, nowMs);
  const valid = isAccepted(use, identities) ? "VALID" : "NOT_ACCEPTED";
  const state = use.revoked_at !== null ? "REVOKED" : isExpired ? "EXPIRED" : valid;
  return { ...shown, created_at: null, state };
}

/** Which rule fits a token depends on its claims, which are not recorded. */
function isAccepted(
  { kind, issued_by: by, name }: CredentialUse,
  { authorities, issuers }: IdentitySet,
): boolean {
  if (kind === "key") return true;
  if (kind === "token") return issuers.some((issuer) => issuer.name === by);
  const authority = authorities.find((each) => each.name === by);
  return authority?.rules.some(({ dns, uri }) => (dns ?? uri) === name) ?? false;
}

const isOver = (at: string, nowMs: number): boolean => Date.parse(at) <= nowMs;
