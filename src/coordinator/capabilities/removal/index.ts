import type { Capability, ShardHalf } from "../../kernel/capability.ts";
import { method, peerMethod, type Calls } from "../../kernel/method.ts";
import { counting } from "../../kernel/serve.ts";
import { transfersOn } from "../transfer/index.ts";
import type { CellClaimCounts, CellClaims, CountCellClaims, ListCellClaims } from "./messages.ts";
import { countClaims } from "./shard.ts";

const methods = {
  listCellClaims: peerMethod<ListCellClaims, CellClaims>("whole"),
  countCellClaims: method<CountCellClaims, CellClaimCounts>("whole"),
};

declare module "../../kernel/methods.ts" {
  interface ShardCalls extends Calls<typeof methods> {}
}

const shard: ShardHalf<typeof methods> = {
  methods,
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

/** Releases all names of a cell. What shards tell of its claims is here. */
export const removal = {
  name: "removal",
  isRequired: true,
  needs: ["transfer"],
  shard,
} as const satisfies Capability;
