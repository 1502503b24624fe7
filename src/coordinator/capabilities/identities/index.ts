import type { Capability, DirectoryHalf } from "../../kernel/capability.ts";
import { operate, refuseWithoutCell } from "../../kernel/directory/checks.ts";
import { method, type Calls } from "../../kernel/method.ts";
import { changeIdentities, identitiesIn, setIdentities } from "./directory.ts";
import { cellsOf, noIdentities, type IdentitySet } from "./identities.ts";
import type { ChangeIdentities } from "./identities.ts";

const methods = { changeIdentities: method<ChangeIdentities, IdentitySet>("peer") };

declare module "../../kernel/methods.ts" {
  interface DirectoryCalls extends Calls<typeof methods> {}
}

const writes = ["change_identities"] as const;

declare module "../../kernel/write-points.ts" {
  interface WritePoints extends Record<(typeof writes)[number], true> {}
}

declare module "../../kernel/directory/messages.ts" {
  interface SnapshotRequest {
    /** The position of the identities that the caller has. */
    identitiesPosition?: number;
  }
  interface Snapshot {
    /** Null: the caller has the current ones. */
    identities: IdentitySet | null;
  }
}

const directory: DirectoryHalf<typeof methods> = {
  writes,
  methods,
  make: (part) => ({
    handlers: {
      changeIdentities: (message) =>
        operate(part, "change_identities", message, () => {
          for (const cell of cellsOf(message.identities)) {
            const unfit = refuseWithoutCell(part, cell);
            if (unfit !== undefined) return { ok: false, refusal: unfit };
          }
          return changeIdentities(part, message);
        }),
    },
    hooks: {
      snapshot: ({ identitiesPosition }) => {
        const identities = identitiesIn(part);
        return { identities: identities.position === identitiesPosition ? null : identities };
      },
      // Those that are left may have been withdrawn before the loss (A4).
      resumed: () => void setIdentities(part, noIdentities),
    },
  }),
};

/** What certificates and tokens are accepted beside keys (A4). */
export const identities = { name: "identities", directory } as const satisfies Capability;
