import type { Principal } from "./principal.ts";
import type { Secrets } from "./secrets.ts";
export declare const SESSION_S = 1800;
export type ConsoleRole = "operator" | "viewer";
export interface ConsoleSession {
    id: string;
    keyId: string;
    role: ConsoleRole;
    keyExpiresAtMs: number;
    expiresAtMs: number;
    email?: string;
}
export declare const isConsoleRole: (role: string) => role is ConsoleRole;
export declare const principalOf: ({ keyId, role, keyExpiresAtMs, email }: ConsoleSession) => Principal;
export declare class ConsoleSessions {
    #private;
    constructor({ current, previous }: Secrets);
    start({ keyId, expiresAtMs }: Principal, role: ConsoleRole, nowMs: number): Promise<string>;
    read(text: string, nowMs: number): Promise<ConsoleSession | undefined>;
    formToken({ id }: ConsoleSession): Promise<string>;
    isFormToken({ id }: ConsoleSession, token: string): Promise<boolean>;
}
