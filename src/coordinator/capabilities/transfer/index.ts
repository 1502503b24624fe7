import type { Capability, LedgerHalf, ShardHalf } from "../../kernel/capability.ts";
import { durable } from "../../kernel/durable.ts";
import { beginLease } from "../../kernel/ledger/ledger.ts";
import type { LedgerPart } from "../../kernel/ledger/part.ts";
import { method, type Calls } from "../../kernel/method.ts";
import { counting } from "../../kernel/serve.ts";
import type { ShardPart } from "../../kernel/shard/part.ts";
import { ok, type Result } from "../../kernel/refusal.ts";
import { TransferStore, TRANSFER_TABLES } from "./ledger-store.ts";
import { Transfers } from "./ledger.ts";
import { TransferLeases } from "./leases.ts";
import type {
  DecideTransfer,
  ListTransfers,
  PlanTransfer,
  PrepareTransfer,
  ReportTransfer,
  Transfer,
  TransferCall,
  TransferPage,
  TransferPlan,
} from "./messages.ts";
import type { TransferParty } from "./range.ts";
import { RANGE_HOLD_TABLES, RangeHolds } from "./range-holds.ts";
import { ScopeStore } from "./scope-store.ts";
import { ShardTransfers } from "./shard.ts";
import { TransferHolds } from "./wide-holds.ts";

/** The key of a transfer's source is checked by its own ledger, which the Worker has asked before (Y7). */
const ofParty = { isOfOwnCell: ({ party }: { party: TransferParty }) => party === "to" };

const onLedgers = {
  prepareTransfer: method<PrepareTransfer, Transfer>("call", ofParty),
  acceptTransfer: method<TransferCall, Transfer>("call", ofParty),
  reportTransfer: method<ReportTransfer, Transfer>("call", ofParty),
  decideTransfer: method<DecideTransfer, Transfer>("call", ofParty),
  getTransfer: method<TransferCall, Transfer>("call", ofParty),
  listTransfers: method<ListTransfers, TransferPage>("call", ofParty),
};

const onShards = {
  planTransfer: method<PlanTransfer, TransferPlan>("whole"),
};

declare module "../../kernel/methods.ts" {
  interface LedgerCalls extends Calls<typeof onLedgers> {}
  interface ShardCalls extends Calls<typeof onShards> {}
}

const ledgerWrites = ["change_transfer"] as const;
const shardWrites = ["move_claims"] as const;

declare module "../../kernel/write-points.ts" {
  interface WritePoints extends Record<(typeof ledgerWrites | typeof shardWrites)[number], true> {}
}

const ledger: LedgerHalf<typeof onLedgers> = {
  steps: [TRANSFER_TABLES],
  writes: ledgerWrites,
  methods: onLedgers,
  make: (part) => {
    const transferStore = new TransferStore(part.ports.sql);
    const transfers = new Transfers({ ...part, transferStore });
    /** Answers when the rows are durable that the answer was read from (C2). */
    const durably =
      <Message, T>(work: (message: Message) => Promise<Result<T>>) =>
      async (message: Message): Promise<Result<T>> =>
        durable(part, await work(message));
    part.kinds.provide(new TransferLeases({ ...part, transferStore }));
    return {
      parts: { transferStore, transfers } satisfies TransfersInLedger,
      handlers: {
        /** Prepares a transfer to this cell: holds a scope of another cell on all shards (Y1). */
        prepareTransfer: durably(async (request) => {
          const known = transfers.preparedBefore(request);
          if (known !== undefined) return known;
          const begin = transfers.beginOf(request, part.begins.isRunning(request.transfer));
          if (!begin.ok) return begin;
          return transfers.prepared(await beginLease(part, begin.value), request);
        }),
        /** Says that the destination takes the claims of a transfer. */
        acceptTransfer: durably((call) => transfers.accept(call)),
        /** Stores what one of the two cells has in its rows. */
        reportTransfer: durably((call) => transfers.report(call)),
        /** Cuts or aborts a transfer. */
        decideTransfer: durably((call) => transfers.decide(call)),
        getTransfer: durably(async (call) => transfers.find(call)),
        listTransfers: durably(async (call) => ok(transfers.list(call))),
      },
      hooks: {
        guardGrant: (request) => transfers.guardGrant(request),
        metrics: () => transfers.counts(part.ports.clock.now()),
        resumed: () => transferStore.markRebuilt(),
      },
    };
  },
};

interface TransfersInLedger {
  readonly transferStore: TransferStore;
  readonly transfers: Transfers;
}

/** Returns what a ledger has of transfers. Capabilities that need it come later in the list. */
export const transfersIn = ({ capabilities }: Pick<LedgerPart, "capabilities">): TransfersInLedger =>
  (capabilities as { transfer: TransfersInLedger }).transfer;

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
export const transfer = { name: "transfer", ledger, shard } as const satisfies Capability;
