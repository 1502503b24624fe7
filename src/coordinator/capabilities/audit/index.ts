import type { Capability, DirectoryHalf, LedgerHalf, ShardHalf } from "../../kernel/capability.ts";
import type { AuditTrail } from "../../kernel/audit-trail.ts";
import { change } from "../../kernel/directory/checks.ts";
import { method, type Calls } from "../../kernel/method.ts";
import { durable } from "../../kernel/ledger/durable.ts";
import { ok } from "../../kernel/refusal.ts";
import { Audit, AUDIT_TABLE, type AuditPage, type PullAudit } from "./audit.ts";
import { auditOfLeases } from "./lease-audit.ts";

// Each object returns the entries that were not copied yet, and drops those that were (O2).
const ofLedgers = { pullAudit: method<PullAudit, AuditPage>("peer") };
const ofOthers = { pullAudit: method<PullAudit, AuditPage>("read") };

declare module "../../kernel/methods.ts" {
  interface LedgerCalls extends Calls<typeof ofLedgers> {}
  interface ShardCalls extends Calls<typeof ofOthers> {}
  interface DirectoryCalls extends Calls<typeof ofOthers> {}
}

declare module "../../kernel/messages.ts" {
  interface MaintainAnswer {
    /** The audit entries that D1 may not have yet (O2). */
    auditEntries: number;
  }
  interface ShardWork {
    auditEntries: number;
  }
}

/** This capability has made it. */
const own = (trail: AuditTrail): Audit => trail as Audit;

const steps = [[AUDIT_TABLE]];

const ledger: LedgerHalf<typeof ofLedgers> = {
  steps,
  methods: ofLedgers,
  auditTrail: (object) => new Audit(object),
  make: ({ audit, cell, commits, ports }) => ({
    handlers: {
      pullAudit: async ({ copied, limit }) => {
        if (copied !== null) await commits.submit("forget_audit", () => own(audit).forget(copied));
        return durable({ ports }, ok(own(audit).page(limit)));
      },
    },
    hooks: { ...auditOfLeases(audit, cell), maintained: () => ({ auditEntries: own(audit).count }) },
  }),
};

const shard: ShardHalf<typeof ofOthers> = {
  steps,
  methods: ofOthers,
  auditTrail: (object) => new Audit(object),
  make: ({ audit, commits }) => ({
    handlers: {
      pullAudit: async ({ copied, limit }) => {
        if (copied !== null) await commits.submit("forget_audit", () => own(audit).forget(copied));
        return ok(own(audit).page(limit));
      },
    },
    hooks: { pinged: () => ({ auditEntries: own(audit).count }) },
  }),
};

const directory: DirectoryHalf<typeof ofOthers> = {
  steps,
  methods: ofOthers,
  auditTrail: (object) => new Audit(object),
  make: (part) => ({
    handlers: {
      pullAudit: async (message) => {
        const { copied, limit } = message;
        if (copied !== null) {
          const forgotten = await change(part, "forget_audit", message, () => {
            own(part.audit).forget(copied);
            return ok(null);
          });
          if (!forgotten.ok) return forgotten;
        }
        return ok(own(part.audit).page(limit));
      },
    },
  }),
};

/** What operators have changed (O1 to O3). */
export const audit = { name: "audit", ledger, shard, directory } as const satisfies Capability;
