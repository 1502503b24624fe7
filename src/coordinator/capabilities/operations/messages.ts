import type { Envelope, OperatorCall } from "../../kernel/messages.ts";
import { refused, type Refusal } from "../../kernel/refusal.ts";
import { howToEnd, describeRunning, type Operation } from "./operations.ts";

declare module "../../kernel/refusal.ts" {
  interface Reasons {
    OPERATION_RUNNING: true;
  }
}

// The messages about operations to the directory (A5 to A7).

export interface BeginOperation extends OperatorCall {
  operation: Pick<Operation, "id" | "kind" | "about">;
}

/** Ends an operation that its part says has ended. */
export interface EndOperation extends Envelope {
  operation: Pick<Operation, "id" | "position">;
}

/** Ends a restore, which no part knows of. */
export interface EndRestore extends OperatorCall {
  id: string;
}

/** The refusal of what an operation keeps from starting. */
export const operationRunning = (operation: Operation): { ok: false; refusal: Refusal } =>
  refused("FAILED_PRECONDITION", `${describeRunning(operation)}: ${howToEnd(operation)}`, {
    reason: "OPERATION_RUNNING",
    operation,
  });
