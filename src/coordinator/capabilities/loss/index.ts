import type { Capability, DirectoryHalf } from "../../kernel/capability.ts";
import type { DirectoryReconciliation, RestoreDirectory } from "../../kernel/directory/messages.ts";
import type { ComparePoints } from "../../kernel/messages.ts";
import { method, type Calls } from "../../kernel/method.ts";
import { ok } from "../../kernel/refusal.ts";
import { DirectoryReconciler } from "./directory.ts";

const onDirectory = {
  compare: method<ComparePoints, null>("read"),
  reconcile: method<RestoreDirectory, DirectoryReconciliation>("always"),
};

declare module "../../kernel/methods.ts" {
  interface DirectoryCalls extends Calls<typeof onDirectory> {}
}

const directory: DirectoryHalf<typeof onDirectory> = {
  methods: onDirectory,
  make: (part) => {
    const reconciler = new DirectoryReconciler(part);
    return {
      handlers: {
        /** Compares what ledgers have seen of this directory with its history (H2). Success confirms them. */
        compare: (message) => {
          for (const { noticedBy, point } of message.points) {
            const refusal = part.history.refuse(point, noticedBy);
            if (refusal !== undefined) return { ok: false, refusal };
          }
          return ok(null);
        },
        /** Takes over what copies of the lost rows still have, and accepts the loss (H8). */
        reconcile: (message) => reconciler.reconcile(message),
      },
    };
  },
};

/** An operator reconciles a part that has gone back in time (H4 to H8). */
export const loss = {
  name: "loss",
  isRequired: true,
  needs: ["keys", "transfer"],
  directory,
} as const satisfies Capability;
