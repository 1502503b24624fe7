import type { DirectoryHalf } from "../../kernel/capability.ts";
import { cellUnknown, operate } from "../../kernel/directory/checks.ts";
import type { Cell } from "../../kernel/directory/messages.ts";
import { method, type Calls } from "../../kernel/method.ts";
import { ok } from "../../kernel/refusal.ts";
import type { RemovedCell } from "./messages.ts";

const inDirectory = { removeCell: method<RemovedCell, Cell>("peer") };

declare module "../../kernel/methods.ts" {
  interface DirectoryCalls extends Calls<typeof inDirectory> {}
}

const writes = ["mark_cell_removed"] as const;

declare module "../../kernel/write-points.ts" {
  interface WritePoints extends Record<(typeof writes)[number], true> {}
}

declare module "../../kernel/audit-trail.ts" {
  interface AuditedActions {
    remove_cell: true;
  }
}

export const directory: DirectoryHalf<typeof inDirectory> = {
  writes,
  methods: inDirectory,
  make: (part) => ({
    handlers: {
      /**
       * Marks a cell as removed, because its ledger has said so (X5). Idempotent: the first message has an
       * audit entry, and the time in it stays.
       */
      removeCell: (message) =>
        operate(part, "mark_cell_removed", message, () => {
          const { cell, removedAtMs, operator } = message;
          const before = part.store.cell(cell);
          if (before === undefined) return cellUnknown(cell);
          if (before.removedAtMs !== null) return ok(before);
          const updatedAtMs = Math.max(part.ports.clock.now(), before.updatedAtMs + 1);
          const after: Cell = { ...before, removedAtMs, updatedAtMs };
          part.store.putCell(after);
          for (const removed of part.hooks.cellRemoved) removed(cell);
          part.audit.current.append(operator, {
            action: "remove_cell",
            cell,
            target: cell,
            before: { removed_at_ms: null },
            after: { removed_at_ms: removedAtMs },
          });
          return ok(after);
        }),
    },
  }),
};
