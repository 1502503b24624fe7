/**
 * Two cells work and move organizations while the coordinator is killed. More of it, by hand:
 *
 *     TRANSFER_MOVES=60 TEST_SLICE=7 npx vitest run --project system test/rigs/transfers/kills.test.ts
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Random } from "../../../demo/random.ts";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { isSkipped } from "../../support/databases/available.ts";
import { startPostgres } from "../../support/databases/postgres.ts";
import type { DatabaseServer } from "../../support/databases/server.ts";
import { slice } from "../../support/slice.ts";
import { Server } from "../crash/server.ts";
import { Moves, work, type Homes } from "./moves.ts";
import { MovingCell, users } from "./moving-cell.ts";

const MOVES = Number(process.env["TRANSFER_MOVES"] ?? 9);
const SEED = slice;
const NAMES = 120;
const WORKERS = 2;
const ORGANIZATIONS = ["acme", "brew", "coda", "dove"];
/** The largest number of rows that are saved between two kills. */
const SAVED_PER_KILL = 12;
/** Time in which workers give an organization names again. */
const EMPTY_PAUSE_MS = 200;
/** However slow the machine is. */
const TEST_MS = 600_000 + 120_000 * MOVES;
const root = join(import.meta.dirname, "../../..");

describe.skipIf(isSkipped("PostgreSQL"))("organizations move while the coordinator is killed", () => {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-transfers-"));
  let postgres: DatabaseServer;
  let port: number;
  let server: Server;
  let cells: readonly [MovingCell, MovingCell];

  async function startServer(): Promise<void> {
    server = new Server({ host: "standalone", kind: "production", port, folder });
    if (!(await server.ready())) throw new Error(`the coordinator did not start: ${server.output}`);
  }

  beforeAll(async () => {
    expect(spawnSync("npm", ["run", "--silent", "build:standalone"], { cwd: root }).status).toBe(0);
    postgres = await startPostgres();
    port = await freePort();
    await startServer();
    const { url, keys } = server;
    const open = async (id: string): Promise<MovingCell> => {
      const databaseUrl = postgres.url(await postgres.createDatabase());
      const cell = new MovingCell({ id, url, key: keys.cells[id] ?? "", databaseUrl });
      await cell.install();
      return cell;
    };
    cells = [await open("1"), await open("2")];
  });

  afterAll(async () => {
    await Promise.all(cells.map((cell) => cell.stop()));
    await server.kill("group");
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Kills the coordinator again and again, each time after some more rows were saved. */
  async function killUntil(isOver: () => boolean, saved: () => number, onKill: () => void): Promise<void> {
    const random = new Random(SEED, "kills");
    while (!isOver()) {
      const next = saved() + random.between(1, SAVED_PER_KILL);
      while (!isOver() && saved() < next) await pause(20);
      await server.kill("group");
      onKill();
      await pause(random.between(0, 300));
      await startServer();
    }
  }

  /** Decides leases of calls that have got no answer, as each cell does all the time. */
  async function reconcileUntil(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      for (const { cell } of cells)
        await cell.reconcile({ commitGraceMs: 0, staleMs: 3_000, orphanMs: 3_000 }).catch(() => undefined);
      await pause(300);
    }
  }

  /** Reconciles a cell that does nothing else any more. */
  async function reconcile({ cell }: MovingCell): Promise<void> {
    const atOnce = { full: true, commitGraceMs: 0, staleMs: 0, orphanMs: 0 };
    await expect
      .poll(async () => {
        const { counters, deferred } = await cell.reconcile(atOnce);
        return counters.processed + deferred.postponed;
      })
      .toBe(0);
  }

  async function claimsOf({ client }: MovingCell): Promise<string[]> {
    const listed = await client.records.list({ sourceType: "RAILS_TABLE_USERS" }).all();
    return listed.map(({ bucket, source, scope, status }) =>
      [bucket.value, source.id, scope, status].join(" "),
    );
  }

  async function rowsOf({ orm }: MovingCell): Promise<string[]> {
    const rows = await orm.select().from(users);
    return rows.map(({ path, id, organization }) => [path, id, organization, "ACTIVE"].join(" "));
  }

  test(
    `[Y1] [Y6] every name has one owner, and the rows of both cells equal their claims (seed ${SEED})`,
    async () => {
      const homes: Homes = new Map();
      for (const [index, organization] of ORGANIZATIONS.entries()) {
        const home = cells[index % 2 === 0 ? 0 : 1];
        homes.set(organization, home);
        await home.setState(organization, "active");
      }
      let isOver = false;
      const over = (): boolean => isOver;
      /** The rows that each worker has saved. */
      const saved: number[] = [];
      const workers = cells.flatMap((cell) =>
        Array.from({ length: WORKERS }, (_, worker) => {
          const place = saved.push(0) - 1;
          const onSaved = (): void => void (saved[place] = (saved[place] ?? 0) + 1);
          return work(cell, ORGANIZATIONS, NAMES, new Random(SEED, cell.id, worker), over, onSaved);
        }),
      );
      let kills = 0;
      const savedByAll = (): number => saved.reduce((sum, each) => sum + each, 0);
      const others = [...workers, reconcileUntil(over), killUntil(over, savedByAll, () => void (kills += 1))];
      const moves = new Moves(cells, homes, new Random(SEED, "moves"));
      try {
        for (let turn = 0; turn < MOVES;)
          // The last move comes only after a kill.
          if ((turn < MOVES - 1 || kills > 0) && (await moves.move(turn))) turn += 1;
          else await pause(EMPTY_PAUSE_MS);
        while (saved.includes(0)) await pause(EMPTY_PAUSE_MS);
      } finally {
        isOver = true;
        await Promise.all(others);
      }
      for (const cell of cells) await reconcile(cell);
      const { transfers } = cells[0].client;
      const isOpen = async (): Promise<boolean> =>
        (await transfers.list().all()).some(({ state }) => state === "PREPARED" || state === "CUT");
      await expect.poll(isOpen).toBe(false);
      const names: string[] = [];
      for (const cell of cells) {
        const rows = await rowsOf(cell);
        expect((await claimsOf(cell)).toSorted()).toEqual(rows.toSorted());
        names.push(...rows.map((row) => row.split(" ")[0] ?? ""));
      }
      expect(names.length).toBeGreaterThan(0);
      expect(new Set(names).size).toBe(names.length);
      // Each organization is where the last move has left it.
      for (const [organization, home] of homes)
        for (const cell of cells)
          if (cell !== home)
            expect([organization, await cell.rowsOf(organization)]).toEqual([organization, []]);
    },
    TEST_MS,
  );
});
