import type { Role } from "../core/role.ts";
import type { Hmac } from "./hmac.ts";
export interface KeyPayload {
    v: 1;
    id: string;
    role: Role;
    cell?: string;
    iat: number;
    exp: number;
}
export interface ParsedKey {
    payload: KeyPayload;
    signed: string;
    signature: Uint8Array<ArrayBuffer>;
}
export declare function makeKey(payload: KeyPayload, hmac: Hmac): Promise<string>;
export declare function parseKey(token: string): ParsedKey | undefined;
