import { beforeEach, describe, expect, test } from "vitest";
import { readConfig } from "../../../src/coordinator/config.ts";
import { noIdentities } from "../../../src/coordinator/capabilities/identities/identities.ts";
import type { Cell } from "../../../src/coordinator/kernel/directory/messages.ts";
import { ok, refused } from "../../../src/coordinator/kernel/refusal.ts";
import { Readiness } from "../../../src/coordinator/isolate/readiness.ts";
import type { Objects } from "../../../src/coordinator/objects/objects.ts";
import type { ProjectionHealth } from "../../../src/coordinator/cron/health.ts";
import { env } from "../../support/workerd/api.ts";
import { STAMP } from "../../support/ops.ts";

/** Longer than a report is shared. */
const LATER_MS = 6_000;

const up = { d1: "up", missingMigrations: [] } as const;

/** A deployment of 1,000 cells and 256 shards that counts the calls, and in which some parts fail or hang. */
class Fixture {
  readonly cells = Array.from({ length: 1_000 }, (_, index) => String(index + 1));
  readonly shards = 256;
  isPlaced = true;
  nowMs = 0;
  calls: string[] = [];
  failing = new Set<string>();
  hanging = new Set<string>();
  lost = new Set<string>();
  unknown = new Set<string>();
  projection: ProjectionHealth = { ...up, cron: null, suspects: [] };
  readonly kept: Promise<unknown>[] = [];

