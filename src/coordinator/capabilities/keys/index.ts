import type { Capability, DirectoryHalf } from "../../kernel/capability.ts";
import type { Calls } from "../../kernel/method.ts";
import { Keys, methods } from "./directory.ts";
import type { MintedKey } from "./messages.ts";
import { ledger } from "./ledger.ts";

declare module "../../kernel/methods.ts" {
  interface DirectoryCalls extends Calls<typeof methods> {}
}

const writes = ["record_key", "revoke_key"] as const;

declare module "../../kernel/write-points.ts" {
  interface WritePoints extends Record<(typeof writes)[number], true> {}
}

declare module "../../kernel/audit-trail.ts" {
  interface AuditedActions {
    mint_key: true;
    revoke_key: true;
  }
}

declare module "../../kernel/directory/messages.ts" {
  interface Snapshot {
    /** The ids of revoked keys: those that expire last, at most `maxRevokedKeys`. */
    revokedKeys: string[];
    /** Keys that expire no later may be revoked without being listed, so all of them are refused (A1). */
    revokedThroughMs: number;
  }
  interface RestoreDirectory {
    keys: MintedKey[];
  }
  interface DirectoryReconciliation {
    /** The number of keys that were missing. */
    keys: number;
    /** The number of revocations that were missing. */
    revocations: number;
  }
}

declare module "../../kernel/metrics/messages.ts" {
  interface DirectoryMetrics {
    /** The keys that the directory describes, expired ones included. */
    keys: number;
    revokedKeys: number;
  }
}

const directory: DirectoryHalf<typeof methods> = {
  writes,
  steps: [
    [
      // Describes minted keys, without the keys themselves. `position` is that of the last change, and the
      // cron pulls by it.
      `CREATE TABLE IF NOT EXISTS minted_key (
         key_id TEXT NOT NULL PRIMARY KEY,
         position INTEGER NOT NULL UNIQUE,
         role TEXT NOT NULL,
         cell TEXT,
         note TEXT,
         created_at_ms INTEGER NOT NULL,
         expires_at_ms INTEGER NOT NULL,
         revoked_at_ms INTEGER
       ) STRICT, WITHOUT ROWID`,
    ],
  ],
  methods,
  make: (part) => {
    const keys = new Keys(part);
    return {
      handlers: keys.handlers,
      hooks: {
        snapshot: () => keys.snapshot(),
        missing: (copies) => keys.missing(copies),
        metrics: () => keys.counts(),
      },
    };
  },
};

/** Operators mint keys, and revoke them (A1). */
export const keys = { name: "keys", ledger, directory } as const satisfies Capability;
