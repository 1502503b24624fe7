import type { HoldPosition, OpKind } from "../messages.ts";
import { type EntryId, type StoredEnd, type StoredEntry } from "./hold-entries.ts";
import { type Holding, type HoldRow } from "./rows.ts";
export interface HeldEntry extends EntryId, Pick<HoldRow, "cell" | "held_at_ms"> {
    readonly names: string | readonly string[];
    readonly kinds: OpKind | readonly OpKind[];
    readonly scopes: readonly string[];
    readonly movedAs: string | null;
    left: number;
    slot: number;
    position: number;
    offset: number;
    length: number;
    stored: StoredEntry | undefined;
}
export interface EntryPage {
    entries: HeldEntry[];
    count: number;
    next: HoldPosition | null;
}
export type Place = Pick<HeldEntry, "slot" | "position" | "offset" | "length">;
interface HoldsOfRow {
    slot: number;
    position: number;
    holds: string | null;
    ends: StoredEnd[];
}
export declare const FIRST_HOLD: HoldPosition;
export declare class HeldNames {
    #private;
    constructor(rows: Iterable<HoldsOfRow>, read: (place: Place) => StoredEntry | undefined);
    get size(): number;
    countOf(cell: string): number;
    get mostOfOneCell(): number;
    isIn({ since, part }: EntryId, name: string): boolean;
    holding(name: string): Holding | undefined;
    on(name: string): HoldRow | undefined;
    holdsOf(entry: HeldEntry): HoldRow[];
    check(entry: HeldEntry): {
        holds: HoldRow[];
        missing: string[];
    };
    ofExecution(execution: Pick<HoldRow, "epoch" | "granted_by">): HeldEntry[];
    namesIn(entry: HeldEntry): string[];
    after([since, part]: HoldPosition, names: number, cell?: string): EntryPage;
    arrivingIn(cell: string, scope: string): Iterable<HeldEntry>;
    add(rows: readonly HoldRow[], nextPosition: () => number): void;
    end(names: readonly string[]): void;
    get hasChanged(): boolean;
    take(): {
        made: HeldEntry[];
        ends: StoredEnd[];
    };
    stored(entry: HeldEntry): StoredEntry[];
    place(entry: HeldEntry, place: Place): void;
    placeAgain(slot: number, position: number, holds: string | null): void;
    get writtenLength(): number;
    get inLogOrder(): Iterable<HeldEntry>;
}
export {};
