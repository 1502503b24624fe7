interface Marks {
    clockMarks(): string;
    setClockMarks(marks: string, nowMs: number): void;
    lastChanges(): {
        position: number;
        atMs: number;
    }[];
}
export interface ClockMark {
    position: number;
    atMs: number;
}
export declare class ChangeTimes {
    #private;
    constructor(store: Marks);
    get latestMs(): number;
    isBehind(nowMs: number): boolean;
    note(nowMs: number, lastPosition: number): void;
    timeOf(position: number, stampedMs: number): number;
}
export {};
