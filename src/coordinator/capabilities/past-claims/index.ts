import type { Capability, ShardHalf } from "../../kernel/capability.ts";
import { method, type Calls } from "../../kernel/method.ts";
import { counting } from "../../kernel/serve.ts";
import type { ShardPart } from "../../kernel/shard/part.ts";
import { erasePeriods, listPeriods } from "./calls.ts";
import type { ErasedPeriods, ErasePeriods, ListPeriods, PeriodPage } from "./messages.ts";
import { PAST_CLAIM_TABLES, PastClaims } from "./shard.ts";

/** The past claims that one transaction drops, and the transactions of one alarm (K3). */
const DROPPED_ROWS = 500;
const DROPS_PER_ALARM = 10;

const methods = {
  listPeriods: method<ListPeriods, PeriodPage>("read"),
  erasePeriods: method<ErasePeriods, ErasedPeriods>("whole"),
};

declare module "../../kernel/methods.ts" {
  interface ShardCalls extends Calls<typeof methods> {}
}

const writes = ["drop_past_claims", "erase_past_claims"] as const;

declare module "../../kernel/write-points.ts" {
  interface WritePoints extends Record<(typeof writes)[number], true> {}
}

const shard: ShardHalf<typeof methods> = {
  steps: [PAST_CLAIM_TABLES],
  writes,
  methods,
  make: (part) => {
    const past = new PastClaims(part.ports.sql, part.limits, part.isFull);
    return {
      handlers: {
        listPeriods: (request) => listPeriods(part, past, request),
        erasePeriods: (request) => erasePeriods(part, past, request),
      },
      measures: {
        listPeriods: counting(() => {
          part.counters.add("lookups");
        }),
      },
      hooks: {
        claimsEnding: (holds, nowMs) => past.keep(holds, nowMs),
        claimsMoving: (claims, nowMs) => past.keepMoved(claims, nowMs),
        incomplete: (nowMs) => past.incompleteBefore(nowMs),
        moved: (behind, limit, hasMoved) => past.deleteMoved(behind, limit, hasMoved),
        takeChanged: () => past.takeChanged(),
        alarm: { dueMs: (nowMs) => past.dueMs(nowMs), run: () => drop(part, past) },
      },
    };
  },
};

async function drop({ ports: { clock }, commits }: ShardPart, pastClaims: PastClaims): Promise<void> {
  for (let left = DROPS_PER_ALARM; left > 0 && pastClaims.dueMs(clock.now()) <= clock.now(); left -= 1)
    await commits.submit("drop_past_claims", () => pastClaims.drop(clock.now(), DROPPED_ROWS), {
      weight: DROPPED_ROWS,
    });
}

/** The claims that have ended, for a limited time (K1 to K5). */
export const pastClaims = { name: "past-claims", shard } as const satisfies Capability;
