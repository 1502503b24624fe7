import type { Op } from "../messages.ts";
export type StoredOp = [
    kind: number,
    type: number,
    value: string,
    canonical: string | 0,
    shard: number,
    subject: [type: number, id: string] | 0,
    source: [type: number, id: string] | 0,
    epoch?: number,
    scope?: string
];
export declare function encodePayload(ops: readonly Op[]): string;
export declare function decodePayload(payload: string): Op[];
