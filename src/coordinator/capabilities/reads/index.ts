import type { Capability, LedgerHalf } from "../../kernel/capability.ts";
import { durable } from "../../kernel/durable.ts";
import type { LedgerPart } from "../../kernel/ledger/part.ts";
import { positionAt } from "../../kernel/ledger/position.ts";
import { method, type Calls } from "../../kernel/method.ts";
import { ok, type Result } from "../../kernel/refusal.ts";
import type { Authorize, EndRead, LeasePage, ListLeasesRequest } from "./messages.ts";
import { ReadLimiter } from "./read-limiter.ts";

const methods = {
  listLeases: method<ListLeasesRequest, LeasePage>("call"),
  authorize: method<Authorize, null>("call"),
  endRead: method<EndRead, null>("peer"),
};

declare module "../../kernel/methods.ts" {
  interface LedgerCalls extends Calls<typeof methods> {}
}

const ledger: LedgerHalf<typeof methods> = {
  methods,
  make: (part) => {
    const reads = new ReadLimiter(part.ports.clock, part.limits);
    return {
      parts: { reads },
      handlers: {
        /**
         * Lists granted leases, complete as of this call (R1). It reads only this ledger's rows, which are
         * authoritative.
         */
        listLeases: async (request) => {
          const read = part.ports.randomness.uuid();
          const refusal = reads.start(read, request.caller.keyId);
          if (refusal !== undefined) return { ok: false, refusal };
          try {
            return await durable(part, listLeases(part, request));
          } finally {
            reads.end(read);
          }
        },
        /** Checks whether the caller's key is valid, and counts reads that the shards answer. */
        authorize: ({ read, caller }) => {
          const refusal = read === undefined ? undefined : reads.start(read, caller.keyId);
          return refusal === undefined ? ok(null) : { ok: false, refusal };
        },
        endRead: ({ read }) => {
          reads.end(read);
          return ok(null);
        },
      },
    };
  },
};

function listLeases(part: LedgerPart, request: ListLeasesRequest): Result<LeasePage> {
  const after = Math.max(request.afterPosition, positionAt(request.createdAfterMs) - 1);
  const rows = part.store.granted(after, request.limit + 1);
  const page = rows.slice(0, request.limit);
  const now = part.ports.clock.now();
  const nextPosition = rows.length > page.length ? (page.at(-1)?.position ?? 0) : 0;
  return ok({ leases: page.map((row) => part.store.leaseOf(row, now)), nextPosition });
}

/** A cell lists its leases (R1). Its ledger counts all reads of the cell. */
export const reads = { name: "reads", ledger } as const satisfies Capability;
