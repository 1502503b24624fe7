export type Executions = ReadonlyMap<number, {
    epoch: number;
    incarnation: number;
}>;
export type StoredExecutions = Record<string, [epoch: number, incarnation: number]>;
export declare const encodeExecutions: (executions: Executions) => string;
export declare const decodeExecutions: (stored: string) => Executions;
