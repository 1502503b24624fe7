import type { History } from "../history.ts";
import type { Limits } from "../limits.ts";
import type { ScrubFinding, ScrubPass, ScrubStatus, ScrubStep, ScrubTable, ScrubWork } from "../messages.ts";
import type { ScrubMetrics } from "../metrics/messages.ts";
import type { Ports, SqlValue } from "../ports.ts";
import { type Result } from "../refusal.ts";
export declare const MAX_FINDINGS = 20;
export interface ScrubCursor {
    table: ScrubTable;
    behind: readonly SqlValue[];
}
export type NewFinding = Omit<ScrubFinding, "foundAtMs">;
export interface ScrubProgress {
    next: ScrubCursor | null;
    rows: number;
    findings: NewFinding[];
    clearedHolds: number;
    unchecked: number;
}
export declare const nothingChecked: (next: ScrubCursor | null) => ScrubProgress;
export type CheckRows = (cursor: ScrubCursor | null, step: ScrubStep) => Promise<Result<ScrubProgress>>;
export interface StoredScrub {
    running: {
        pass: ScrubPass;
        cursor: ScrubCursor;
    } | null;
    last: ScrubPass | null;
}
export declare class Scrub {
    #private;
    constructor(ports: Pick<Ports, "sql" | "clock" | "halt">, { scrubEveryS }: Pick<Limits, "scrubEveryS">, history: History, check: CheckRows);
    get status(): ScrubStatus;
    get work(): ScrubWork;
    get metrics(): ScrubMetrics;
    step(message: ScrubStep): Promise<Result<ScrubStatus>>;
}
