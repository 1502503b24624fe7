/** The cron at the limits: 1,000 cells and 256 shards. */
import { beforeEach, describe, expect, test } from "vitest";
import type { Cell } from "../../../src/coordinator/kernel/directory/messages.ts";
import { limitTable } from "../../../src/common/limits.ts";
import type { Result } from "../../../src/coordinator/kernel/refusal.ts";
import type {
  OpenLease,
  Pull,
  PullAnswer,
} from "../../../src/coordinator/capabilities/projection/messages.ts";
import type { ScrubPass, ScrubStatus } from "../../../src/coordinator/capabilities/scrub/messages.ts";
import { MAX_SHARDS } from "../../../src/coordinator/kernel/placement.ts";
import { runCron, type CronReport } from "../../../src/coordinator/cron/cron.ts";
import type { Env } from "../../../src/coordinator/env.ts";
import { defaultRuntime } from "../../../src/coordinator/runtime.ts";
import { faultyD1 } from "./faulty-d1.ts";
import { countRows, startFleet, uuidOf } from "./fleet.ts";

/** What Cloudflare allows an invocation of a Worker on the paid plan. */
const MAX_CALLS = 10_000;
const MAX_STATEMENTS = 1_000;

const CELLS = limitTable.maxCells.max;
const PAGE_ROWS = 2;

/** What a ledger without work answers. */
const IDLE = { pruned: 0, contradictions: null, unapplied: 0, auditEntries: 0, directory: null };

const answer = async <T>(value: T): Promise<Result<T>> => ({ ok: true, value });

/** A deployment whose objects answer at once, and count their calls. Only D1 is real. */
class FakeFleet {
  /** The open leases of a ledger. Infinity: their list never ends. */
  readonly open = new Map<string, number>();
  readonly pages = new Map<string, number>();
  readonly woken = new Map<string, number>();
  calls = 0;
  pings = 0;
  /** The steps of scrubs, which never end. */
  steps = 0;
  isScrubDue = false;

