import type { Capability, DirectoryHalf } from "../../kernel/capability.ts";
import type { Calls } from "../../kernel/method.ts";
import { countCells, handlersOf, methods } from "./directory.ts";
import { ledger } from "./ledger.ts";

declare module "../../kernel/methods.ts" {
  interface DirectoryCalls extends Calls<typeof methods> {}
}

const writes = ["add_cell", "change_cell"] as const;

declare module "../../kernel/write-points.ts" {
  interface WritePoints extends Record<(typeof writes)[number], true> {}
}

declare module "../../kernel/audit-trail.ts" {
  interface AuditedActions {
    add_cell: true;
    change_cell: true;
  }
}

declare module "../../kernel/metrics/messages.ts" {
  interface DirectoryMetrics {
    cells: number;
  }
}

const directory: DirectoryHalf<typeof methods> = {
  writes,
  methods,
  make: (part) => ({
    handlers: handlersOf(part),
    hooks: { metrics: () => ({ cells: countCells(part) }) },
  }),
};

/**
 * Operators register cells, and change them (A2). The rows stay with the kernel, because a ledger starts only
 * for a cell that is registered (P1).
 */
export const cells = { name: "cells", ledger, directory } as const satisfies Capability;
