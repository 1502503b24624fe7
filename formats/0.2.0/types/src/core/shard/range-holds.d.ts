import type { Sql } from "../ports.ts";
import type { BySide, DigestedClaims, TransferRange } from "../transfer/range.ts";
import type { ClaimRow, ExecutionId } from "./rows.ts";
export declare const RANGE_HOLD_TABLE = "CREATE TABLE range_hold (\n   scope TEXT NOT NULL,\n   from_cell TEXT NOT NULL,\n   cell TEXT NOT NULL,\n   lease TEXT NOT NULL,\n   incarnation INTEGER NOT NULL,\n   counter INTEGER NOT NULL,\n   epoch INTEGER NOT NULL,\n   held_at_ms INTEGER NOT NULL,\n   counted TEXT NOT NULL,\n   is_precommitted INTEGER NOT NULL,\n   cut_at_ms INTEGER,\n   PRIMARY KEY (scope, from_cell)\n ) STRICT, WITHOUT ROWID";
export interface RangeHoldRow extends ExecutionId {
    scope: string;
    from_cell: string;
    held_at_ms: number;
    counted: string;
    is_precommitted: 0 | 1;
    cut_at_ms: number | null;
}
export declare const MOST_RANGE_HOLDS = 1000;
export declare class RangeHolds {
    #private;
    constructor(sql: Sql, onChange: (cell: string) => void);
    get size(): number;
    get hasCut(): boolean;
    all(): RangeHoldRow[];
    on({ from, scope }: TransferRange): RangeHoldRow | undefined;
    over(claim: Pick<ClaimRow, "cell" | "scope"> | undefined): RangeHoldRow | undefined;
    involving(cell: string): RangeHoldRow[];
    countFrom(cell: string): number;
    takeChanged(): boolean;
    insert(row: RangeHoldRow): void;
    precommit(row: RangeHoldRow): RangeHoldRow;
    cut(row: RangeHoldRow, nowMs: number): RangeHoldRow;
    delete(row: RangeHoldRow): void;
}
export declare const rangeOf: ({ from_cell: from, scope }: RangeHoldRow) => TransferRange;
export declare const countedIn: ({ counted }: RangeHoldRow) => BySide<DigestedClaims>;
export declare const mayBeCut: (range: RangeHoldRow) => boolean;
export declare const involves: (range: RangeHoldRow, cell: string) => boolean;