  readonly readiness = new Readiness(
    {
      env,
      config: readConfig({
        LEASEHOLD_INQUIRY_TIMEOUT_MS: "50",
        LEASEHOLD_EXCHANGE_TIMEOUT_MS: "50",
      }),
      clock: { now: () => this.nowMs, after: () => () => {} },
      envelope: { ...STAMP, placement: "" },
      shards: this.shards,
      directory: {
        read: async () => {
          const answered = await this.#ask("directory");
          if (!answered.ok) return answered;
          return ok({
            cells: new Map(this.cells.map((cell) => [cell, { cell } as Cell])),
            removedCells: new Map<string, Cell>(),
            revokedKeys: new Set<string>(),
            revokedThroughMs: 0,
            isPlaced: this.isPlaced,
            growth: null,
            identities: noIdentities,
          });
        },
      },
      objects: {
        shard: (index: number) => ({ ping: () => this.#ask(`shard ${index}`) }),
        ledger: (cell: string) => ({ status: () => this.#ask(`ledger of cell ${cell}`) }),
      } as unknown as Objects,
    },
    async () => this.projection,
  );

  async #ask(part: string) {
    this.calls.push(part);
    if (this.hanging.has(part)) await new Promise(() => {});
    if (this.lost.has(part)) return refused("UNAVAILABLE", "lost", { reason: "HISTORY_LOST" });
    if (this.unknown.has(part)) return refused("UNAVAILABLE", "newer", { reason: "UNKNOWN_TABLES" });
    return this.failing.has(part) ? refused("UNAVAILABLE", "down") : ok(null);
  }

  /** The parts that a new check calls, and those that it reports. */
  async check(): Promise<{ called: string[]; failed: readonly string[]; isReady: boolean }> {
    this.calls = [];
    this.nowMs += LATER_MS;
    const report = await this.readiness.check((work) => this.kept.push(work));
    const { failed = [] } = report.ok ? report.value : (report.refusal as { failed?: readonly string[] });
    return { called: this.calls, failed, isReady: report.ok };
  }
}

let fixture: Fixture;

beforeEach(() => void (fixture = new Fixture()));

const ledgersIn = (calls: readonly string[]): string[] => calls.filter((call) => call.startsWith("ledger"));

test("one check calls the directory, every shard and 16 of 1,000 ledgers", async () => {
  const { called, failed } = await fixture.check();
  expect(failed).toEqual([]);
  expect(new Set(called).size).toBe(called.length);
  expect(called.filter((call) => call.startsWith("shard"))).toHaveLength(256);
  expect(ledgersIn(called)).toHaveLength(16);
  expect(called).toHaveLength(1 + 256 + 16);
});

test("63 checks call every ledger", async () => {
  const seen = new Set<string>();
  for (let checks = 0; checks < 63; checks += 1)
    for (const ledger of ledgersIn((await fixture.check()).called)) seen.add(ledger);
  expect(seen.size).toBe(1_000);
});

test("with fewer cells, each ledger is called once", async () => {
  fixture.cells.length = 3;
  expect(ledgersIn((await fixture.check()).called).toSorted()).toEqual(
    [1, 2, 3].map((cell) => `ledger of cell ${cell}`),
  );
  fixture.cells.length = 0;
  expect(ledgersIn((await fixture.check()).called)).toEqual([]);
});

test("[P2] no shard is called before the first cell, but all are when every cell was removed", async () => {
  fixture.cells.length = 0;
  fixture.failing = new Set(["shard 7"]);
  expect((await fixture.check()).failed).toEqual(["shard 7"]);
  fixture.isPlaced = false;
  expect(await fixture.check()).toEqual({ called: ["directory"], failed: [], isReady: true });
});

test("a ledger that fails is called again by every check until it answers", async () => {
  fixture.failing = new Set(fixture.cells.map((cell) => `ledger of cell ${cell}`));
  const { failed } = await fixture.check();
  expect(failed).toHaveLength(16);
  const [bad = ""] = failed;
  // Without the failure, the next checks would come to it only after all others.
  fixture.failing = new Set([bad]);
  expect((await fixture.check()).failed).toEqual([bad]);
  expect((await fixture.check()).failed).toEqual([bad]);
  fixture.failing.clear();
  expect((await fixture.check()).failed).toEqual([]);
});

test("the cells that the cron could not visit are called first, and only the call decides", async () => {
  const suspects = ["998", "999", "no longer registered"];
  fixture.projection = { ...up, cron: { finishedAtMs: 5, cellsFailed: 3 }, suspects };
  fixture.failing = new Set(["ledger of cell 999"]);
  const { called, failed } = await fixture.check();
  expect(ledgersIn(called).slice(0, 2)).toEqual(["ledger of cell 998", "ledger of cell 999"]);
  expect(ledgersIn(called)).toHaveLength(16);
  expect(failed).toEqual(["ledger of cell 999"]);
});

test("the last run of the cron is reported and fails nothing", async () => {
  fixture.projection = { ...up, cron: { finishedAtMs: 5, cellsFailed: 3 }, suspects: [] };
  expect(await fixture.readiness.check(() => {})).toEqual({
    ok: true,
    value: { status: "ok", failed: [], ...up, cron: { finishedAtMs: 5, cellsFailed: 3 } },
  });
});

test("migrations that D1 lacks are reported and fail nothing", async () => {
  const outdated = { d1: "outdated", missingMigrations: ["0001_later.sql"], cron: null } as const;
  fixture.projection = { ...outdated, suspects: [] };
  expect(await fixture.readiness.check(() => {})).toEqual({
    ok: true,
    value: { status: "ok", failed: [], ...outdated },
  });
});

describe("ledgers that fail", () => {
  const ledgers = (count: number): string[] =>
    Array.from({ length: count }, (_, index) => `ledger of cell ${index + 1}`);

  beforeEach(() => void (fixture.cells.length = 3));

  test.each([
    ["one does not answer", 1, "down"],
    ["all but one do not answer", 2, "down"],
    ["all have lost history, and answer that", 3, "lost"],
  ] as const)("fail no check: %s", async (_, count, kind) => {
    fixture[kind === "down" ? "failing" : "lost"] = new Set(ledgers(count));
    const { failed, isReady } = await fixture.check();
    expect(failed.toSorted()).toEqual(ledgers(count));
    expect(isReady).toBe(true);
  });

  test("fail the check if none answers", async () => {
    fixture.failing = new Set(ledgers(3));
    expect(await fixture.check()).toMatchObject({ isReady: false });
  });

  test("are listed with the part that fails it", async () => {
    fixture.failing = new Set(["shard 7"]);
    fixture.lost = new Set(ledgers(1));
    const { failed, isReady } = await fixture.check();
    expect({ failed, isReady }).toEqual({ failed: ["shard 7", ...ledgers(1)], isReady: false });
  });
});

test("[M5] tables that need another version are named as such", async () => {
  fixture.unknown = new Set(["shard 7", "shard 8"]);
  expect(await fixture.readiness.check(() => {})).toEqual({
    ok: false,
    refusal: {
      code: "UNAVAILABLE",
      detail: "2 parts have tables that need another version",
      reason: "UNKNOWN_TABLES",
      failed: ["shard 7", "shard 8"],
    },
  });
});

describe("parts that hang", () => {
  test("fail alone", async () => {
    fixture.hanging = new Set(["shard 7", "shard 250"]);
    expect((await fixture.check()).failed).toEqual(["shard 7", "shard 250"]);
  });

  test("all of them: the check ends, and calls no further part afterwards", async () => {
    fixture.hanging = new Set([...fixture.cells.keys()].map((shard) => `shard ${shard}`));
    const { failed } = await fixture.check();
    expect(failed).toHaveLength(256 + 16);
    const { length } = fixture.calls;
    // Longer than the calls that were made may take.
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(fixture.calls).toHaveLength(length);
    expect(length).toBeLessThan(100);
  });
});

test("a report is shared for 5 s, and not after the clock was set back", async () => {
  await fixture.check();
  fixture.calls = [];
  fixture.nowMs += 5_000;
  await fixture.readiness.check(() => {});
  expect(fixture.calls).toEqual([]);
  fixture.nowMs -= 3_600_000;
  await fixture.readiness.check(() => {});
  expect(fixture.calls).toHaveLength(1 + 256 + 16);
});

test("the runtime keeps the work of a check, which other requests may be waiting for", async () => {
  await fixture.check();
  expect(fixture.kept).toHaveLength(1);
});
