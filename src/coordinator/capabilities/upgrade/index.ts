import type { Capability, DirectoryHalf } from "../../kernel/capability.ts";
import { operate } from "../../kernel/directory/checks.ts";
import { method, type Calls } from "../../kernel/method.ts";
import { ok, refused } from "../../kernel/refusal.ts";
import type { OperatorCall } from "../../kernel/messages.ts";

declare module "../../kernel/refusal.ts" {
  interface Reasons {
    UPGRADE_BLOCKED: true;
  }
}

/** Puts a format in force, whose parts have all been asked (M9). */
export interface RaiseFormat extends OperatorCall {
  raiseTo: number;
}

const methods = { raiseFormat: method<RaiseFormat, null>("peer") };

declare module "../../kernel/methods.ts" {
  interface DirectoryCalls extends Calls<typeof methods> {}
}

declare module "../../kernel/audit-trail.ts" {
  interface AuditedActions {
    finish_upgrade: true;
  }
}

const directory: DirectoryHalf<typeof methods> = {
  methods,
  make: (part) => ({
    handlers: {
      /** Puts a format in force, for the caller to tell it to all parts (M9). Idempotent. */
      raiseFormat: (message) => {
        const { operator, raiseTo } = message;
        return operate(part, "raise_format", message, () => {
          const { speaks, format } = part.tables.stamp;
          if (raiseTo > speaks)
            return refused("FAILED_PRECONDITION", `the directory speaks format ${speaks}`, {
              reason: "UPGRADE_BLOCKED",
            });
          if (raiseTo <= format) return ok(null);
          part.tables.raise(raiseTo);
          part.audit.current.append(operator, {
            action: "finish_upgrade",
            cell: null,
            target: "format",
            before: { format },
            after: { format: raiseTo },
          });
          return ok(null);
        });
      },
    },
  }),
};

/** Operators finish an upgrade (M9). */
export const upgrade = { name: "upgrade", directory } as const satisfies Capability;
