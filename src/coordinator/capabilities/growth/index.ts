import type { Capability, DirectoryHalf, ShardHalf } from "../../kernel/capability.ts";
import { change, operate, refusalOf } from "../../kernel/directory/checks.ts";
import type { Envelope } from "../../kernel/messages.ts";
import { method, peerMethod, type Calls } from "../../kernel/method.ts";
import { ok } from "../../kernel/refusal.ts";
import {
  abortGrowth,
  confirmCut,
  finishGrowth,
  growthIn,
  growthOperation,
  orderCut,
  restoreGrowth,
  startGrowth,
} from "./directory.ts";
import type {
  AbortGrowth,
  AskGrowth,
  ConfirmCut,
  CopiedGrowth,
  CutGrowth,
  FinishGrowth,
  Growth,
  GrowthCopy,
  GrowthProgress,
  GrowthStep,
  Receive,
  Received,
  StartGrowth,
} from "./messages.ts";
import { MOVED_NAME_TABLE, MovedNames } from "./moved-names.ts";
import { Residence } from "./residence.ts";
import { GrowthSource } from "./source.ts";
import { GrowthTarget } from "./target.ts";

const onDirectory = {
  growth: method<AskGrowth, Growth | null>("read"),
  startGrowth: method<StartGrowth, Growth>("peer"),
  cutGrowth: method<CutGrowth, Growth>("peer"),
  confirmCut: method<ConfirmCut, Growth>("peer", { admits: true }),
  abortGrowth: method<AbortGrowth, null>("peer"),
  finishGrowth: method<FinishGrowth, null>("peer"),
};

const onShards = {
  growStep: method<GrowthStep, GrowthProgress>("peer", { admits: true }),
  growthProgress: method<Envelope, GrowthProgress>("read"),
  receive: peerMethod<Receive, Received>("unplaced", { admits: true }),
};

declare module "../../kernel/methods.ts" {
  interface DirectoryCalls extends Calls<typeof onDirectory> {}
  interface ShardCalls extends Calls<typeof onShards> {}
}

const writes = ["start_growth", "order_cut", "confirm_cut", "abort_growth", "finish_growth"] as const;
const shardWrites = ["copy", "receive", "fence", "clean"] as const;

declare module "../../kernel/write-points.ts" {
  interface WritePoints extends Record<(typeof writes | typeof shardWrites)[number], true> {}
}

declare module "../../kernel/directory/messages.ts" {
  interface Confirmed {
    /** The growth that runs. Null: none. */
    growth: Growth | null;
  }
  interface SnapshotRequest extends Partial<CopiedGrowth> {}
  interface Snapshot {
    /** The growth that runs. Null: none. */
    growth: Growth | null;
  }
  interface RestoreDirectory {
    /** The growth in D1, which comes with the last page. Null or absent: there is no copy (G2). */
    growth?: GrowthCopy | null;
  }
}

const directory: DirectoryHalf<typeof onDirectory> = {
  writes,
  methods: onDirectory,
  make: (part) => ({
    handlers: {
      /** Returns the growth that runs. Null: none. */
      growth: () => ok(growthIn(part).growth),
      /** Starts to get more shards (G1). */
      startGrowth: (message) => {
        const id = part.ports.randomness.uuid();
        return operate(part, "start_growth", message, () =>
          startGrowth(part, message, id, part.ports.clock.now()),
        );
      },
      /** Orders the cut, after which the growth can't be aborted. */
      cutGrowth: (message) =>
        operate(part, "order_cut", message, () => orderCut(part, message, part.ports.clock.now())),
      /** Puts the new placement in force, once D1 has a copy of the growth (G2). Idempotent. */
      confirmCut: async (message) => {
        // A repeated message may have either placement.
        const { placement = message.placement } = part.store;
        const { growth } = growthIn(part);
        const isRepeated = growth?.id === message.id && growth.phase === "cut";
        const fitting = isRepeated ? { ...message, placement } : message;
        const before = await refusalOf(part, fitting);
        if (before !== undefined) return { ok: false, refusal: before };
        return change(part, "confirm_cut", fitting, () => confirmCut(part, message));
      },
      /** Ends a growth that was not cut. */
      abortGrowth: (message) => operate(part, "abort_growth", message, () => abortGrowth(part, message)),
      /** Ends a growth that all shards have carried out. Idempotent. */
      finishGrowth: (message) => change(part, "finish_growth", message, () => finishGrowth(part, message)),
    },
    hooks: {
      // D1 only gets growths that were durable here (G2).
      guardCopies: ({ growthCopiedAt = 0 }: Envelope & Partial<CopiedGrowth>) =>
        growthCopiedAt > growthIn(part).position
          ? part.standing.current.behind("the copy of the growth in D1")
          : undefined,
      confirmed: () => ({ growth: growthIn(part).growth }),
      running: () => growthOperation(part),
      snapshot: () => ({ growth: growthIn(part).growth }),
      missing: (copies) => ({
        told: {},
        restore: () => {
          if (copies?.isLast === true && copies.growth) restoreGrowth(part, copies.growth);
        },
      }),
    },
  }),
};

const shard: ShardHalf<typeof onShards> = {
  steps: [[MOVED_NAME_TABLE]],
  writes: shardWrites,
  methods: onShards,
  make: (part) => {
    const names = new MovedNames(part.ports.sql, part.log);
    const source = new GrowthSource({ ...part, names });
    const target = new GrowthTarget({ ...part, names });
    const residence = new Residence({ ...part, source, target });
    part.residence.provide(residence);
    return {
      handlers: {
        growStep: (message) => residence.growStep(message),
        /** Returns how far this shard is with a growth. */
        growthProgress: () => ok(source.progress),
        receive: (message) => residence.receive(message),
      },
      hooks: {
        pinged: (message) => residence.pinged(message),
        holdChanged: (key) => source.changed(key),
        takeChanged: () => target.takeChanged(),
        alarm: { isUrgent: true, dueMs: () => residence.dueMs, run: () => residence.work() },
      },
    };
  },
};

/** A deployment gets more shards while it runs (G1 to G10). */
export const growth = {
  name: "growth",
  needs: ["operations"],
  shard,
  directory,
} as const satisfies Capability;
