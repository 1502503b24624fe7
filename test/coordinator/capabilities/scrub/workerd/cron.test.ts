/** Tests of the scrubs that the cron continues. */
import { runInDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import type { ScrubStatus } from "../../../../../src/coordinator/capabilities/scrub/messages.ts";
import { runCron } from "../../../../../src/coordinator/cron/cron.ts";
import { scrub } from "../../../../../src/coordinator/capabilities/scrub/edge/cron.ts";
import { stubsOf } from "../../../../support/workerd/stubs.ts";
import { shipped } from "../../../../support/types.ts";
import { begin, decide, env, envelope, ledgerOf, startFleet, uuidOf, valueOf } from "../../../cron/fleet.ts";

const DAY_MS = 86_400_000;

const shardStubs = () => [0, 1, 2, 3].map((shard) => stubsOf(env).shard(shard));

const shardStatuses = (): Promise<ScrubStatus[]> =>
  Promise.all(shardStubs().map(async (stub) => valueOf(await stub.scrubStatus(envelope()))));

const ledgerStatus = async (): Promise<ScrubStatus> => valueOf(await ledgerOf("1").scrubStatus(envelope()));

async function own(names: readonly string[]): Promise<void> {
  for (const [n, name] of names.entries()) {
    await begin("1", uuidOf(n), name);
    await decide("1", uuidOf(n), "COMMITTED");
  }
}

test("[Z5] a run scrubs each part, and the next one does not begin again", async () => {
  await startFleet("1");
  await own(["a", "b", "c", "d", "e", "f"]);
  await begin("1", uuidOf(100), "open");
  await runCron(env, Date.now());
  const passes = (await shardStatuses()).map(({ last }) => last);
  expect(passes.map((pass) => pass?.number)).toEqual([1, 1, 1, 1]);
  expect(passes.reduce((sum, pass) => sum + (pass?.rows ?? 0), 0)).toBe(7);
  expect(passes.flatMap((pass) => pass?.findings ?? [])).toEqual([]);
  expect((await ledgerStatus()).last).toMatchObject({ number: 1, rows: 1 + 7, findings: [], unchecked: 0 });
  await runCron(env, Date.now());
  expect((await shardStatuses()).map(({ last }) => last)).toEqual(passes);
});

test("[Z2] a run finds a canonical form that does not fit, by the rule of its type", async () => {
  await startFleet("1");
  await own(["a", "b", "c", "d", "e", "f"]);
  const entries = shipped.select([{ kind: "bucket", name: "ROUTES" }]);
  valueOf(
    await stubsOf(env)
      .directory()
      .useTypes({ ...envelope(), entries, copiedAt: 0 }),
  );
  for (const stub of shardStubs())
    await runInDurableObject(stub, (_, { storage }) => {
      storage.sql.exec("UPDATE claim SET canonical = 'other' WHERE canonical = 'a'");
    });
  await runCron(env, Date.now() + DAY_MS);
  const counts = (await shardStatuses()).map(({ last }) => last?.counts ?? {});
  expect(counts.filter((count) => count.wrong_canonical_form === 1)).toHaveLength(1);
});

test("[Z5] a run without time says what it has left out, and each begins with another part", async () => {
  const log: [string, object][] = [];
  const stepped: string[] = [];
  let nowMs = 0;
  const status = { state: "complete", running: null, last: null } as const;
  const parts = ["shard-0", "shard-1", "ledger-1"].map((part) => ({
    part,
    work: { isDue: true, findings: 0 },
    step: async () => {
      stepped.push(part);
      // The first step of a run takes all of its time.
      nowMs += 45_000;
      return { ok: true as const, value: status };
    },
  }));
  const runAt = async (minute: number): Promise<void> => {
    nowMs = minute * 60_000;
    const runtime = {
      clock: { now: () => nowMs, after: () => () => {} },
      log: (event: string, fields: object) => log.push([event, fields]),
    };
    const objects = { directory: () => ({ types: () => ({ ok: true, value: { entries: [] } }) }) };
    const times = { scheduledAtMs: nowMs, deadlineMs: nowMs + 40_000 };
    const run = { envelope: envelope(), limits: { fanOut: 1 }, objects, runtime, ...times };
    await scrub(run as never, parts);
  };
  for (const minute of [0, 1, 2, 3]) await runAt(minute);
  expect(stepped).toEqual(["shard-0", "shard-1", "ledger-1", "shard-0"]);
  expect(log).toEqual(Array.from({ length: 4 }, () => ["scrubs_postponed", { parts: 2, due: 3 }]));
});
