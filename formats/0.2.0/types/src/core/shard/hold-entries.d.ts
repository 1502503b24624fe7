import type { OpKind } from "../messages.ts";
import { type HoldRow } from "./rows.ts";
export declare const ENTRY_NAMES = 100;
type StoredHold = 0 | [
    kind: 1 | 2,
    uuid: string,
    value: string | 0,
    subjectType: number,
    subjectId: string,
    sourceType: number,
    sourceId: string,
    scope?: string
];
export type StoredEntry = [
    since: number,
    part: number,
    epoch: number,
    grantedBy: number | null,
    cell: string,
    lease: string,
    incarnation: number,
    counter: number,
    heldAtMs: number,
    names: string[],
    holds: StoredHold[]
];
export type StoredEnd = [since: number, part: number, names?: string[]];
export interface EntryId {
    readonly since: number;
    readonly part: number;
}
export declare function entryOf({ since, part }: EntryId, rows: readonly HoldRow[]): StoredEntry;
export declare const nameOf: ({ bucket_type: type, canonical }: HoldRow) => string;
export declare function scopesOf(entry: StoredEntry): readonly string[];
export declare const kindsOf: (entry: StoredEntry) => OpKind[];
export declare const holdRows: (entry: StoredEntry) => HoldRow[];
export declare function holdRow(entry: StoredEntry, index: number): HoldRow;
export declare const textOf: (items: readonly string[]) => string | null;
export declare const itemsOf: <Item>(text: string | null) => Item[];
export interface PlacedItem {
    item: string;
    offset: number;
    length: number;
}
export declare function placedItemsOf(text: string | null): PlacedItem[];
export declare const idOf: ({ since, part }: EntryId) => string;
export declare const idIn: (item: string) => string;
export declare function withNames(entry: StoredEntry, isLeft: (name: string) => boolean): StoredEntry[];
export {};
