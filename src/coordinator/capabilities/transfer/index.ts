import type { Capability, ShardHalf } from "../../kernel/capability.ts";
import { method, type Calls } from "../../kernel/method.ts";
import { counting } from "../../kernel/serve.ts";
import { readClaims } from "../../kernel/shard/read-claims.ts";
import type { PlanTransfer, TransferPlan } from "./messages.ts";
import { RANGE_HOLD_TABLES } from "./range-holds.ts";

const onShards = {
  planTransfer: method<PlanTransfer, TransferPlan>("whole"),
};

declare module "../../kernel/methods.ts" {
  interface ShardCalls extends Calls<typeof onShards> {}
}

const shardWrites = ["move_claims"] as const;

declare module "../../kernel/write-points.ts" {
  interface WritePoints extends Record<(typeof shardWrites)[number], true> {}
}

const shard: ShardHalf<typeof onShards> = {
  steps: [RANGE_HOLD_TABLES],
  writes: shardWrites,
  methods: onShards,
  make: (part) => ({
    handlers: {
      /** Counts what this shard has of a scope, before a transfer of it is prepared (Y2). */
      planTransfer: (message) =>
        readClaims(part, message.from, message, () =>
          part.claimReads.run(message.from, () => {
            const value = part.transfers.plan(message);
            return { value, rows: value.counts.reduce((sum, { claims }) => sum + claims, value.present) };
          }),
        ),
    },
    measures: {
      planTransfer: counting(() => {
        part.counters.add("recordReads");
      }),
    },
    hooks: { takeChanged: () => part.ranges.takeChanged() },
  }),
};

/** Moves the claims of a scope to another cell (Y1 to Y10). */
export const transfer = { name: "transfer", isRequired: true, shard } as const satisfies Capability;
