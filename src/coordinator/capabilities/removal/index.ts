import type { Capability, LedgerHalf, ShardHalf } from "../../kernel/capability.ts";
import { method, peerMethod, type Calls } from "../../kernel/method.ts";
import { counting } from "../../kernel/serve.ts";
import { transfersIn, transfersOn } from "../transfer/index.ts";
import { directory } from "./directory.ts";
import { Removal } from "./ledger.ts";
import type {
  ApproveRemoval,
  CellClaimCounts,
  CellClaims,
  CountCellClaims,
  ListCellClaims,
  RemovalProgress,
  RemovalStep,
} from "./messages.ts";
import { countClaims } from "./shard.ts";

const onLedgers = {
  approveRemoval: method<ApproveRemoval, null>("peer"),
  removalStep: method<RemovalStep, RemovalProgress>("peer"),
};

const onShards = {
  listCellClaims: peerMethod<ListCellClaims, CellClaims>("whole"),
  countCellClaims: method<CountCellClaims, CellClaimCounts>("whole"),
};

declare module "../../kernel/methods.ts" {
  interface LedgerCalls extends Calls<typeof onLedgers> {}
  interface ShardCalls extends Calls<typeof onShards> {}
}

const writes = ["approve_removal", "start_removal", "finish_removal"] as const;

declare module "../../kernel/write-points.ts" {
  interface WritePoints extends Record<(typeof writes)[number], true> {}
}

const ledger: LedgerHalf<typeof onLedgers> = {
  writes,
  methods: onLedgers,
  make: (part) => {
    const removal = new Removal({ ...part, transferStore: transfersIn(part).transferStore });
    return {
      parts: { removal },
      handlers: {
        approveRemoval: (message) => removal.approve(message),
        /** Releases some of the cell's claims. The last step marks the cell as removed. */
        removalStep: (message) => removal.step(message),
      },
      hooks: {
        guardCaller: (caller) => removal.guardCaller(caller),
        guardGrant: (request) => removal.guardGrant(request),
        guardCell: (remedy) => removal.guardCell(remedy),
        maintaining: (message) => removal.guardMaintenance(message),
        maintained: () => ({ removed: removal.end }),
        status: () => ({ removal: removal.stored }),
        resumed: (copies) => removal.resume(copies),
      },
    };
  },
};

const shard: ShardHalf<typeof onShards> = {
  methods: onShards,
  make: (part) => {
    const { store, wide, claimReads, counters, ports } = part;
    const { transfers } = transfersOn(part);
    const { scanRows } = part.limits;
    const count = counting(() => {
      counters.add("recordReads");
    });
    return {
      handlers: {
        /** Returns some claims of a cell that is removed, held or not (X3). */
        listCellClaims: (message) =>
          wide.current.readClaims(message.cell, message, () =>
            claimReads.run(message.cell, () => {
              const claims = store.claimsOf(message.cell, Math.min(message.limit, scanRows));
              return { value: { claims, transfers: transfers.holding(message.cell) }, rows: claims.length };
            }),
          ),
        /** Counts claims of a cell by their types, held or not. */
        countCellClaims: (message) =>
          wide.current.readClaims(message.cell, message, () =>
            claimReads.run(message.cell, () => {
              const value = countClaims(ports.sql, message.cell, message.behind, scanRows);
              return { value, rows: value.counts.reduce((sum, { claims }) => sum + claims, 0) };
            }),
          ),
      },
      measures: { listCellClaims: count, countCellClaims: count },
    };
  },
};

/** Releases all names of a cell. */
export const removal = {
  name: "removal",
  needs: ["cells", "transfer"],
  ledger,
  shard,
  directory,
} as const satisfies Capability;
