export declare const positionAt: (ms: number) => number;
export declare const msOf: (position: number) => number;
export declare class Positions {
    #private;
    constructor(last: number);
    get last(): number;
    raiseTo(position: number): void;
    next(nowMs: number): number;
}
