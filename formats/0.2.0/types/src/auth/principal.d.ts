import type { Role } from "../core/role.ts";
export type Credential = {
    kind: "key";
} | {
    kind: "certificate";
    issuedBy: string;
    name: string;
    issuedAtMs: number;
} | {
    kind: "token";
    issuedBy: string;
    name: string;
};
export interface Principal {
    role: Role;
    keyId: string;
    expiresAtMs: number;
    cell: string | null;
    credential: Credential | null;
}
export declare const isCellId: (text: string) => boolean;
