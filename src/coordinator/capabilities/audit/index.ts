import type { Capability, DirectoryHalf, LedgerHalf, ShardHalf } from "../../kernel/capability.ts";
import type { AuditTrail } from "../../kernel/audit-trail.ts";
import type { Limits } from "../../../common/limits.ts";
import type { GroupCommit } from "../../kernel/group-commit.ts";
import type { Ports } from "../../kernel/ports.ts";
import type { Slot } from "../../kernel/slot.ts";
import { method, type Calls } from "../../kernel/method.ts";
import { durable } from "../../kernel/durable.ts";
import { ok, type Result } from "../../kernel/refusal.ts";
import { Audit, AUDIT_TABLE, type AuditPage, type PullAudit } from "./audit.ts";
import { auditOfLeases } from "./lease-audit.ts";

declare module "../../kernel/refusal.ts" {
  interface Reasons {
    AUDIT_FULL: true;
  }
}

// Each object returns the entries that were not copied yet, and drops those that were (O2).
const ofLedgers = { pullAudit: method<PullAudit, AuditPage>("peer") };
const ofOthers = { pullAudit: method<PullAudit, AuditPage>("read") };

declare module "../../kernel/methods.ts" {
  interface LedgerCalls extends Calls<typeof ofLedgers> {}
  interface ShardCalls extends Calls<typeof ofOthers> {}
  interface DirectoryCalls extends Calls<typeof ofOthers> {}
}

const writes = ["forget_audit"] as const;

declare module "../../kernel/write-points.ts" {
  interface WritePoints extends Record<(typeof writes)[number], true> {}
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

const steps = [[AUDIT_TABLE]];

interface Part {
  readonly ports: Ports;
  readonly limits: Limits;
  readonly commits: GroupCommit;
  readonly audit: Slot<AuditTrail>;
}

/** Records the changes of an object, and returns the entries that were not copied yet. */
function auditOf({ ports, limits, commits, audit: slot }: Part, name: string) {
  const audit = new Audit({ ports, limits, name });
  slot.provide(audit);
  const pullAudit = async ({ copied, limit }: PullAudit): Promise<Result<AuditPage>> => {
    if (copied !== null) await commits.submit("forget_audit", () => audit.forget(copied));
    return ok(audit.page(limit));
  };
  return { audit, pullAudit };
}

const ledger: LedgerHalf<typeof ofLedgers> = {
  steps,
  writes,
  methods: ofLedgers,
  make: (part) => {
    const { audit, pullAudit } = auditOf(part, `the ledger of cell ${part.cell}`);
    return {
      handlers: { pullAudit: async (message) => durable(part, await pullAudit(message)) },
      hooks: { ...auditOfLeases(audit, part.cell), maintained: () => ({ auditEntries: audit.count }) },
    };
  },
};

const shard: ShardHalf<typeof ofOthers> = {
  steps,
  writes,
  methods: ofOthers,
  make: (part) => {
    const { audit, pullAudit } = auditOf(part, `shard ${part.index}`);
    return { handlers: { pullAudit }, hooks: { pinged: () => ({ auditEntries: audit.count }) } };
  },
};

const directory: DirectoryHalf<typeof ofOthers> = {
  steps,
  writes,
  methods: ofOthers,
  make: (part) => ({ handlers: { pullAudit: auditOf(part, "the directory").pullAudit } }),
};

/** What operators have changed (O1 to O3). */
export const audit = { name: "audit", ledger, shard, directory } as const satisfies Capability;
