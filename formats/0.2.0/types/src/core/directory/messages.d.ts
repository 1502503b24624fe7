import type { Identities, IdentitySet } from "../identities/identities.ts";
import type { Growth, GrowthCopy } from "../growth/messages.ts";
import type { OperatorCall } from "../messages.ts";
import type { OperationSet } from "../operations/operations.ts";
import type { DeclaredLoss, Envelope, HistoryPoint, PartStatus } from "../messages.ts";
import type { Placement } from "../placement.ts";
import type { Role } from "../role.ts";
import type { TypeEntry } from "../types/types.ts";
export interface Cell {
    cell: string;
    name: string;
    address: string;
    locationHint: string | null;
    createdAtMs: number;
    updatedAtMs: number;
    removedAtMs: number | null;
}
export type NewCell = OperatorCall & Pick<Cell, "cell" | "name" | "address" | "locationHint">;
export interface CellChange extends OperatorCall {
    cell: string;
    name?: string;
    address?: string;
    updatedAtMs: number;
}
export interface RemovedCell extends OperatorCall {
    cell: string;
    removedAtMs: number;
}
export interface MintedKey {
    keyId: string;
    role: Role;
    cell: string | null;
    note: string | null;
    createdAtMs: number;
    expiresAtMs: number;
    revokedAtMs: number | null;
}
export interface KeyChange extends OperatorCall {
    key: MintedKey;
}
export interface DeclaredTypes {
    position: number;
    declaredAt: number;
    entries: readonly TypeEntry[];
}
export type TypeSet = Pick<DeclaredTypes, "position" | "entries">;
interface CopiedTypes {
    copiedAt: number;
}
export interface KnownTypes extends DeclaredTypes {
    isComplete: boolean;
}
export interface ChangeTypes extends OperatorCall, CopiedTypes {
    position: number;
    entries: readonly TypeEntry[];
}
export interface UseTypes extends Envelope, CopiedTypes {
    entries: readonly TypeEntry[];
}
export interface ChangeIdentities extends OperatorCall {
    position: number;
    identities: Identities;
}
export interface SnapshotRequest extends Envelope, Partial<CopiedTypes> {
    growthCopiedAt?: number;
    identitiesPosition?: number;
    typesPosition?: number;
}
export interface Snapshot {
    placement: Placement;
    growth: Growth | null;
    point: HistoryPoint | null;
    isPlaced: boolean;
    cells: Cell[];
    revokedKeys: string[];
    revokedThroughMs: number;
    types: DeclaredTypes | null;
    identities: IdentitySet | null;
}
export type ListedKey = MintedKey & {
    position: number;
};
export type RevokedKey = Pick<MintedKey, "keyId" | "expiresAtMs">;
export interface ListRevokedKeys extends Envelope {
    cell: string;
    limit: number;
}
export interface KeyPage {
    point: HistoryPoint | null;
    keys: ListedKey[];
    more: boolean;
}
export interface RestoreDirectory extends OperatorCall {
    cells: Cell[];
    keys: MintedKey[];
    types: TypeSet | null;
    growth?: GrowthCopy | null;
    operations?: OperationSet | null;
    isLast: boolean;
    dryRun: boolean;
    declared?: DeclaredLoss;
    isPlacementConfirmed: boolean;
}
export interface DirectoryReconciliation {
    status: PartStatus;
    cells: string[];
    keys: number;
    revocations: number;
    types: string[];
}
export interface RaiseFormat extends OperatorCall {
    raiseTo: number;
}
export {};
