import type { Refusal } from "./refusal.ts";
import type { WritePoint } from "./write-points.ts";
export type SqlValue = string | number | null;
export type Synchronous<T> = T extends PromiseLike<unknown> ? never : T;
export interface Sql {
    all<Row>(statement: string, ...bindings: SqlValue[]): Row[];
    transaction<T>(points: readonly WritePoint[], work: () => Synchronous<T>): T;
    flush(): Promise<void>;
    sizeBytes(): number;
}
export interface Clock {
    now(): number;
    after(delayMs: number, then: () => void): () => void;
    turn(): Promise<void>;
}
export interface Randomness {
    uuid(): string;
    fraction(): number;
}
export interface Alarm {
    get(): Promise<number | null>;
    set(atMs: number): void;
}
type Halt = (reason: unknown) => void;
export type Log = (event: string, fields: Record<string, string | number | boolean>) => void;
export interface Ports {
    sql: Sql;
    clock: Clock;
    randomness: Randomness;
    alarm: Alarm;
    halt: Halt;
    log: Log;
    speaks?: number;
}
export type Answer<T> = {
    kind: "ok";
    value: T;
} | {
    kind: "refused";
    refusal: Refusal;
} | {
    kind: "unknown";
    cause: string;
    timedOut?: true;
};
export {};
