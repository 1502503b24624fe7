/** Tests the wrapper: each fault does what its name says, and nothing else. */
import { expect, test } from "vitest";
import type { Env } from "../../../src/coordinator/env.ts";
import { env } from "../../support/workerd/api.ts";
import { faultyEnv } from "./faulty-env.ts";
import { rowsOf } from "./objects.ts";
import { armFault, type CallFault, type WriteFault } from "./armed-fault.ts";
import { prepareDatabases, startStage } from "./play.ts";
import type { Stage } from "./stage.ts";

await prepareDatabases();

/** Until a call without an answer is taken for one that gets none. A late answer fails no test. */
const SILENCE_MS = 250;
/** Faults whose call gets no answer. */
const SILENT: ReadonlySet<string> = new Set(["drop", "lose_answer", "late", "stale", "cut"]);

interface Tried {
  stage: Stage;
  wrapped: Env;
  /** `silence` for no answer, the names of an error's properties, or the answer. */
  outcome: unknown;
}

const silence = (): Promise<string> =>
  new Promise((resolve) => setTimeout(() => resolve("silence"), SILENCE_MS));

/** Freezes a cell with one fault. */
async function freeze(kind: CallFault | WriteFault): Promise<Tried> {
  const stage = startStage();
  await stage.addCell(1);
  const wrapped = faultyEnv(env, stage.deployment, "worker");
  const isOfWrite = kind === "crash_before" || kind === "crash_after" || kind === "cut";
  const armed = armFault(
    { label: isOfWrite ? "ledger1.set_state" : "worker > ledger1 setState", nth: 1 },
    { kind },
  );
  stage.deployment.begin([armed]);
  const answer = wrapped.CELL_LEDGER.getByName(`cell-${stage.deployment.cell(1)}`)
    .setState({ ...stage.envelope, state: "FROZEN", stateVersion: 0 })
    .catch((error: object) => Object.keys(error).filter((name) => name !== "remote"));
  const outcome: unknown = await (SILENT.has(kind) ? Promise.race([answer, silence()]) : answer);
  await expect.poll(() => armed.fired).toBe(true);
  return { stage, wrapped, outcome };
}

const isFrozen = async ({ stage }: Tried): Promise<boolean> =>
  (await rowsOf(stage.deployment, "ledger1", "SELECT 1 FROM meta WHERE name = 'cell_state'")).length > 0;

const writes = ({ stage }: Tried): number => stage.deployment.journal.writes.length;

const done = { ok: true, value: null };

test("drop: the call is never carried out", async () => {
  const tried = await freeze("drop");
  expect(tried.outcome).toBe("silence");
  await tried.stage.deployment.deliverLate();
  await tried.stage.deployment.deliverStale();
  expect(await isFrozen(tried)).toBe(false);
});

test("lose_answer: the call is carried out and not answered", async () => {
  const tried = await freeze("lose_answer");
  expect(tried.outcome).toBe("silence");
  await expect.poll(() => isFrozen(tried)).toBe(true);
});

test("twice: the call is carried out again when it is done, and once more at the end", async () => {
  const tried = await freeze("twice");
  expect(tried.outcome).toMatchObject(done);
  expect(writes(tried)).toBe(2);
  await tried.stage.deployment.deliverStale();
  expect(writes(tried)).toBe(3);
});

test("late: the call is carried out after its sender has given up", async () => {
  const tried = await freeze("late");
  expect(tried.outcome).toBe("silence");
  expect(await isFrozen(tried)).toBe(false);
  await tried.stage.deployment.deliverLate();
  expect(await isFrozen(tried)).toBe(true);
});

test("stale: the call is carried out after everything else", async () => {
  const tried = await freeze("stale");
  expect(tried.outcome).toBe("silence");
  await tried.stage.deployment.deliverLate();
  expect(await isFrozen(tried)).toBe(false);
  await tried.stage.deployment.deliverStale();
  expect(await isFrozen(tried)).toBe(true);
});

test.each([
  ["overloaded", "overloaded"],
  ["retryable", "retryable"],
  ["reset", "durableObjectReset"],
] as const)("%s: the call is not carried out, and its error has %s", async (kind, property) => {
  const tried = await freeze(kind);
  expect(tried.outcome).toEqual([property]);
  expect(await isFrozen(tried)).toBe(false);
});

test("reset_after: the call is carried out, then fails", async () => {
  const tried = await freeze("reset_after");
  expect(tried.outcome).toEqual(["durableObjectReset"]);
  expect(await isFrozen(tried)).toBe(true);
});

test("crash_before: the write is lost, and a new instance continues", async () => {
  const tried = await freeze("crash_before");
  expect(tried.outcome).toEqual(["durableObjectReset"]);
  expect(await isFrozen(tried)).toBe(false);
  await tried.stage.freeze(1, "freeze");
  expect(await isFrozen(tried)).toBe(true);
});

test("crash_after: the write is durable and not answered", async () => {
  const tried = await freeze("crash_after");
  expect(tried.outcome).toEqual(["durableObjectReset"]);
  expect(await isFrozen(tried)).toBe(true);
});

test("cut: the write is durable, and every object loses its memory", async () => {
  const tried = await freeze("cut");
  await expect.poll(() => isFrozen(tried)).toBe(true);
  const { wrapped, stage } = tried;
  stage.deployment.born("worker");
  const ask = async (): Promise<unknown> => wrapped.DIRECTORY.getByName("directory").snapshot(stage.envelope);
  await expect(ask()).rejects.toMatchObject({ durableObjectReset: true });
  expect(await ask()).toMatchObject({ ok: true });
});

test("D1 errors: a statement fails before or after it was carried out, or is never answered", async () => {
  const stage = startStage();
  const { DB } = faultyEnv(env, stage.deployment, "worker");
  const count = async (): Promise<number | null> =>
    env.DB.prepare("SELECT count(*) AS n FROM cron_runs WHERE run_id = ?").bind(run).first<number>("n");
  const run = crypto.randomUUID();
  const insert = (n: number): Promise<unknown> =>
    DB.prepare("INSERT INTO cron_runs (started_at_ms, run_id, scheduled_at_ms) VALUES (?, ?, 0)")
      .bind(n, run)
      .run();
  const at = (nth: number): { label: string; nth: number } => ({
    label: "worker > d1 insert cron_runs",
    nth,
  });
  stage.deployment.begin([
    armFault(at(1), { kind: "error", text: "Network connection lost.", carriedOut: false }),
    armFault(at(2), { kind: "error", text: "Exceeded maximum DB size.", carriedOut: true }),
    armFault(at(3), { kind: "lose_answer" }),
  ]);
  await expect(insert(1)).rejects.toThrow("D1_ERROR: Network connection lost.");
  expect(await count()).toBe(0);
  await expect(insert(2)).rejects.toThrow("D1_ERROR: Exceeded maximum DB size.");
  expect(await count()).toBe(1);
  expect(await Promise.race([insert(3), silence()])).toBe("silence");
  await expect.poll(count).toBe(2);
  await insert(4);
  expect(await count()).toBe(3);
});
