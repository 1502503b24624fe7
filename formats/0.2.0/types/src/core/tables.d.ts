import { type Stamp } from "./formats.ts";
import type { Told } from "./messages.ts";
import type { Ports, SqlValue } from "./ports.ts";
import { type Result } from "./refusal.ts";
export type Steps = readonly Step[];
type Step = readonly string[] | LateStep;
interface LateStep {
    format: number;
    statements: readonly string[];
}
export interface StoredTables {
    steps: number;
    format: number;
}
export declare class UnknownTables extends Error {
}
export declare class Tables {
    #private;
    constructor({ sql, clock, speaks }: Pick<Ports, "sql" | "clock" | "speaks">, steps: Steps);
    get fault(): string | undefined;
    get stamp(): Stamp;
    serve<T>(sender: Stamp, work: () => Promise<Result<T> & Told>): Promise<Result<T> & Told>;
    raise(format: number): void;
}
type ReadMeta = (name: "tables" | "schema_version" | "placement") => SqlValue | undefined;
export declare function tablesFault(stored: ReadMeta, speaks?: number): string | undefined;
export declare function upgradeFault(stored: ReadMeta, speaks?: number): string | undefined;
export {};
