import type { GroupCommit } from "../group-commit.ts";
import type { Growth, GrowthProgress, GrowthStep } from "../growth/messages.ts";
import type { History } from "../history.ts";
import type { Limits } from "../limits.ts";
import type { BucketKey, HandedOver, HistoryPoint } from "../messages.ts";
import type { Peers } from "../methods.ts";
import { type PlacementGuard } from "../placement-guard.ts";
import type { Ports } from "../ports.ts";
import { type Result } from "../refusal.ts";
import { type MovedNames, type NameCursor, type PastCursor } from "./moved-names.ts";
import type { RangeHolds } from "./range-holds.ts";
import type { ShardLog } from "./shard-log.ts";
interface Target {
    confirmed: number;
    seen: HistoryPoint | null;
    checked: HistoryPoint | null;
    isActive: boolean;
}
export type StoredGrowth = Pick<Growth, "id" | "from" | "to" | "position"> & {
    copy: string;
    cursor: NameCursor | null;
    copied: number;
    isFenced: boolean;
    targets: Record<number, Target>;
    clean: NameCursor | null;
    cleanPast: PastCursor;
    cleaned: number;
    isCleaned: boolean;
};
interface Needs {
    readonly index: number;
    readonly ports: Pick<Ports, "sql" | "clock" | "randomness" | "log">;
    readonly limits: Limits;
    readonly names: MovedNames;
    readonly ranges: Pick<RangeHolds, "size">;
    readonly log: ShardLog;
    readonly history: History;
    readonly commits: GroupCommit;
    readonly peers: Pick<Peers, "shard">;
    readonly placementGuard: PlacementGuard;
}
export declare class GrowthSource {
    #private;
    constructor(part: Needs);
    get isWhole(): boolean;
    get hasWork(): boolean;
    get isRunning(): boolean;
    serves(key: BucketKey): boolean;
    get newShards(): number[];
    handedOverTo(shard: number): HandedOver | undefined;
    get progress(): GrowthProgress;
    changed(key: BucketKey): void;
    step({ growth, rows }: GrowthStep): Promise<Result<GrowthProgress>>;
    fence(growth: Growth): void;
    lossAccepted(): void;
    work(rows: number, { mostDeleted }?: {
        mostDeleted?: number | undefined;
    }): Promise<void>;
}
export {};
