import type { AbortedGrowth, Growth, Receive, Received } from "../growth/messages.ts";
import { type History } from "../history.ts";
import type { BucketKey, HandedOver, HistoryPoint } from "../messages.ts";
import type { PlacementGuard } from "../placement-guard.ts";
import type { Ports } from "../ports.ts";
import { type Result } from "../refusal.ts";
import { type MovedNames, type NameCursor } from "./moved-names.ts";
import type { PastClaims } from "./past-claims.ts";
import type { ShardLog } from "./shard-log.ts";
interface SourceCopy {
    copy: string;
    count: number;
    point: HistoryPoint | null;
    wipe: NameCursor | null;
    isActive: boolean;
}
export type StoredGrowth = Pick<Growth, "id" | "from" | "to" | "position"> & {
    sources: Record<number, SourceCopy>;
};
export interface StoredAbort {
    position: number;
    cursor: NameCursor | null;
}
export declare const WIPE_ROWS = 500;
interface Needs {
    readonly index: number;
    readonly ports: Pick<Ports, "sql" | "clock">;
    readonly names: MovedNames;
    readonly log: ShardLog;
    readonly history: History;
    readonly pastClaims: PastClaims;
    readonly placementGuard: PlacementGuard;
}
export declare class GrowthTarget {
    #private;
    constructor(part: Needs);
    get isWhole(): boolean;
    get hasOnlyCopies(): boolean;
    get hasCopiesToDrop(): boolean;
    serves({ type, canonical }: BucketKey): boolean;
    get missingSources(): number[];
    takeChanged(): boolean;
    expect({ id, from, to, position }: Growth): void;
    abort({ position }: AbortedGrowth): void;
    dropCopies(): void;
    lossAccepted(): void;
    giveUp(source: number, handedOver: HandedOver): void;
    receive(message: Receive): Result<Received>;
}
export {};
