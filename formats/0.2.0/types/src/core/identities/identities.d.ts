import type { Role } from "../role.ts";
export interface Grant {
    role: Role;
    cell: string | null;
}
export interface TokenRule extends Grant {
    claims: Readonly<Record<string, readonly string[]>>;
}
export type PublicJwk = Readonly<Record<string, string>>;
export interface Issuer {
    name: string;
    issuer: string;
    audience: string;
    algorithms: readonly string[];
    jwksUrl: string | null;
    keys: readonly PublicJwk[] | null;
    tokenHeader?: string;
    rules: readonly TokenRule[];
}
export interface CertificateRule extends Grant {
    kind: "dns" | "uri";
    name: string;
}
export interface Authority {
    name: string;
    certificate: string;
    expiresAtMs: number;
    rules: readonly CertificateRule[];
}
export interface Identities {
    issuers: readonly Issuer[];
    authorities: readonly Authority[];
}
export interface IdentitySet extends Identities {
    position: number;
}
export declare const noIdentities: IdentitySet;
export declare const cellsOf: ({ issuers, authorities }: Identities) => string[];
export declare const MAX_IDENTITIES_BYTES = 262144;
