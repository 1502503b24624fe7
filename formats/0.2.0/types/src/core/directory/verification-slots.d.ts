import type { GroupCommit } from "../group-commit.ts";
import type { Limits } from "../limits.ts";
import type { Envelope } from "../messages.ts";
import type { DirectoryMetrics } from "../metrics/messages.ts";
import type { Ports } from "../ports.ts";
import { type Result } from "../refusal.ts";
export interface VerificationSlotRequest extends Envelope {
    cell: string;
    uuid: string;
}
export interface VerificationSlot {
    cell: string;
    uuid: string;
    expiresAtMs: number;
    expiresInMs: number;
}
interface Needs {
    readonly ports: Ports;
    readonly limits: Limits;
    readonly commits: GroupCommit;
}
export declare class VerificationSlots {
    #private;
    constructor(part: Needs);
    take({ cell, uuid }: VerificationSlotRequest): Promise<Result<VerificationSlot>>;
    release({ cell, uuid }: VerificationSlotRequest): Promise<Result<boolean>>;
    forget(cell: string): void;
    counts(): Pick<DirectoryMetrics, "verificationSlots" | "verificationWaiting">;
}
export {};
