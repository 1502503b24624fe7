/** Tests of the cron with cells that were removed (X5). */
import { runInDurableObject } from "cloudflare:test";
import { beforeEach, expect, test } from "vitest";
import { runCron } from "../../../../../src/coordinator/cron/cron.ts";
import { listStale } from "../../../../../src/coordinator/capabilities/stale/edge/stale.ts";
import type { Snapshot } from "../../../../../src/coordinator/kernel/directory/messages.ts";
import { stubsOf } from "../../../../support/workerd/stubs.ts";
import {
  begin,
  countRows,
  decide,
  deploymentOf,
  emptyD1,
  env,
  envelope,
  envWith,
  ledgerOf,
  startFleet,
  uuidOf,
  valueOf,
} from "../../../cron/fleet.ts";
import { restartObjects } from "../../../../support/workerd/restart.ts";
import { recordingMaintain } from "../../../cron/ledger-calls.ts";

beforeEach(() => startFleet("1", "2"));

const directory = () => stubsOf(env).directory();

/** Removes a cell as far as its ledger goes. Returns when that was. */
async function remove(cell: string): Promise<number> {
  const ledger = ledgerOf(cell);
  const status = async () => valueOf(await ledger.status(envelope()));
  const { stateVersion } = await status();
  valueOf(await ledger.setState({ ...envelope(), state: "DRAINING", stateVersion }));
  const { stateVersion: drained, position } = await status();
  valueOf(await ledger.approveRemoval({ ...envelope(), position, records: 0 }));
  const step = { ...envelope(), stateVersion: drained, limit: 100 };
  for (;;) {
    const answer = await ledger.removalStep(step);
    if (answer.ok && answer.value.end !== null) return answer.value.end.atMs;
  }
}

async function inDirectory(cell: string): Promise<Snapshot["cells"][number] | undefined> {
  return valueOf(await directory().snapshot(envelope())).cells.find((each) => each.cell === cell);
}

const inD1 = (cell: string) =>
  env.DB.prepare(
    "SELECT removed_at_ms AS removedAtMs, closed_at_ms AS closedAtMs FROM cells WHERE cell_id = ?",
  )
    .bind(cell)
    .first<{ removedAtMs: number | null; closedAtMs: number | null }>();

/** The cells whose ledgers one run wakes. */
async function visited(): Promise<string[]> {
  const { env: recording, woken } = recordingMaintain();
  await runCron(recording, Date.now());
  return [...woken].toSorted();
}

async function removeAndClose(...cells: string[]): Promise<void> {
  for (const cell of cells) await remove(cell);
  for (let run = 0; run < 4; run += 1) await runCron(env, Date.now());
  expect(await countRows("cells", "closed_at_ms IS NOT NULL")).toBe(cells.length);
}

test("[X5] tells a directory that does not know, and leaves the ledger when D1 has its entries", async () => {
  const removedAtMs = await remove("1");
  expect(await inDirectory("1")).toMatchObject({ removedAtMs: null });
  expect(await runCron(env, Date.now())).toMatchObject({ error: null });
  expect(await inDirectory("1")).toMatchObject({ removedAtMs });
  for (let run = 0; run < 3; run += 1) await runCron(env, Date.now());
  expect(await inD1("1")).toEqual({ removedAtMs, closedAtMs: expect.any(Number) as unknown });
  expect(await inD1("2")).toEqual({ removedAtMs: null, closedAtMs: null });
  const entries = await countRows("audit", "action = 'remove_cell' AND part IN ('directory', 'ledger-1')");
  expect(entries).toBe(2);
});

test("[X5] visits an unfinished ledger with each run, and the others in turn", async () => {
  await startFleet("1", "2", "3", "4");
  await removeAndClose("1", "2", "3");
  const rounds: string[][] = [];
  for (let run = 0; run < 3; run += 1) rounds.push(await visited());
  expect(rounds.every((cells) => cells.length === 2 && cells[1] === "4")).toBe(true);
  expect(new Set(rounds.map(([first]) => first))).toEqual(new Set(["1", "2", "3"]));
});

test("[X5] [O2] copies what an operator does later to the ledger of a removed cell", async () => {
  await removeAndClose("1");
  const { point } = valueOf(await ledgerOf("1").part(envelope()));
  valueOf(
    await ledgerOf("1").reconcile({
      ...envelope(),
      dryRun: false,
      declared: { incarnation: point?.incarnation ?? 0 },
      revokedKeys: [],
      removedAtMs: null,
    }),
  );
  await runCron(env, Date.now());
  expect(await countRows("audit", "action = 'reconcile_part' AND part = 'ledger-1'")).toBe(1);
});

test("[X5] [H4] a ledger that has lost its removal notices it, and so does the projection", async () => {
  await removeAndClose("1");
  await runInDurableObject(ledgerOf("1"), (_, state) => {
    state.storage.sql.exec("DELETE FROM meta WHERE name IN ('cell_state', 'removal')");
  });
  await restartObjects(env, "1", "2");
  expect(await runCron(env, Date.now())).toMatchObject({ cellsFailed: 1 });
  expect(valueOf(await ledgerOf("1").part(envelope()))).toMatchObject({ state: "lost" });
  expect(await inD1("1")).toMatchObject({ closedAtMs: null });
});

test("[X5] a directory that has lost the mark is told again, also if D1 was lost", async () => {
  await removeAndClose("1");
  const removedAtMs = (await inDirectory("1"))?.removedAtMs;
  await runInDurableObject(directory(), (_, state) => {
    state.storage.sql.exec("UPDATE cell SET removed_at_ms = NULL");
  });
  await runCron(env, Date.now());
  expect(await inDirectory("1")).toMatchObject({ removedAtMs });
  await emptyD1();
  await runInDurableObject(directory(), (_, state) => {
    state.storage.sql.exec("UPDATE cell SET removed_at_ms = NULL");
  });
  await runCron(env, Date.now());
  expect(await inDirectory("1")).toMatchObject({ removedAtMs });
});

test("[X5] without the directory, a run visits no more of them", async () => {
  await startFleet("1", "2", "3");
  await removeAndClose("1", "3");
  const refusal = { code: "UNAVAILABLE", detail: "down" };
  const refuses = async () => ({ ok: false, refusal });
  const down = { getByName: () => ({ snapshot: refuses, listKeys: refuses, compare: refuses }) };
  const { env: recording, woken } = recordingMaintain(envWith({ DIRECTORY: down }));
  await runCron(recording, Date.now());
  expect([...woken].toSorted()).toEqual(["1", "2"]);
});

test("[X5] the stale listing is as fresh as the copies of the cells that are left", async () => {
  await begin("2", uuidOf(1), "a");
  await decide("2", uuidOf(1), "COMMITTED");
  await removeAndClose("1");
  await env.DB.prepare("UPDATE cells SET last_pulled_at_ms = 1 WHERE cell_id = '1'").run();
  const query = { olderThanS: 1, limit: 10 };
  const page = valueOf(await listStale(deploymentOf(env), query));
  expect(page.lastPulledAtMs).toBeGreaterThan(1);
});
