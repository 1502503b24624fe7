export interface TransferRange {
    from: string;
    scope: string;
}
export interface MovedClaims {
    epoch: number;
    count: number;
}
export interface TransferOp extends TransferRange {
    unchanged?: MovedClaims;
}
export interface DigestedClaims {
    count: number;
    hash: string;
}
export interface BySide<T> {
    from: T;
    to: T;
}
export type TransferSide = keyof BySide<unknown>;
export type TransferParty = "operator" | TransferSide;
