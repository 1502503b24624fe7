import { beforeEach, expect, test, vi, afterEach } from "vitest";
import { keyHash } from "../../../../../src/coordinator/kernel/key-hash.ts";
import { shardOf, shardsOf } from "../../../../../src/coordinator/kernel/placement.ts";
import { listAudit } from "../../../../../src/coordinator/capabilities/audit/edge/cron.ts";
import { runCron } from "../../../../../src/coordinator/cron/cron.ts";
import { untilApplied } from "../../../../support/applied.ts";
import { beginRequest, decideRequest, type OpSpec } from "../../../../support/ops.ts";
import { bucketType, bucketTypeNames } from "../../../../support/types.ts";
import { stubsOf } from "../../../../support/workerd/stubs.ts";
import { faultyD1 } from "../../../cron/faulty-d1.ts";
import {
  addCell,
  emptyD1,
  env,
  envelope,
  envWith,
  ledgerOf,
  startFleet,
  valueOf,
} from "../../../cron/fleet.ts";

beforeEach(() => startFleet("1", "2"));
afterEach(() => void vi.useRealTimers());

const directory = () => stubsOf(env).directory();

const listed = async (query: Partial<Parameters<typeof listAudit>[1]> = {}) => {
  const answer = await listAudit(env, { limit: 100, ...query });
  if (!answer.ok) throw new Error(answer.refusal.detail);
  return answer.value;
};
const targets = async (query: Parameters<typeof listed>[0] = {}): Promise<string[]> =>
  (await listed(query)).entries.map(({ target }) => target);

const kept = async (): Promise<string[]> =>
  valueOf(await directory().pullAudit({ ...envelope(), copied: null, limit: 100 })).entries.map(
    ({ target }) => target,
  );

const mint = async (keyId: string, more: { note?: string; by?: string } = {}): Promise<void> => {
  const now = Date.now();
  const key = {
    keyId,
    role: "operator" as const,
    cell: null,
    note: more.note ?? null,
    createdAtMs: now,
    expiresAtMs: now + 1e9,
    revokedAtMs: null,
  };
  const operator = { keyId: more.by ?? "operator-key", requestId: "r1", reason: "for a test" };
  valueOf(await directory().recordKey({ ...envelope(), operator, key }));
};

/** Minutes of virtual time between changes, so that their order is certain. */
async function inMinutes(...changes: (() => Promise<void>)[]): Promise<void> {
  const now = Date.now();
  for (const [n, change] of changes.entries()) {
    vi.useFakeTimers({ toFake: ["Date"], now: now + (n + 1) * 60_000 });
    await change();
  }
}

test("[O2] a run of the cron copies the entries, and the directory drops those that D1 has", async () => {
  expect(await listed()).toEqual({ entries: [], more: false, completeThroughMs: null });
  expect(await kept()).toEqual(["1", "2"]);
  const { startedAtMs, finishedAtMs } = await runCron(env, Date.now());
  expect(await kept()).toEqual([]);
  const { entries, completeThroughMs } = await listed();
  expect(entries.map(({ target }) => target).toSorted()).toEqual(["1", "2"]);
  expect(entries[0]).toMatchObject({
    part: "directory",
    action: "add_cell",
    keyId: "operator-key",
    requestId: "request-1",
    reason: null,
    before: null,
  });
  expect(completeThroughMs).toBeGreaterThanOrEqual(startedAtMs);
  expect(completeThroughMs).toBeLessThanOrEqual(finishedAtMs);
});

test("[O2] entries that D1 did not take stay, and are copied once in the end", async () => {
  for (const fault of ["before", "after"] as const) {
    const { env: failing } = faultyD1((_, sql) =>
      sql.some((text) => text.includes("INSERT INTO audit")) ? fault : undefined,
    );
    expect((await runCron(failing, Date.now())).error).toContain("D1");
    expect(await kept()).toEqual(["1", "2"]);
    expect((await listed()).completeThroughMs).toBeNull();
  }
  await runCron(env, Date.now());
  expect((await targets()).toSorted()).toEqual(["1", "2"]);
  expect(await kept()).toEqual([]);
});

test("[O2] if the directory cannot be reached, the copy is as old as before, and says so", async () => {
  await runCron(env, Date.now());
  const { completeThroughMs } = await listed();
  await mint("k1");
  const stub = directory();
  const down = new Proxy(stub, {
    get: (target, method) =>
      method === "pullAudit"
        ? () => Promise.reject(new Error("it is down"))
        : (message: unknown) =>
            (target as unknown as Record<PropertyKey, (m: unknown) => unknown>)[method]?.(message),
  });
  await runCron(envWith({ DIRECTORY: { getByName: () => down } }), Date.now());
  expect((await listed()).completeThroughMs).toBe(completeThroughMs);
  expect(await targets({ target: "k1" })).toEqual([]);
});

test("[O2] entries go when they are older than the retention, and no earlier", async () => {
  await runCron(env, Date.now());
  const day = 86_400_000;
  const now = Date.now();
  vi.useFakeTimers({ toFake: ["Date"], now: now + 364 * day });
  await runCron(env, Date.now());
  expect((await targets()).length).toBe(2);
  vi.useFakeTimers({ toFake: ["Date"], now: now + 366 * day });
  await runCron(env, Date.now());
  expect(await targets()).toEqual([]);
});

