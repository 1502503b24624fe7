import type { Capability, DirectoryHalf, LedgerHalf, ShardHalf } from "../../kernel/capability.ts";
import type { DirectoryReconciliation, RestoreDirectory } from "../../kernel/directory/messages.ts";
import { durable } from "../../kernel/durable.ts";
import type { Envelope, Told } from "../../kernel/messages.ts";
import type { Instances } from "../../kernel/instances.ts";
import { method, peerMethod, type Calls } from "../../kernel/method.ts";
import type { Ports } from "../../kernel/ports.ts";
import { positionAt } from "../../kernel/ledger/position.ts";
import { ok } from "../../kernel/refusal.ts";
import type { Slot } from "../../kernel/slot.ts";
import type { Standing } from "../../kernel/standing.ts";
import { DirectoryReconciler } from "./directory.ts";
import { listHolds } from "./hold-page.ts";
import { knowledgeOf } from "./knowledge.ts";
import { History } from "./history.ts";
import { compareBatch, LedgerReconciler } from "./ledger.ts";
import { LedgerPoints } from "./ledger-points.ts";
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
  ShardPoints,
  ShardReconciliation,
} from "./messages.ts";
import { SeenDirectory } from "./seen-directory.ts";
import { SeenShards } from "./seen-shards.ts";
import { ShardReconciler } from "./shard.ts";
import { transfersIn, transfersOn } from "../transfer/index.ts";

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

const writesOf = {
  ledger: ["record_lost_history", "rebuild_leases", "accept_loss"],
  shard: ["record_lost_history", "accept_loss", "finish_reconciliation"],
  directory: ["record_lost_history", "restore_directory"],
} as const;

declare module "../../kernel/write-points.ts" {
  interface WritePoints extends Record<(typeof writesOf)[keyof typeof writesOf][number], true> {}
}

interface Part {
  readonly ports: Ports;
  readonly instances: Instances;
  readonly standing: Slot<Standing>;
}

/** @param name - the part, as messages to operators name it */
function historyOf({ ports, instances, standing }: Part, name: string): History {
  const history = new History(ports, name, instances);
  standing.provide(history);
  return history;
}

const tell = ({ instances: { point } }: Pick<Part, "instances">): Partial<Told> =>
  point === undefined ? {} : { point };

const ledger: LedgerHalf<typeof onLedgers> = {
  writes: writesOf.ledger,
  methods: onLedgers,
  make: (part) => {
    const history = historyOf(part, `the ledger of cell ${part.cell}`);
    const reconciler = new LedgerReconciler({
      ...part,
      transferStore: transfersIn(part).transferStore,
      history,
    });
    const directory = new SeenDirectory(part.store);
    const shards = new SeenShards({ ...part, history, directory });
    part.sightings.provide(shards);
    return {
      handlers: {
        /** Returns what this ledger knows of its own history. */
        part: () => ok(history.status),
        /** Rebuilds the leases that this ledger has forgotten, and accepts its loss (H7). */
        reconcile: (message) => reconciler.reconcile(message),
        /** Returns what this ledger knows of a shard that has gone back in time (H6). */
        knowledge: async (message) => {
          const seen = shards.points.get(message.shard);
          return durable(part, ok(knowledgeOf(part, seen, message)));
        },
        /** Returns the newest point of each shard that this ledger has seen, for the shards to check (G7). */
        seenShards: () => ok(Object.fromEntries(shards.points)),
      },
      hooks: {
        guardCall: ({ seen }) => history.refuseImpossible(seen, positionAt(part.ports.clock.now())),
        compareBatch,
        learn: (message) => {
          if (message.shards !== undefined) shards.learn(message.shards);
        },
        tell: () => ({ ...tell(part), shards: shards.takeNews() }),
        maintaining: (message) => {
          shards.tellAll();
          if (message.directory !== undefined) directory.learn(message.directory);
        },
        metrics: () => ({ state: history.state }),
      },
      parts: { reconciler, shards, directory },
    };
  },
};

const shard: ShardHalf<typeof onShards> = {
  writes: writesOf.shard,
  methods: onShards,
  make: (part) => {
    const { residence } = part;
    const history = historyOf(part, `shard ${part.index}`);
    const points = new LedgerPoints(part.log);
    part.log.sightings.provide(points);
    const reconciler = new ShardReconciler({ ...part, ranges: transfersOn(part).ranges, history });
    return {
      handlers: {
        /** Returns what this shard knows of its own history. */
        part: () => ok(history.status),
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
      parts: { points },
      hooks: { tell: () => tell(part), metrics: () => ({ state: history.state }) },
    };
  },
};

const directory: DirectoryHalf<typeof onDirectory> = {
  writes: writesOf.directory,
  methods: onDirectory,
  make: (part) => {
    const history = historyOf(part, "the directory");
    const reconciler = new DirectoryReconciler({ ...part, history });
    return {
      handlers: {
        /** Returns what this directory knows of its own history. */
        part: async () => durable(part, ok(history.status)),
        /** Compares what ledgers have seen of this directory with its history (H2). Success confirms them. */
        compare: (message) => {
          for (const { noticedBy, point } of message.points) {
            const refusal = history.admit(point, noticedBy);
            if (refusal !== undefined) return { ok: false, refusal };
          }
          return ok(null);
        },
        /** Takes over what copies of the lost rows still have, and accepts the loss (H8). */
        reconcile: (message) => reconciler.reconcile(message),
      },
      hooks: { tell: () => tell(part), metrics: () => ({ state: history.state }) },
    };
  },
};

/** An operator reconciles a part that has gone back in time (H4 to H8). */
export const loss = {
  name: "loss",
  needs: ["keys", "transfer"],
  ledger,
  shard,
  directory,
} as const satisfies Capability;
