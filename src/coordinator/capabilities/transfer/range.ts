/** What a transfer moves: the claims of the source that have this scope. */
export interface TransferRange {
  from: string;
  scope: string;
}

/** The claims of a scope that a transfer has moved to a cell, on one shard. */
export interface MovedClaims {
  epoch: number;
  count: number;
}

/** The op of a transfer on one shard: a range hold (Y2). */
export interface TransferOp extends TransferRange {
  /** Present in a switch-back: the source must have exactly these claims (Y9). */
  unchanged?: MovedClaims;
}

/** Some claims: how many, and the digest of the set, as 32 hexadecimal digits (`DigestSum`). */
export interface DigestedClaims {
  count: number;
  hash: string;
}

/** Who has which claims of a scope. */
export interface BySide<T> {
  from: T;
  to: T;
}

export type TransferSide = keyof BySide<unknown>;

/**
 * Who calls. The Worker has checked the credential: that of the source with the source's own ledger. The
 * destination's ledger believes it, as every part believes which cell the Worker says that a caller is (Y7).
 */
export type TransferParty = "operator" | TransferSide;

/** How the row of a lease stores what a transfer moves. */
export const encodeRange = ({ from, scope }: TransferRange): string => JSON.stringify([from, scope]);

export function decodeRange(stored: string): TransferRange {
  const [from, scope] = JSON.parse(stored) as [string, string];
  return { from, scope };
}