  env(base: Env): Env {
    const counted = <T extends object>(methods: T): { getByName: (name: string) => T } => ({
      getByName: () => methods,
    });
    const count = <T>(value: T): Promise<Result<T>> => {
      this.calls += 1;
      return answer(value);
    };
    const cells = Array.from({ length: CELLS }, (_, n) => cellOf(String(n + 1)));
    return {
      ...base,
      LEASEHOLD_SHARDS: String(MAX_SHARDS),
      LEASEHOLD_MAX_CELLS: String(CELLS),
      LEASEHOLD_PULL_ROWS: String(PAGE_ROWS),
      DIRECTORY: counted({
        snapshot: () =>
          count({
            placement: "",
            point: null,
            isPlaced: true,
            growth: null,
            cells,
            revokedKeys: [],
            types: { position: 0, entries: [] },
          }),
        listKeys: () => count({ point: null, keys: [], more: false }),
        pullAudit: () => count({ entries: [], more: false }),
        types: () => count({ position: 0, entries: [], isComplete: true }),
        operations: () => count({ position: 0, operations: [] }),
      }),
      CLAIM_SHARD: counted({
        ping: () => {
          this.pings += 1;
          return count({ auditEntries: 0, scrub: { isDue: this.isScrubDue, findings: 0 } });
        },
        scrub: () => count(this.#step()),
      }),
      CELL_LEDGER: {
        getByName: (name: string) => {
          const cell = name.slice("cell-".length);
          return {
            pull: (message: Pull) => count(this.#pull(cell, message)),
            maintain: () => {
              this.woken.set(cell, (this.woken.get(cell) ?? 0) + 1);
              return count({
                ...IDLE,
                scrub: { isDue: this.isScrubDue, findings: 0 },
                state: "ACTIVE",
                reported: null,
                removed: null,
              });
            },
            scrub: () => count(this.#step()),
          };
        },
      },
    } as unknown as Env;
  }

  #step(): Pick<ScrubStatus, "running"> {
    this.steps += 1;
    return { running: {} as ScrubPass };
  }

  #pull(cell: string, { after, through, has, limit }: Pull): PullAnswer {
    const open = this.open.get(cell) ?? 0;
    this.pages.set(cell, (this.pages.get(cell) ?? 0) + 1);
    const last = Math.min(open, through ?? Infinity);
    const end = Math.min(last, after + limit);
    const granted = Array.from({ length: end - after }, (_, n) => openLease(after + n + 1)).filter(
      ({ createdPosition }) => !has.some(([position]) => position === createdPosition),
    );
    return {
      point: open === 0 ? null : { incarnation: 1, position: end },
      granted,
      // A page that changes something takes as many statements as any page can.
      decided: granted.length === 0 ? [] : [-1],
      through: end < last ? end : through,
      directory: null,
    };
  }
}

const sumOf = (pages: ReadonlyMap<string, number>): number =>
  [...pages.values()].reduce((sum, count) => sum + count, 0);

const cellOf = (cell: string): Cell => ({
  cell,
  name: `Cell ${cell}`,
  address: `https://cell-${cell}.example/${"a".repeat(100)}`,
  locationHint: null,
  createdAtMs: 1,
  updatedAtMs: 1,
  removedAtMs: null,
});

const openLease = (position: number): OpenLease => ({
  lease: uuidOf(position),
  createdPosition: position,
  createdAtMs: Date.now(),
  counts: { creates: 1, destroys: 0, replaces: 0, missing: 0 },
});

describe("a run of the cron at the limits", () => {
  let fleet: FakeFleet;
  let aheadMs = 0;

  beforeEach(async () => {
    await startFleet();
    fleet = new FakeFleet();
    aheadMs = 0;
  });

  /** Runs the cron a minute after the last one, and expects it to stay within what the platform allows. */
  async function run(): Promise<CronReport> {
    aheadMs += 60_000;
    fleet.calls = 0;
    const { env, done } = faultyD1();
    const clock = { ...defaultRuntime.clock, now: () => Date.now() + aheadMs };
    const report = await runCron(fleet.env(env), clock.now(), { ...defaultRuntime, clock });
    const statements = done.reduce((sum, { sql }) => sum + sql.length, 0);
    expect(statements).toBeLessThanOrEqual(MAX_STATEMENTS);
    expect(fleet.calls + statements).toBeLessThanOrEqual(MAX_CALLS);
    return report;
  }

  const every = (values: Iterable<number>): [number, number] => {
    const all = [...values];
    return [Math.min(...all), Math.max(...all)];
  };

  test("pulls and wakes all ledgers, and wakes all shards, if nothing has changed", async () => {
    expect(await run()).toMatchObject({ cellsPulled: CELLS, cellsFailed: 0, error: null });
    expect(fleet.calls).toBe(2 * CELLS + MAX_SHARDS + 4);
    expect(fleet.pings).toBe(MAX_SHARDS);
    expect(every(fleet.woken.values())).toEqual([1, 1]);
    expect(await countRows("cells", "last_pulled_at_ms IS NOT NULL")).toBe(CELLS);
  });

  test("[Z5] makes a limited number of steps of scrubs, at least one for each part", async () => {
    fleet.isScrubDue = true;
    expect(await run()).toMatchObject({ cellsPulled: CELLS, cellsFailed: 0, error: null });
    expect(fleet.steps).toBe(2_000);
    expect(fleet.calls).toBe(2 * CELLS + MAX_SHARDS + 4 + 1 + fleet.steps);
  });

  test("[S4] gives each cell a page in any four runs, if D1 lacks many leases of all cells", async () => {
    for (let cell = 1; cell <= CELLS; cell += 1) fleet.open.set(String(cell), Infinity);
    // The pages of each cell before the first run, and after each one.
    const taken = [new Map<string, number>()];
    for (let runs = 1; runs <= 6; runs += 1) {
      const before = sumOf(fleet.pages);
      expect(await run()).toMatchObject({ cellsPulled: 0, error: null });
      expect(sumOf(fleet.pages) - before).toBeGreaterThan(270);
      expect(every(fleet.woken.values())).toEqual([runs, runs]);
      taken.push(new Map(fleet.pages));
      // Four runs have room for 1,000 pages, and cells that have waited longest come first.
      const earlier = taken.at(-5);
      if (earlier === undefined) continue;
      const waiting = [...fleet.open.keys()].filter(
        (cell) => (fleet.pages.get(cell) ?? 0) === (earlier.get(cell) ?? 0),
      );
      expect(waiting).toEqual([]);
    }
    expect(fleet.pages.size).toBe(CELLS);
    // While others wait, no cell gets a page in two runs in a row.
    const [, most] = every(taken[4]?.values() ?? []);
    expect(most).toBeLessThanOrEqual(2);
  });

  test("[S4] sixteen cells that never finish delay no other cell", async () => {
    for (let cell = 1; cell <= CELLS; cell += 1) fleet.open.set(String(cell), cell <= 16 ? Infinity : 1);
    for (let runs = 1; runs <= 4; runs += 1) await run();
    expect(await countRows("open_leases", "CAST(cell_id AS INTEGER) > 16")).toBe(CELLS - 16);
    expect(await countRows("cells", "last_pulled_at_ms IS NOT NULL")).toBe(CELLS - 16);
    // What is left of a run goes to the cells with more pages.
    await run();
    const pages = [...fleet.pages].filter(([cell]) => Number(cell) <= 16).map(([, count]) => count);
    expect(Math.min(...pages)).toBeGreaterThan(20);
  });
});