test("a listing has the latest entry first, continues after one, and filters", async () => {
  await emptyD1();
  await inMinutes(
    () => mint("k1", { note: "Ada's key" }),
    () => mint("k2", { by: "k1" }),
    () => mint("k3", { by: "k1" }),
  );
  await runCron(env, Date.now());
  expect(await targets({ action: "mint_key" })).toEqual(["k3", "k2", "k1"]);
  const first = await listed({ limit: 2 });
  expect(first.more).toBe(true);
  const last = first.entries.at(-1);
  if (last === undefined) throw new Error("no entry");
  const rest = await targets({ last: { atMs: last.atMs, id: last.id } });
  expect(rest.slice(0, 1)).toEqual(["k1"]);
  expect(rest.slice(1).toSorted()).toEqual(["1", "2"]);
  expect((await listed({ keyId: "k1" })).entries).toMatchObject([
    { target: "k3", keyNote: "Ada's key" },
    { target: "k2", keyNote: "Ada's key" },
  ]);
  expect(await targets({ cell: "2" })).toEqual(["2"]);
  expect(await targets({ target: "k2" })).toEqual(["k2"]);
  const [k3, k2] = first.entries;
  expect(await targets({ afterMs: k2?.atMs ?? 0, beforeMs: k3?.atMs ?? 0 })).toEqual(["k2"]);
});

test("[O2] a list has what a run copies while it is read, or does not claim to have it", async () => {
  await runCron(env, Date.now());
  const { completeThroughMs } = await listed();
  const { env: busy } = faultyD1(async (execution) => {
    if (execution === 1) {
      await mint("k1");
      await runCron(env, Date.now());
    }
    return undefined;
  });
  const list = valueOf(await listAudit(busy, { limit: 100 }));
  expect(list.completeThroughMs).toBe(completeThroughMs);
  expect(list.entries.map(({ target }) => target)).toContain("k1");
});

test("[O2] a run that does not visit a new cell claims no entry that its ledger has by then", async () => {
  const now = Date.now();
  vi.useFakeTimers({ toFake: ["Date"], now });
  // The run has read the list of cells by the time it prunes.
  const { env: busy } = faultyD1(async (_, sql) => {
    if (!sql.some((text) => text.includes("DELETE FROM audit"))) return undefined;
    await addCell("3");
    vi.useFakeTimers({ toFake: ["Date"], now: now + 1_000 });
    valueOf(await ledgerOf("3").setState({ ...envelope(), state: "FROZEN", stateVersion: 0 }));
    vi.useFakeTimers({ toFake: ["Date"], now: now + 2_000 });
    return undefined;
  });
  await runCron(busy, now);
  const { entries, completeThroughMs } = await listed({ action: "freeze_cell" });
  expect(entries).toEqual([]);
  expect(completeThroughMs).toBe(now);
  await runCron(env, Date.now());
  expect(await targets({ action: "freeze_cell" })).toEqual(["3"]);
});

test("[M6] the filters read their index, and the list the key of the table", async () => {
  const planOf = async (where: string): Promise<string> => {
    const sql = `EXPLAIN QUERY PLAN SELECT * FROM audit WHERE ${where} ORDER BY at_ms DESC, id DESC LIMIT 10`;
    const { results } = await env.DB.prepare(sql).all<{ detail: string }>();
    return results.map(({ detail }) => detail).join("; ");
  };
  expect(await planOf("at_ms >= 5")).toMatch(/^SEARCH audit USING PRIMARY KEY/);
  expect(await planOf("key_id = 'k'")).toMatch(/^SEARCH audit USING INDEX audit_by_key/);
  expect(await planOf("cell_id = '1'")).toMatch(/^SEARCH audit USING INDEX audit_by_cell/);
  expect(await planOf("target = 'k'")).toMatch(/^SEARCH audit USING INDEX audit_by_target/);
  for (const where of ["at_ms >= 5", "key_id = 'k'", "cell_id = '1'"])
    expect(await planOf(where)).not.toContain("TEMP B-TREE");
});

test("[O2] [K5] a run of the cron copies what operators have erased in shards", async () => {
  const operator = { keyId: "operator-key", requestId: "r1", reason: "asked to be forgotten" };
  const key = { type: 1, canonical: "ada" };
  const shard = stubsOf(env).shard(shardOf(key.type, key.canonical, shardsOf(envelope().placement)));
  const ledger = stubsOf(env).ledger("1");
  const lease = async (specs: OpSpec[]): Promise<void> => {
    const id = crypto.randomUUID();
    valueOf(await ledger.begin(beginRequest(envelope(), id, specs)));
    valueOf(await ledger.decide(decideRequest(envelope(), id, "COMMITTED")));
    await untilApplied(ledger, envelope());
  };
  const type = bucketTypeNames.find((name) => bucketType(name) === key.type) ?? "ROUTES";
  await lease([{ type, value: "ada" }]);
  await lease([{ kind: "destroy", type, value: "ada", subject: null, source: null }]);
  const message = { ...envelope(), operator, key, dryRun: false };
  expect(valueOf(await shard.erasePeriods(message))).toMatchObject({ erased: 1, changes: 2, hasMore: false });
  await runCron(env, Date.now());
  const { entries, completeThroughMs } = await listed({ action: "erase_history" });
  expect(entries).toMatchObject([
    { cellId: null, target: keyHash(key), reason: "asked to be forgotten", before: '{"periods":1}' },
  ]);
  expect(completeThroughMs).not.toBeNull();
  expect(valueOf(await shard.ping(envelope()))).toMatchObject({ auditEntries: 0 });
});
