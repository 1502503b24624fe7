import type { Capability, DirectoryHalf } from "../../kernel/capability.ts";
import { change, operate } from "../../kernel/directory/checks.ts";
import type { Envelope } from "../../kernel/messages.ts";
import { method, type Calls } from "../../kernel/method.ts";
import { ok } from "../../kernel/refusal.ts";
import {
  beginOperation,
  endOperation,
  endRestore,
  operationsIn,
  restoreOperations,
  runningOperations,
} from "./directory.ts";
import type { BeginOperation, EndOperation, EndRestore } from "./messages.ts";
import type { Operation, OperationSet } from "./operations.ts";

const methods = {
  operations: method<Envelope, OperationSet>("read"),
  beginOperation: method<BeginOperation, Operation>("peer"),
  endOperation: method<EndOperation, null>("peer"),
  endRestore: method<EndRestore, null>("peer"),
};

declare module "../../kernel/methods.ts" {
  interface DirectoryCalls extends Calls<typeof methods> {}
}

const writes = ["begin_operation", "end_operation"] as const;

declare module "../../kernel/write-points.ts" {
  interface WritePoints extends Record<(typeof writes)[number], true> {}
}

declare module "../../kernel/directory/messages.ts" {
  interface RestoreDirectory {
    /** The operations in D1, which come with the last page. Null or absent: there is no copy (A7). */
    operations?: OperationSet | null;
  }
}

declare module "../../kernel/refusal.ts" {
  interface Refusal {
    /** With `OPERATION_RUNNING`: the operation that is in the way. */
    operation?: Operation;
  }
}

declare module "../../kernel/directory/hooks.ts" {
  interface RunningOperation extends Operation {}
}

const directory: DirectoryHalf<typeof methods> = {
  writes,
  methods,
  make: (part) => ({
    handlers: {
      /** Returns the operations that run, and how far the directory is with them. */
      operations: () => ok({ position: operationsIn(part).position, operations: runningOperations(part) }),
      /** Begins an operation, unless another one is in its way (A5). Idempotent. */
      beginOperation: (message) =>
        change(part, "begin_operation", message, () => beginOperation(part, message, part.ports.clock.now())),
      /** Ends an operation of which its part says that it has ended (A6). Idempotent. */
      endOperation: (message) => change(part, "end_operation", message, () => endOperation(part, message)),
      /** Ends a restore, because the operator says so. Idempotent. */
      endRestore: (message) => operate(part, "end_operation", message, () => endRestore(part, message)),
    },
    hooks: {
      missing: (copies) => ({
        told: {},
        restore: () => {
          if (copies?.isLast === true && copies.operations) restoreOperations(part, copies.operations);
        },
      }),
    },
  }),
};

/** What operators start, and what takes longer than one call (A5 to A7). */
export const operations = { name: "operations", directory } as const satisfies Capability;
