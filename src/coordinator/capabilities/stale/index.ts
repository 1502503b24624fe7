import type { Capability, LedgerHalf } from "../../kernel/capability.ts";
import { durable } from "../../kernel/durable.ts";
import type { LedgerPart } from "../../kernel/ledger/part.ts";
import type { Envelope, LeaseState } from "../../kernel/messages.ts";
import { method, type Calls } from "../../kernel/method.ts";
import { ok } from "../../kernel/refusal.ts";

/** What the stale listing asks a ledger about a lease. */
export interface LeaseStatus {
  state: LeaseState;
  createdAtMs: number;
  /** When its cell renewed it last. Null: never. */
  renewedAtMs: number | null;
}

const methods = {
  leaseStates: method<Envelope & { leases: string[] }, (LeaseStatus | null)[]>("peer"),
};

declare module "../../kernel/methods.ts" {
  interface LedgerCalls extends Calls<typeof methods> {}
}

const ledger: LedgerHalf<typeof methods> = {
  methods,
  make: (part) => ({
    handlers: {
      /**
       * Returns the current state of each lease, and when it was granted and renewed, so that the stale
       * listing can leave out decided, renewed and young leases. Null: the ledger does not know the lease, or
       * has forgotten it.
       */
      leaseStates: ({ leases }) => durable(part, ok(leases.map((lease) => statusOf(part, lease)))),
    },
  }),
};

function statusOf({ store }: LedgerPart, lease: string): LeaseStatus | null {
  const row = store.find(lease);
  if (row === undefined) return null;
  const { createdAtMs, renewedAtMs = null } = store.leaseOf(row, 0);
  return { state: row.state, createdAtMs, renewedAtMs };
}

/** Tells which leases are open for long. */
export const stale = { name: "stale", ledger } as const satisfies Capability;
