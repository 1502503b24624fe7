import { beforeEach, expect, test } from "vitest";
import { runCron } from "../../../../../src/coordinator/cron/cron.ts";
import { projectionMetrics } from "../../../../../src/coordinator/capabilities/metrics/edge/cron.ts";
import { env, startDeployment } from "../../../../support/workerd/api.ts";

const NOW = 1_800_000_000_000;

beforeEach(async () => void (await startDeployment("1", "2")));

const run = (startedAtMs: number, finishedAtMs: number | null, error: string | null = null) =>
  env.DB.prepare(
    `INSERT INTO cron_runs (started_at_ms, run_id, scheduled_at_ms, finished_at_ms, cells_pulled,
                            cells_failed, error) VALUES (?, ?, ?, ?, 3, 1, ?)`,
  )
    .bind(startedAtMs, crypto.randomUUID(), startedAtMs, finishedAtMs, error)
    .run();

test("before the first run of the cron, there is nothing to tell", async () => {
  expect(await projectionMetrics(env, NOW)).toEqual({
    ok: true,
    value: {
      lastRun: null,
      failedRuns: 0,
      oldestCopyMs: null,
      cellsNeverCopied: 0,
      cellsFailed: 0,
      nextExpiryMs: { key: null, certificate: null },
      webhooks: [],
    },
  });
});

test("what came of the messages of each webhook is told", async () => {
  await env.DB.batch([
    env.DB.prepare(
      `INSERT INTO webhooks (webhook_id, url, events, thresholds, for_s, resolve_s, is_enabled, version,
                             created_at_ms, updated_at_ms, delivered, failed_attempts, given_up,
                             failing_since_ms)
       VALUES ('a', 'https://hooks.example.com/secret', '[]', '{}', 0, 0, 1, 'v', 0, 0, 5, 6, 7, ?)`,
    ).bind(NOW - 9_000),
    env.DB.prepare(
      `INSERT INTO webhook_deliveries (message_id, webhook_id, event, status, subject, body, state,
                                       created_at_ms, due_at_ms)
       SELECT value, 'a', 'cron_failed', 'firing', 'cron', '{}', iif(value = 3, 'given_up', 'pending'),
              ? - value * 1000, 0
       FROM json_each('[1,2,3]')`,
    ).bind(NOW),
  ]);
  const metrics = await projectionMetrics(env, NOW);
  expect(metrics.ok && metrics.value.webhooks).toEqual([
    {
      id: "a",
      isEnabled: true,
      delivered: 5,
      failedAttempts: 6,
      givenUp: 7,
      waiting: 2,
      oldestAgeMs: 2_000,
      failingMs: 9_000,
    },
  ]);
});

test("after a run, it tells when the run ended and that every cell was copied", async () => {
  const report = await runCron(env, NOW);
  const metrics = await projectionMetrics(env, report.finishedAtMs);
  expect(metrics).toMatchObject({
    ok: true,
    value: {
      lastRun: { finishedAtMs: report.finishedAtMs, cellsPulled: 2, cellsFailed: 0, hasFailed: false },
      failedRuns: 0,
      cellsNeverCopied: 0,
      cellsFailed: 0,
    },
  });
  expect(metrics.ok && metrics.value.oldestCopyMs).toBeGreaterThan(0);
});

test("the last finished run is told, and how many failed or were killed", async () => {
  await run(NOW - 400_000, NOW - 390_000, "D1 was down");
  await run(NOW - 300_000, null);
  await run(NOW - 200_000, NOW - 195_000);
  await run(NOW - 60_000, null);
  expect(await projectionMetrics(env, NOW)).toMatchObject({
    value: {
      lastRun: {
        startedAtMs: NOW - 200_000,
        finishedAtMs: NOW - 195_000,
        cellsPulled: 3,
        cellsFailed: 1,
        hasFailed: false,
      },
      failedRuns: 2,
    },
  });
});

test("the copy that is furthest behind, and the cells with problems, are told", async () => {
  await runCron(env, NOW);
  await env.DB.batch([
    env.DB.prepare("UPDATE cells SET last_pulled_at_ms = 5000, last_error = 'x' WHERE cell_id = '1'"),
    env.DB.prepare("UPDATE cells SET last_pulled_at_ms = NULL WHERE cell_id = '2'"),
  ]);
  expect(await projectionMetrics(env, NOW)).toMatchObject({
    value: { oldestCopyMs: 5_000, cellsNeverCopied: 1, cellsFailed: 1 },
  });
});

test("the key and the certificate in use that expire next are told", async () => {
  const DAY_MS = 86_400_000;
  const certificate = (id: string, lifeMs: number, expiresAtMs: number, usedMs: number) =>
    env.DB.prepare(
      `INSERT INTO credential_uses (key_id, kind, role, issued_at_ms, expires_at_ms, first_used_at_ms,
                                    last_used_at_ms) VALUES (?, 'certificate', 'router', ?, ?, 0, ?)`,
    ).bind(id, expiresAtMs - lifeMs, expiresAtMs, usedMs);
  await env.DB.batch([
    env.DB.prepare(
      `INSERT INTO keys (key_id, position, role, created_at_ms, expires_at_ms, revoked_at_ms)
       VALUES ('expired', 1, 'router', 0, ?1 - 1, NULL), ('revoked', 2, 'router', 0, ?1 + 1, 5),
              ('next', 3, 'router', 0, ?1 + 2, NULL), ('later', 4, 'router', 0, ?1 + 3, NULL)`,
    ).bind(NOW),
    certificate("unused certificate", 90 * DAY_MS, NOW + 1, NOW - 2 * DAY_MS),
    certificate("short-lived certificate", DAY_MS, NOW + 2, NOW),
    certificate("next certificate", 14 * DAY_MS, NOW + 3, NOW - DAY_MS),
    certificate("later certificate", 90 * DAY_MS, NOW + 4, NOW),
  ]);
  expect(await projectionMetrics(env, NOW)).toMatchObject({
    value: { nextExpiryMs: { key: NOW + 2, certificate: NOW + 3 } },
  });
});

test("without its tables, D1 is down", async () => {
  await env.DB.exec("DROP TABLE cron_runs");
  expect(await projectionMetrics(env, NOW)).toMatchObject({ ok: false, refusal: { code: "UNAVAILABLE" } });
});
