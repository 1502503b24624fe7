import type { Capability, LedgerHalf, ShardHalf } from "../../kernel/capability.ts";
import type { Envelope } from "../../kernel/messages.ts";
import { durable } from "../../kernel/durable.ts";
import { method, peerMethod, type Calls } from "../../kernel/method.ts";
import { ofLedger } from "../../kernel/methods.ts";
import { ok } from "../../kernel/refusal.ts";
import { LedgerScrub } from "./ledger.ts";
import type { CheckHolds, HoldCheck, ScrubStatus, ScrubStep } from "./messages.ts";
import { Scrub } from "./scrub.ts";
import { checkHolds, ShardScrub } from "./shard.ts";

const onLedgers = {
  scrub: method<ScrubStep, ScrubStatus>("read"),
  scrubStatus: method<Envelope, ScrubStatus>("always"),
};

const onShards = {
  scrub: method<ScrubStep, ScrubStatus>("whole"),
  scrubStatus: method<Envelope, ScrubStatus>("always"),
  checkHolds: peerMethod<CheckHolds, HoldCheck>("read", ofLedger),
};

declare module "../../kernel/methods.ts" {
  interface LedgerCalls extends Calls<typeof onLedgers> {}
  interface ShardCalls extends Calls<typeof onShards> {}
}

const writes = ["scrub"] as const;

declare module "../../kernel/write-points.ts" {
  interface WritePoints extends Record<(typeof writes)[number], true> {}
}

const ledger: LedgerHalf<typeof onLedgers> = {
  writes,
  methods: onLedgers,
  make: (part) => {
    const leases = new LedgerScrub(part);
    const scrub = new Scrub(part.ports, part.limits, part.standing, (cursor, step) =>
      leases.check(cursor, step),
    );
    return {
      handlers: {
        scrub: async (message) => durable(part, await scrub.step(message)),
        scrubStatus: () => durable(part, ok(scrub.status)),
      },
      hooks: { maintained: () => ({ scrub: scrub.work }), metrics: () => ({ scrub: scrub.metrics }) },
    };
  },
};

const shard: ShardHalf<typeof onShards> = {
  writes,
  methods: onShards,
  make: (part) => {
    const rows = new ShardScrub(part);
    const scrub = new Scrub(part.ports, part.limits, part.standing, (cursor, step) =>
      rows.check(cursor, step),
    );
    return {
      handlers: {
        scrub: (message) => scrub.step(message),
        scrubStatus: async () => {
          await part.ports.sql.flush();
          return ok(scrub.status);
        },
        checkHolds: (message) => checkHolds(part, message),
      },
      hooks: { pinged: () => ({ scrub: scrub.work }), metrics: () => ({ scrub: scrub.metrics }) },
    };
  },
};

/** Parts check their rows (Z1). */
export const scrub = {
  name: "scrub",
  needs: ["past-claims", "transfer"],
  ledger,
  shard,
} as const satisfies Capability;
