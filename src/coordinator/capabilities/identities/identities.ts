import type { Role } from "../../kernel/role.ts";
import type { OperatorCall } from "../../kernel/messages.ts";

// What certificates and tokens are accepted beside keys, as the directory stores it (A4).

/** What somebody may do who is recognized. */
export interface Grant {
  role: Role;
  /** The cell of the role `cell`; null for other roles. */
  cell: string | null;
}

/** Grants something to the tokens with these claims. */
export interface TokenRule extends Grant {
  /** Each claim must have one of its values. A claim that is a list must contain one of them. */
  claims: Readonly<Record<string, readonly string[]>>;
}

/** The members of a public key in a JWK set that are text (RFC 7517). */
export type PublicJwk = Readonly<Record<string, string>>;

/** An issuer of JSON web tokens. */
export interface Issuer {
  name: string;
  /** The `iss` of its tokens. */
  issuer: string;
  /** What the `aud` of its tokens must be or contain. */
  audience: string;
  /** The algorithms with which its tokens may be signed. */
  algorithms: readonly string[];
  /** Where its keys are read. Null: `keys` has them. */
  jwksUrl: string | null;
  keys: readonly PublicJwk[] | null;
  /** A header in which a proxy sends its tokens, in lower case. Undefined: they only come as bearers. */
  tokenHeader?: string;
  /** The first rule that fits a token applies. */
  rules: readonly TokenRule[];
}

/** Grants something to the certificates with this name among their subject alternative names. */
export interface CertificateRule extends Grant {
  kind: "dns" | "uri";
  /** The whole name. Those of DNS are in lower case. */
  name: string;
}

/** A certificate authority whose client certificates are accepted. */
export interface Authority {
  name: string;
  /** Its certificate in PEM. It must have signed the clients' certificates itself. */
  certificate: string;
  /** When its certificate expires. */
  expiresAtMs: number;
  /** The first rule that fits a certificate applies. */
  rules: readonly CertificateRule[];
}

export interface Identities {
  issuers: readonly Issuer[];
  authorities: readonly Authority[];
}

/** A version of the identities. */
export interface IdentitySet extends Identities {
  /** The directory's position when they were changed for the last time. 0: never. */
  position: number;
}

export const noIdentities: IdentitySet = { position: 0, issuers: [], authorities: [] };

/** The cells that the identities name, each once. */
export const cellsOf = ({ issuers, authorities }: Identities): string[] => [
  ...new Set(
    [...issuers, ...authorities]
      .flatMap(({ rules }): readonly Grant[] => rules)
      .flatMap(({ cell }) => (cell === null ? [] : [cell])),
  ),
];

/** The most bytes of the identities as JSON. A row of SQLite in a Durable Object may have 2 MB. */
export const MAX_IDENTITIES_BYTES = 262_144;

/** Replaces the identities, if they still are those that the operator has read (A4). */
export interface ChangeIdentities extends OperatorCall {
  /** The position of those identities. */
  position: number;
  identities: Identities;
}
