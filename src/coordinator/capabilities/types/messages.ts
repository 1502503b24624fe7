import type { TypeEntry } from "../../../common/types/types.ts";
import type { Envelope, OperatorCall } from "../../kernel/messages.ts";

declare module "../../kernel/refusal.ts" {
  interface Reasons {
    TYPE_IN_USE: true;
    TYPES_CHANGED: true;
  }
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
export interface CopiedTypes {
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
