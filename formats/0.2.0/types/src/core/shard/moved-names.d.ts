import type { MovedName } from "../growth/messages.ts";
import type { BucketKey, HoldPosition } from "../messages.ts";
import type { Sql } from "../ports.ts";
import type { ShardLog } from "./shard-log.ts";
export declare const MOVED_NAME_TABLE = "CREATE TABLE moved_name (\n   bucket_type INTEGER NOT NULL,\n   canonical TEXT NOT NULL,\n   change INTEGER NOT NULL,\n   PRIMARY KEY (bucket_type, canonical)\n ) STRICT, WITHOUT ROWID";
export type NameCursor = readonly [table: "claim", type: number, canonical: string] | readonly ["hold", ...HoldPosition];
export type PastCursor = readonly [segment: number, type: number, canonical: string, epoch: number];
export declare const FIRST_PAST_CLAIM: PastCursor;
export declare const FIRST_NAME: NameCursor;
export type ChangedName = BucketKey & {
    change: number;
};
export declare class MovedNames {
    #private;
    constructor(sql: Sql, log: Pick<ShardLog, "held" | "nextEpoch">);
    page(cursor: NameCursor, limit: number): {
        keys: BucketKey[];
        next: NameCursor | null;
    };
    read(keys: readonly BucketKey[]): MovedName[];
    write(names: readonly MovedName[]): void;
    delete(keys: readonly BucketKey[]): void;
    deletePast(behind: PastCursor, limit: number, hasMoved: (key: BucketKey) => boolean): PastCursor | null;
    noteChange({ type, canonical }: BucketKey, change: number): void;
    lastChange(): number;
    countChanged(): number;
    changed(limit: number): ChangedName[];
    forgetChanges(names: readonly ChangedName[]): void;
    forgetAllChanges(): void;
}
