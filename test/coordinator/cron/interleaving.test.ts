import { describe, expect, test } from "vitest";
import type { Env } from "../../../src/coordinator/env.ts";
import { runCron } from "../../../src/coordinator/cron/cron.ts";
import {
  begin,
  decide,
  env,
  expectD1ToMatch,
  leasesInD1,
  leasesInLedger,
  startFleet,
  uuidOf,
  type LedgerLease,
} from "./fleet.ts";
import { seeded } from "../../support/seeded.ts";
import { inSlice } from "../../support/slice.ts";
import { faultyD1 } from "./faulty-d1.ts";
import { withSlowLedgers } from "./ledger-calls.ts";

const CHANGES = 150;
const cells = ["1", "2"];

describe("pulls between begins and decisions in random order", () => {
  for (const seed of inSlice([1, 2, 3, 4, 5, 6], 3)) {
    test(`miss no change (seed ${seed})`, async () => {
      await startFleet(...cells);
      const random = seeded(seed);
      const pick = <T>(items: readonly T[]): T | undefined => items[Math.floor(random() * items.length)];
      const outstanding: { cell: string; lease: string }[] = [];
      // Pauses before D1 and the ledgers let their changes run in between. Otherwise a run would finish
      // within one turn.
      const pause = (): Promise<undefined> =>
        new Promise((resume) => setTimeout(resume, random() * 4, undefined));
      const hesitant = (variables: Record<string, string>): Env =>
        withSlowLedgers(pause, { ...faultyD1(pause).env, ...variables });
      const changes = { over: false };
      const change = async (n: number): Promise<void> => {
        const cell = pick(cells) ?? "1";
        const old =
          random() < 0.5 ? outstanding.splice(Math.floor(random() * outstanding.length), 1)[0] : undefined;
        if (old !== undefined)
          await decide(old.cell, old.lease, random() < 0.5 ? "COMMITTED" : "ROLLED_BACK");
        else if (random() < 0.1) await decide(cell, uuidOf(n), "ROLLED_BACK");
        else {
          await begin(cell, uuidOf(n), `name-${n}`);
          outstanding.push({ cell, lease: uuidOf(n) });
        }
      };
      const changing = async (): Promise<void> => {
        const underWay: Promise<void>[] = [];
        try {
          for (let n = 0; n < CHANGES; n += 1) {
            underWay.push(change(n));
            if (random() < 0.4) await underWay.shift();
            if (random() < 0.2) await pause();
          }
          await Promise.all(underWay);
        } finally {
          changes.over = true;
        }
      };
      const pulling = async (): Promise<void> => {
        while (!changes.over) {
          const before = new Map<string, LedgerLease[]>();
          for (const cell of cells) before.set(cell, await leasesInLedger(cell));
          await runCron(hesitant({ LEASEHOLD_PULL_ROWS: String(1 + Math.floor(random() * 4)) }), Date.now());
          for (const [cell, held] of before) await expectNothingMissing(cell, held);
        }
      };
      await Promise.all([changing(), pulling()]);
      await runCron(env, Date.now());
      for (const cell of cells) await expectD1ToMatch(cell);
    });
  }
});

/**
 * D1 has the leases that were open during the whole run, and none that was decided before it.
 *
 * @param before the ledger's leases before the run
 */
async function expectNothingMissing(cell: string, before: readonly LedgerLease[]): Promise<void> {
  const copied = new Set((await leasesInD1(cell)).map(({ uuid }) => uuid));
  const open = (leases: readonly LedgerLease[]): Set<string> =>
    new Set(leases.filter(({ state }) => state === "GRANTED").map(({ uuid }) => uuid));
  const stillOpen = open(before).intersection(open(await leasesInLedger(cell)));
  expect([...stillOpen.difference(copied)]).toEqual([]);
  expect(before.filter(({ uuid, state }) => state !== "GRANTED" && copied.has(uuid))).toEqual([]);
}
