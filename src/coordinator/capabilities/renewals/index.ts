import type { Capability, LedgerHalf } from "../../kernel/capability.ts";
import type { Lease } from "../../kernel/messages.ts";
import { method, type Calls } from "../../kernel/method.ts";
import { Renewals, type RenewRequest } from "./ledger.ts";

const methods = { renew: method<RenewRequest, Lease>("call") };

declare module "../../kernel/methods.ts" {
  interface LedgerCalls extends Calls<typeof methods> {}
}

const writes = ["renew"] as const;

declare module "../../kernel/write-points.ts" {
  interface WritePoints extends Record<(typeof writes)[number], true> {}
}

const ledger: LedgerHalf<typeof methods> = {
  writes,
  methods,
  make: ({ ports, store, positions, standing }) => {
    const renewals = new Renewals(ports, store, positions, standing);
    return { parts: { renewals }, handlers: { renew: (request) => renewals.renew(request) } };
  },
};

/** A cell says that it still works on a lease (C8). */
export const renewals = { name: "renewals", ledger } as const satisfies Capability;
