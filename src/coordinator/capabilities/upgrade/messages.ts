import type { OperatorCall } from "../../kernel/messages.ts";

/** Puts a format in force, whose parts have all been asked (M9). */
export interface RaiseFormat extends OperatorCall {
  raiseTo: number;
}
