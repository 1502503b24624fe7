/** The part of Leasehold's requests that the peers understand. Each peer stores it in its own way. */
export interface Claim {
  type: string;
  /** The lower-case form, which is compared. */
  name: string;
  value: string;
  subject: string;
  source: string;
}

interface RequestClaim {
  bucket: { type: string; value: string };
  subject: { type: string; id: string };
  source: { type: string; id: string };
}

/** Undefined when the body is invalid. */
export function claimsOf(body: unknown): Claim[] | undefined {
  const creates = (body as { creates?: unknown } | null)?.creates;
  if (!Array.isArray(creates) || creates.length === 0 || creates.length > 100) return undefined;
  const claims: Claim[] = [];
  for (const { bucket, subject, source } of creates as RequestClaim[]) {
    if (typeof bucket?.type !== "string" || typeof bucket.value !== "string" || bucket.value.length > 1_024)
      return undefined;
    claims.push({
      type: bucket.type,
      name: bucket.value.toLowerCase(),
      value: bucket.value,
      subject: `${subject.type}:${subject.id}`,
      source: `${source.type}:${source.id}`,
    });
  }
  return claims;
}

/** Peers have one fixed key per cell and one for the router, compared as text. */
export const peerKey = (cell: string): string => `key-of-cell-${cell}`;
export const PEER_ROUTER = "key-of-router";
export const peerKeys = (cells: readonly string[]): Record<string, string> =>
  Object.fromEntries(cells.map((cell) => [cell, peerKey(cell)]));

export const CELLS = ["1", "2", "3", "4"];
