import type { Capability, DirectoryHalf, LedgerHalf, ShardHalf } from "../../kernel/capability.ts";
import type { DirectoryReconciliation, RestoreDirectory } from "../../kernel/directory/messages.ts";
import { durable } from "../../kernel/durable.ts";
import type { Envelope, ShardPoints } from "../../kernel/messages.ts";
import { method, peerMethod, type Calls } from "../../kernel/method.ts";
import { ok } from "../../kernel/refusal.ts";
import { DirectoryReconciler } from "./directory.ts";
import { listHolds } from "./hold-page.ts";
import { knowledgeOf } from "./knowledge.ts";
import { LedgerReconciler } from "./ledger.ts";
import type {
  ComparePoints,
  FinishShard,
  HoldPage,
  Knowledge,
  KnowledgeRequest,
  LedgerReconciliation,
  ListHolds,
  PartStatus,
  ReconcileLedger,
  ReconcileShard,
  ShardReconciliation,
} from "./messages.ts";
import { ShardReconciler } from "./shard.ts";

const onLedgers = {
  part: method<Envelope, PartStatus>("always"),
  reconcile: method<ReconcileLedger, LedgerReconciliation>("always"),
  knowledge: peerMethod<KnowledgeRequest, Knowledge>("always"),
  seenShards: method<Envelope, ShardPoints>("peer"),
};

const onShards = {
  part: method<Envelope, PartStatus>("always"),
  reconcile: method<ReconcileShard, ShardReconciliation>("always"),
  finishReconciliation: method<FinishShard, PartStatus>("always"),
  listHolds: peerMethod<ListHolds, HoldPage>("always"),
};

const onDirectory = {
  part: method<Envelope, PartStatus>("always"),
  compare: method<ComparePoints, null>("read"),
  reconcile: method<RestoreDirectory, DirectoryReconciliation>("always"),
};

declare module "../../kernel/methods.ts" {
  interface LedgerCalls extends Calls<typeof onLedgers> {}
  interface ShardCalls extends Calls<typeof onShards> {}
  interface DirectoryCalls extends Calls<typeof onDirectory> {}
}

const ledger: LedgerHalf<typeof onLedgers> = {
  methods: onLedgers,
  make: (part) => {
    const reconciler = new LedgerReconciler(part);
    return {
      handlers: {
        /** Returns what this ledger knows of its own history. */
        part: () => ok(part.history.status),
        /** Rebuilds the leases that this ledger has forgotten, and accepts its loss (H7). */
        reconcile: (message) => reconciler.reconcile(message),
        /** Returns what this ledger knows of a shard that has gone back in time (H6). */
        knowledge: async (message) => {
          const seen = part.links.points.get(message.shard);
          const known = knowledgeOf(part.store, seen, part.limits.outstandingLeases, message);
          return durable(part, ok(known));
        },
        /** Returns the newest point of each shard that this ledger has seen, for the shards to check (G7). */
        seenShards: () => ok(Object.fromEntries(part.links.points)),
      },
      parts: { reconciler },
    };
  },
};

const shard: ShardHalf<typeof onShards> = {
  methods: onShards,
  make: (part) => {
    const { residence } = part;
    const reconciler = new ShardReconciler(part);
    return {
      handlers: {
        /** Returns what this shard knows of its own history. */
        part: () => ok(part.history.status),
        /** Accepts that this shard has gone back in time (H6). A dry run returns what would be accepted. */
        reconcile: async (message) => {
          const reply = await reconciler.reconcile(message);
          // A shard that was lost had no alarm, and has handed nothing over.
          residence.current.handOver();
          return reply;
        },
        // Once every cell has verified, and removed cells have no names (H6, X4).
        finishReconciliation: (message) =>
          // Until a source has stopped to serve its names, others may get them there (G5).
          residence.current.awaitsNames
            ? { ok: false, refusal: residence.current.notHere() }
            : reconciler.finish(message),
        listHolds: (message) => listHolds(part, message),
      },
    };
  },
};

const directory: DirectoryHalf<typeof onDirectory> = {
  methods: onDirectory,
  make: (part) => {
    const reconciler = new DirectoryReconciler(part);
    return {
      handlers: {
        /** Returns what this directory knows of its own history. */
        part: async () => durable(part, ok(part.history.status)),
        /** Compares what ledgers have seen of this directory with its history (H2). Success confirms them. */
        compare: (message) => {
          for (const { noticedBy, point } of message.points) {
            const refusal = part.history.refuse(point, noticedBy);
            if (refusal !== undefined) return { ok: false, refusal };
          }
          return ok(null);
        },
        /** Takes over what copies of the lost rows still have, and accepts the loss (H8). */
        reconcile: (message) => reconciler.reconcile(message),
      },
    };
  },
};

/** An operator reconciles a part that has gone back in time (H4 to H8). */
export const loss = {
  name: "loss",
  isRequired: true,
  needs: ["keys", "transfer"],
  ledger,
  shard,
  directory,
} as const satisfies Capability;
