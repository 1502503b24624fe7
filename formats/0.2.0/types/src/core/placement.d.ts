export declare const MAX_SHARDS = 256;
export type Placement = string;
export declare const placementOf: (shards: number) => Placement;
export declare const shardsOf: (placement: Placement) => number;
export declare function shardOf(type: number, canonical: string, shards: number): number;
export declare function shardsEverOf(type: number, canonical: string, shards: number): number[];
export declare function jumpHash(high: number, low: number, buckets: number): number;
