import type { Growth, GrowthCopy } from "../../capabilities/growth/messages.ts";
import type { OperatorCall } from "../messages.ts";
import type { OperationSet } from "../../capabilities/operations/operations.ts";
import type { DeclaredLoss, Envelope, HistoryPoint, PartStatus } from "../messages.ts";
import type { Placement } from "../placement.ts";
import type { Role } from "../role.ts";
import type { TypeEntry } from "../../../common/types/types.ts";

// What the directory stores, and the messages to it.

export interface Cell {
  cell: string;
  name: string;
  address: string;
  locationHint: string | null;
  createdAtMs: number;
  updatedAtMs: number;
  /** When it was removed, by the clock of its ledger. Null: it was not. It is final (X5). */
  removedAtMs: number | null;
}

export type NewCell = OperatorCall & Pick<Cell, "cell" | "name" | "address" | "locationHint">;

export interface CellChange extends OperatorCall {
  cell: string;
  name?: string;
  address?: string;
  updatedAtMs: number;
}

/** Tells that a ledger has removed its cell (X5). The operator is the one who ended the removal. */
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

/** Stores what describes a key that was minted, or revokes a key. */
export interface KeyChange extends OperatorCall {
  key: MintedKey;
}

/** The set of types that a deployment has declared (T1). */
export interface DeclaredTypes {
  /**
   * The directory's position when the set was changed or a type came into use for the last time. It
   * identifies this version of the set. 0: nothing was declared, so the shipped set applies.
   */
  position: number;
  /**
   * The position at which it was declared. Since then, types have only come into use, so a copy that is no
   * older has the same entries. 0: nothing was declared.
   */
  declaredAt: number;
  entries: readonly TypeEntry[];
}

/** A version of the set, as D1 keeps a copy of it (T6). */
export type TypeSet = Pick<DeclaredTypes, "position" | "entries">;

/** Lets a directory that has an older set than D1 notice that it went back (T6). */
interface CopiedTypes {
  /** The position of the set in D1, read before this message was sent. 0: there is none. */
  copiedAt: number;
}

/** The set of types as a directory answers it that may have gone back in time. */
export interface KnownTypes extends DeclaredTypes {
  /** False after a loss: only types in use are listed, and some of them may be missing (T6). */
  isComplete: boolean;
}

/** Replaces the set of types, if it still is the one that the operator has read (T3). */
export interface ChangeTypes extends OperatorCall, CopiedTypes {
  /** The position of that set. */
  position: number;
  entries: readonly TypeEntry[];
}

/** Marks types as in use, before the first begin with them (T2). */
export interface UseTypes extends Envelope, CopiedTypes {
  entries: readonly TypeEntry[];
}

export interface SnapshotRequest extends Envelope, Partial<CopiedTypes> {
  /** The position of the growth in D1, read before this message was sent (G2). */
  growthCopiedAt?: number;
  /** The position of the set of types that the caller has. */
  typesPosition?: number;
}

/** Everything that requests need from the directory. Each isolate keeps a copy. */
export interface Snapshot {
  /** The placement in force. Before there is one, that of the message. */
  placement: Placement;
  /** The growth that runs. Null: none. */
  growth: Growth | null;
  /** How far the directory had got when it read this. Null before its first change. */
  point: HistoryPoint | null;
  /** Whether a placement is fixed (P2). */
  isPlaced: boolean;
  /** All cells that were ever registered. */
  cells: Cell[];
  /** The ids of revoked keys: those that expire last, at most `maxRevokedKeys`. */
  revokedKeys: string[];
  /** Keys that expire no later may be revoked without being listed, so all of them are refused (A1). */
  revokedThroughMs: number;
  /** Null: the caller has the current set. */
  types: DeclaredTypes | null;
}

export type ListedKey = MintedKey & { position: number };

export type RevokedKey = Pick<MintedKey, "keyId" | "expiresAtMs">;

/** Asks for the revoked keys of a cell, those that expire last, for a ledger that has lost them (H7). */
export interface ListRevokedKeys extends Envelope {
  cell: string;
  limit: number;
}

export interface KeyPage {
  /** How far the directory had got when it read this. Null before its first change. */
  point: HistoryPoint | null;
  keys: ListedKey[];
  more: boolean;
}

/** A page of copies of the directory's rows, for a directory that has lost the rows themselves (H8). */
export interface RestoreDirectory extends OperatorCall {
  cells: Cell[];
  keys: MintedKey[];
  /** Null: there is no copy, or it comes with another page. */
  types: TypeSet | null;
  /** The growth in D1, which comes with the last page. Null or absent: there is no copy (G2). */
  growth?: GrowthCopy | null;
  /** The operations in D1, which come with the last page. Null or absent: there is no copy (A7). */
  operations?: OperationSet | null;
  /** True for the last page. With it, the loss is accepted. */
  isLast: boolean;
  /** If true, nothing is changed. */
  dryRun: boolean;
  /** Present if the operator knows of a loss that the directory has not noticed (H4). */
  declared?: DeclaredLoss;
  /** True if a shard has confirmed the placement of this message, so that it may be restored (P1). */
  isPlacementConfirmed: boolean;
}

/** What one page has restored, or would restore. */
export interface DirectoryReconciliation {
  status: PartStatus;
  /** The cells that were missing, or older than their copies. */
  cells: string[];
  /** The number of keys that were missing. */
  keys: number;
  /** The number of revocations that were missing. */
  revocations: number;
  /** The names of types that were missing or different, or not marked as in use. */
  types: string[];
}

/** Puts a format in force, whose parts have all been asked (M9). */
export interface RaiseFormat extends OperatorCall {
  raiseTo: number;
}
