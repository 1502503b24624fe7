import type { Clock } from "../ports.ts";
export declare const BUCKETS_MS: readonly [5, 10, 25, 50, 100, 250, 1000, 5000];
export declare const AGE_BUCKETS_MS: readonly [1000, 10000, 60000, 600000, 3600000, 86400000];
export interface Durations {
    counts: number[];
    sumMs: number;
}
export declare function agesIn(agesMs: readonly number[]): Durations;
export declare class Histogram {
    #private;
    constructor(clock: Clock);
    time<T>(work: () => Promise<T>): Promise<T>;
    get durations(): Durations;
}
