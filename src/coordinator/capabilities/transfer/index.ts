import type { Capability, ShardHalf } from "../../kernel/capability.ts";
import { method, type Calls } from "../../kernel/method.ts";
import { counting } from "../../kernel/serve.ts";
import type { ShardPart } from "../../kernel/shard/part.ts";
import type { PlanTransfer, TransferPlan } from "./messages.ts";
import { RANGE_HOLD_TABLES, RangeHolds } from "./range-holds.ts";
import { ScopeStore } from "./scope-store.ts";
import { ShardTransfers } from "./shard.ts";
import { TransferHolds } from "./wide-holds.ts";

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
  make: (part) => {
    const ranges = new RangeHolds(part.ports.sql, part.touch);
    const scopes = new ScopeStore(part.ports.sql, part.log.held);
    const transfers = new ShardTransfers({ ...part, ranges, scopes });
    const wide = new TransferHolds({ ...part, ranges, scopes, transfers });
    part.wide.provide(wide);
    return {
      parts: { ranges, transfers } satisfies TransfersOnShard,
      handlers: {
        /** Counts what this shard has of a scope, before a transfer of it is prepared (Y2). */
        planTransfer: (message) =>
          wide.readClaims(message.from, message, () =>
            wide.reads.run(message.from, () => {
              const value = transfers.plan(message);
              return { value, rows: value.counts.reduce((sum, { claims }) => sum + claims, value.present) };
            }),
          ),
      },
      measures: {
        planTransfer: counting(() => {
          part.counters.add("recordReads");
        }),
      },
      hooks: { takeChanged: () => ranges.takeChanged() },
    };
  },
};

interface TransfersOnShard {
  readonly ranges: RangeHolds;
  readonly transfers: ShardTransfers;
}

/** Returns what a shard has of transfers. Capabilities that need it come later in the list. */
export const transfersOn = ({ capabilities }: Pick<ShardPart, "capabilities">): TransfersOnShard =>
  (capabilities as { transfer: TransfersOnShard }).transfer;

/** Moves the claims of a scope to another cell (Y1 to Y10). */
export const transfer = { name: "transfer", isRequired: true, shard } as const satisfies Capability;
