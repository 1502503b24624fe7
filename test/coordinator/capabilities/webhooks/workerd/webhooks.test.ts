import { beforeEach, describe, expect, test } from "vitest";
import type { Secrets } from "../../../../../src/coordinator/auth/secrets.ts";
import type { CronRun } from "../../../../../src/coordinator/cron/cron-run.ts";
import { Database, type Orm, type Statements } from "../../../../../src/coordinator/d1/database.ts";
import { deliver } from "../../../../../src/coordinator/capabilities/webhooks/edge/deliver.ts";
import { evaluate } from "../../../../../src/coordinator/capabilities/webhooks/edge/evaluate.ts";
import { giveUpOld } from "../../../../../src/coordinator/capabilities/webhooks/edge/give-up.ts";
import { notify } from "../../../../../src/coordinator/capabilities/webhooks/edge/notify.ts";
import type { RunFacts } from "../../../../../src/coordinator/capabilities/webhooks/edge/rules/rule.ts";
import type { Sender } from "../../../../../src/coordinator/capabilities/webhooks/edge/send.ts";
import {
  addWebhook,
  beginTest,
  listWebhooks,
  removeWebhook,
  type Webhook,
} from "../../../../../src/coordinator/capabilities/webhooks/edge/store.ts";
import { configOf } from "../../../../../src/coordinator/env.ts";
import { KnownPlacement } from "../../../../../src/coordinator/isolate/known-placement.ts";
import { objectsOf } from "../../../../../src/coordinator/objects/objects.ts";
import { defaultRuntime, type Runtime } from "../../../../../src/coordinator/runtime.ts";
import { operator } from "../../../../support/ops.ts";
import { faultyD1 } from "../../../cron/faulty-d1.ts";
import { env, envelope, envWith, startFleet, valueOf } from "../../../cron/fleet.ts";

beforeEach(() => startFleet("1"));

const NOW = Date.parse("2026-11-20T12:00:00Z");
const LONG_AGO = NOW - 3_600_000;

/** A clock that stands still until it is moved. */
function stoppedClock() {
  const clock = { now: () => time.nowMs, after: defaultRuntime.clock.after };
  const time = { nowMs: NOW };
  return { clock, pass: (ms: number) => void (time.nowMs += ms) };
}

/** Calls `before` and `after` around each access to D1, with its name. */
class WatchedDatabase extends Database {
  before: (name: string) => Promise<unknown> = async () => {};
  after: (name: string) => void = () => {};

  override async run<T>(name: string, work: (orm: Orm) => Promise<T>, ...rest: [number?, Statements?]) {
    await this.before(name);
    const result = await super.run(name, work, ...rest);
    this.after(name);
    return result;
  }
}

function runOf(clock: Runtime["clock"] = stoppedClock().clock, database = new WatchedDatabase(env)) {
  const run: CronRun = {
    placement: new KnownPlacement(configOf(env).initialShards),
    envelope: envelope(),
    limits: configOf(env).limits,
    objects: objectsOf(env, configOf(env)),
    database,
    runtime: { ...defaultRuntime, clock, log: () => {} },
    scheduledAtMs: NOW,
    deadlineMs: NOW + 45_000,
    reservedStatements: 0,
  };
  return { run, database };
}

const factsOf = (
  lost: readonly string[] = [],
  intact: readonly string[] = [],
  nowMs: number = NOW,
): RunFacts => ({
  nowMs,
  error: null,
  cellsFailed: 0,
  authorities: [],
  stale: new Map(),
  statuses: new Map(),
  parts: new Map([
    ...lost.map((part) => [part, true] as const),
    ...intact.map((part) => [part, false] as const),
  ]),
});

const change = (atMs = NOW) => ({ operator, auditId: crypto.randomUUID(), atMs });

async function add(id: string, more: Partial<Webhook> = {}): Promise<Webhook> {
  const webhook: Webhook = {
    webhookId: id,
    url: "https://hooks.example.com/a",
    events: ["history_lost"],
    thresholds: {},
    forS: 60,
    resolveS: 60,
    isEnabled: true,
    version: `version ${id}`,
    createdAtMs: NOW,
    updatedAtMs: NOW,
    delivered: 0,
    failedAttempts: 0,
    givenUp: 0,
    failingSinceMs: null,
    lastError: null,
    ...more,
  };
  valueOf(await addWebhook(new Database(env), webhook, change(), configOf(env).limits));
  return webhook;
}

const stored = async <T>(query: string): Promise<T[]> => (await env.DB.prepare(query).all<T>()).results;

const insertAlert = (
  webhook: string,
  subject: string,
  state: string,
  clearedMs: number | null,
  event = "history_lost",
) =>
  env.DB.prepare(
    `INSERT INTO webhook_alerts (webhook_id, event, subject, episode, state, held_since_ms, cleared_since_ms,
                                 seen_at_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  )
    .bind(webhook, event, subject, `${webhook}-${subject}`, state, LONG_AGO, clearedMs, NOW - 60_000)
    .run();

const insertMessages = (webhook: string, count: number) =>
  env.DB.prepare(
    `INSERT INTO webhook_deliveries (message_id, webhook_id, event, status, subject, body, state,
                                     created_at_ms, due_at_ms)
     SELECT ?1 || value, ?1, 'history_lost', 'firing', 'x', '{}', 'pending', ?2, ?2 FROM json_each(?3)`,
  )
    .bind(webhook, LONG_AGO, JSON.stringify([...Array(count).keys()]))
    .run();

const secrets: Secrets = { current: "s".repeat(40), previous: undefined };

const senderOf = (run: CronRun, fetch: Sender["fetch"]): Sender => ({
  secrets,
  clock: run.runtime.clock,
  hosts: "public",
  timeoutMs: 1_000,
  fetch,
});

describe("alerts", () => {
  test("an alert that holds again meanwhile is not resolved by a run that read it before", async () => {
    const webhook = await add("a");
    await insertAlert("a", "shard-1", "firing", LONG_AGO);
    const { run, database } = runOf();
    database.before = async (name) => {
      if (name === "save alerts")
        await env.DB.prepare("UPDATE webhook_alerts SET cleared_since_ms = ?")
          .bind(NOW - 1_000)
          .run();
    };
    valueOf(await evaluate(run, [webhook], factsOf([], ["shard-1"])));
    expect(await stored("SELECT state, cleared_since_ms AS ms FROM webhook_alerts")).toEqual([
      { state: "firing", ms: NOW - 1_000 },
    ]);
    expect(await stored("SELECT 1 FROM webhook_deliveries")).toEqual([]);
    database.before = async () => {};
    await env.DB.prepare("UPDATE webhook_alerts SET cleared_since_ms = ?").bind(LONG_AGO).run();
    valueOf(await evaluate(run, [webhook], factsOf([], ["shard-1"])));
    expect(await stored("SELECT status FROM webhook_deliveries")).toEqual([{ status: "resolved" }]);
    expect(await stored("SELECT 1 FROM webhook_alerts")).toEqual([]);
  });

  test("an endpoint whose queue is full takes no turn from the others", async () => {
    const endpoints = [await add("dead"), await add("well")];
    await insertMessages("dead", configOf(env).limits.webhookQueue);
    const parts = [...Array(2_500).keys()].map((n) => `shard-${n}`);
    await env.DB.prepare(
      `INSERT INTO webhook_alerts (webhook_id, event, subject, episode, state, held_since_ms, seen_at_ms)
       SELECT 'dead', 'history_lost', value, 'e' || value, 'pending', ?1, ?3 FROM json_each(?2)`,
    )
      .bind(LONG_AGO, JSON.stringify(parts), NOW - 60_000)
      .run();
    await insertAlert("well", "shard-0", "pending", null);
    const { run, database } = runOf();
    valueOf(await evaluate(run, endpoints, factsOf(parts)));
    expect(await stored("SELECT subject FROM webhook_deliveries WHERE webhook_id = 'well'")).toEqual([
      { subject: "shard-0" },
    ]);
    expect(database.statementsLeft).toBeGreaterThan(900);
  });

  test("alerts of a cell that is gone are resolved", async () => {
    const webhook = await add("a", { events: ["history_lost", "stale_leases"], resolveS: 0 });
    await insertAlert("a", "ledger-9", "firing", LONG_AGO);
    await insertAlert("a", "9", "firing", LONG_AGO, "stale_leases");
    valueOf(await evaluate(runOf().run, [webhook], factsOf()));
    expect(await stored("SELECT subject FROM webhook_deliveries ORDER BY subject")).toEqual([
      { subject: "9" },
      { subject: "ledger-9" },
    ]);
  });

  test("alerts of keys are limited, and all of them end", async () => {
    const webhook = await add("a", { events: ["credential_expiring"], forS: 0, resolveS: 0 });
    await env.DB.prepare(
      `INSERT INTO keys (key_id, position, role, created_at_ms, expires_at_ms)
       SELECT 'key-' || value, value, 'router', 0, ?1 + value FROM json_each(?2)`,
    )
      .bind(NOW + 3_600_000, JSON.stringify([...Array(1_400).keys()]))
      .run();
    const { run } = runOf();
    const evaluateAt = async (nowMs: number): Promise<void> =>
      void valueOf(await evaluate(run, [webhook], factsOf([], [], nowMs)));
    const states = "SELECT state, count(*) AS n FROM webhook_alerts GROUP BY state";
    for (let minute = 0; minute < 6; minute += 1) await evaluateAt(NOW + minute * 60_000);
    expect(await stored(states)).toEqual([{ state: "firing", n: 1_000 }]);
    await env.DB.prepare("DELETE FROM webhook_deliveries").run();
    await env.DB.prepare("UPDATE keys SET revoked_at_ms = 1 WHERE position < 300").run();
    for (let minute = 6; minute < 10; minute += 1) await evaluateAt(NOW + minute * 60_000);
    expect(await stored(states)).toEqual([{ state: "firing", n: 1_000 }]);
    expect(await stored("SELECT status, count(*) AS n FROM webhook_deliveries GROUP BY status")).toEqual([
      { status: "firing", n: 300 },
      { status: "resolved", n: 300 },
    ]);
  });

  test("the credentials that have alerts are looked up by their ids", async () => {
    const webhook = await add("a", {
      events: ["credential_expiring"],
      thresholds: { credential_expiring: 400 },
    });
    const { env: watched, done } = faultyD1();
    const { run } = runOf();
    valueOf(await evaluate({ ...run, database: new Database(watched) }, [webhook], factsOf()));
    const statement = done.flatMap(({ sql }) => sql).find((sql) => sql.includes("select distinct")) ?? "";
    const { results } = await env.DB.prepare(`EXPLAIN QUERY PLAN ${statement}`)
      .bind(...Array.from(statement.matchAll(/\?/g), () => 1))
      .all<{ detail: string }>();
    const plan = results.map(({ detail }) => detail).join("\n");
    expect(plan).toContain("SEARCH keys USING PRIMARY KEY (key_id=?)");
    expect(plan).toContain("SEARCH credential_uses USING PRIMARY KEY (key_id=?)");
    expect(plan).not.toContain("MATERIALIZE");
  });

  test("[X5] the keys of a removed cell get no alert, and an alert that they have ends", async () => {
    const webhook = await add("a", { events: ["credential_expiring"], forS: 0, resolveS: 0 });
    await env.DB.prepare(
      `INSERT INTO cells (cell_id, name, address, created_at_ms, updated_at_ms)
       VALUES ('1', 'one', 'https://one.example', 0, 0), ('2', 'two', 'https://two.example', 0, 0)`,
    ).run();
    await env.DB.prepare(
      `INSERT INTO keys (key_id, position, role, cell_id, created_at_ms, expires_at_ms)
       VALUES ('one', 1, 'cell', '1', 0, ?1), ('two', 2, 'cell', '2', 0, ?1),
              ('r', 3, 'router', NULL, 0, ?1)`,
    )
      .bind(NOW + 3_600_000)
      .run();
    const { run } = runOf();
    const evaluateAt = async (minute: number): Promise<void> =>
      void valueOf(await evaluate(run, [webhook], factsOf([], [], NOW + minute * 60_000)));
    const firing = async () =>
      (await stored<{ subject: string }>("SELECT subject FROM webhook_alerts ORDER BY subject")).map(
        ({ subject }) => subject,
      );
    await env.DB.prepare("UPDATE cells SET removed_at_ms = 1 WHERE cell_id = '1'").run();
    for (let minute = 0; minute < 2; minute += 1) await evaluateAt(minute);
    expect(await firing()).toEqual(["r", "two"]);
    await env.DB.prepare("UPDATE cells SET removed_at_ms = 1").run();
    for (let minute = 2; minute < 4; minute += 1) await evaluateAt(minute);
    expect(await firing()).toEqual(["r"]);
  });

  test("[C8] stale leases are what ledgers say, which leave out renewed ones", async () => {
    const webhook = await add("a", { events: ["stale_leases"], forS: 0, resolveS: 0 });
    const { run } = runOf();
    let minute = 0;
    const firing = async (stale: number | null): Promise<unknown[]> => {
      for (let runs = 0; runs < 2; runs += 1) {
        const facts = { ...factsOf([], [], NOW + minute * 60_000), stale: new Map([["1", stale]]) };
        valueOf(await evaluate(run, [webhook], facts));
        minute += 1;
      }
      return stored("SELECT subject FROM webhook_alerts WHERE state = 'firing'");
    };
    expect(await firing(0)).toEqual([]);
    // A ledger that does not answer starts no alert, and ends none.
    expect(await firing(null)).toEqual([]);
    expect(await firing(1)).toEqual([{ subject: "1" }]);
    expect(await firing(null)).toEqual([{ subject: "1" }]);
    expect(await firing(0)).toEqual([]);
  });

  test("certificates in use and authorities are told before they expire", async () => {
    const webhook = await add("a", { events: ["credential_expiring"], forS: 0, resolveS: 0 });
    const DAY_MS = 86_400_000;
    const insert = (
      id: string,
      { kind = "certificate", cell = "1", lifeDays = 90, restDays = 6, usedHoursAgo = 1 } = {},
    ) =>
      env.DB.prepare(
        `INSERT INTO credential_uses (key_id, kind, role, cell_id, issued_by, name, issued_at_ms,
                                      expires_at_ms, first_used_at_ms, last_used_at_ms)
         VALUES (?1, ?2, 'cell', ?3, 'ca', 'cell-1.example', ?4, ?5, 0, ?6)`,
      ).bind(
        id,
        kind,
        cell,
        NOW + (restDays - lifeDays) * DAY_MS,
        NOW + restDays * DAY_MS,
        NOW - usedHoursAgo * 3_600_000,
      );
    await env.DB.batch([
      insert("soon"),
      insert("later", { restDays: 8 }),
      insert("replaced", { usedHoursAgo: 25 }),
      insert("short-lived", { lifeDays: 13 }),
      insert("expired", { restDays: -1 }),
      insert("revoked"),
      insert("of-removed", { cell: "2" }),
      insert("a-key", { kind: "key" }),
      env.DB.prepare(
        `INSERT INTO keys (key_id, position, role, created_at_ms, expires_at_ms, revoked_at_ms)
         VALUES ('revoked', 1, 'cell', 0, ?, 1)`,
      ).bind(NOW + DAY_MS),
      env.DB.prepare(
        `INSERT INTO cells (cell_id, name, address, created_at_ms, updated_at_ms, removed_at_ms)
         VALUES ('2', 'two', 'https://two.example', 0, 0, 1)`,
      ),
    ]);
    const { run } = runOf();
    let authorities: RunFacts["authorities"] = [
      { name: "new", expiresAtMs: NOW + 90 * DAY_MS },
      { name: "old", expiresAtMs: NOW + 5 * DAY_MS },
      { name: "over", expiresAtMs: NOW - DAY_MS },
    ];
    let minute = 0;
    const firing = async (): Promise<unknown[]> => {
      for (let runs = 0; runs < 2; runs += 1) {
        const facts = { ...factsOf([], [], NOW + minute * 60_000), authorities };
        valueOf(await evaluate(run, [webhook], facts));
        minute += 1;
      }
      return stored("SELECT subject FROM webhook_alerts WHERE state = 'firing' ORDER BY subject");
    };
    const old = { subject: "authority-old" };
    const over = { subject: "authority-over" };
    expect(await firing()).toEqual([old, over, { subject: "soon" }]);
    const texts = await stored<{ body: string }>("SELECT body FROM webhook_deliveries ORDER BY subject");
    expect(texts.map(({ body }) => body)).toEqual([
      expect.stringContaining("The certificate of the authority old expires at "),
      expect.stringContaining("The certificate of the authority over expired at "),
      expect.stringContaining("The cell certificate soon of cell 1 expires at "),
    ]);
    // Without the directory, nothing is known of the authorities.
    authorities = null;
    await env.DB.prepare("UPDATE credential_uses SET last_used_at_ms = 0").run();
    expect(await firing()).toEqual([old, over]);
    authorities = [{ name: "new", expiresAtMs: NOW + 90 * DAY_MS }];
    expect(await firing()).toEqual([]);
  });

  test("what was before a gap without runs does not count", async () => {
    const webhook = await add("a", { forS: 120, resolveS: 120 });
    const { run } = runOf();
    const evaluateAt = async (minute: number, isLost: boolean): Promise<string[]> => {
      const parts = ["shard-1"];
      const facts = factsOf(isLost ? parts : [], isLost ? [] : parts, NOW + minute * 60_000);
      valueOf(await evaluate(run, [webhook], facts));
      const messages = await stored<{ status: string }>(
        "SELECT status FROM webhook_deliveries ORDER BY status",
      );
      return messages.map(({ status }) => status);
    };
    await evaluateAt(0, true);
    expect(await evaluateAt(4, true)).toEqual([]);
    // Nothing is known about the part in these runs.
    for (let minute = 5; minute < 9; minute += 1)
      valueOf(await evaluate(run, [webhook], factsOf([], [], NOW + minute * 60_000)));
    expect(await evaluateAt(9, true)).toEqual([]);
    expect(await evaluateAt(12, true)).toEqual(["firing"]);
    await evaluateAt(13, false);
    expect(await evaluateAt(17, false)).toEqual(["firing"]);
    expect(await evaluateAt(18, false)).toEqual(["firing"]);
    expect(await evaluateAt(19, false)).toEqual(["firing", "resolved"]);
  });

  test("endpoints above a lowered limit are served", async () => {
    await add("a", { url: "http://hooks.example.com/" });
    await add("b", { url: "http://hooks.example.com/" });
    await insertMessages("a", 1);
    await insertMessages("b", 1);
    const { run } = runOf();
    await notify(
      envWith({ LEASEHOLD_WEBHOOKS: "1" }),
      { ...run, limits: { ...run.limits, webhooks: 1 } },
      factsOf(),
    );
    expect(await stored("SELECT failed_attempts AS failed FROM webhooks")).toEqual([
      { failed: 1 },
      { failed: 1 },
    ]);
  });
});

test("the number of endpoints is limited", async () => {
  const { limits } = configOf(envWith({ LEASEHOLD_WEBHOOKS: "1" }));
  const webhook = await add("a");
  const second = { ...webhook, webhookId: "b", version: "version b" };
  expect(await addWebhook(new Database(env), second, change(), limits)).toMatchObject({
    refusal: { code: "RESOURCE_EXHAUSTED" },
  });
  expect(valueOf(await listWebhooks(new Database(env)))).toHaveLength(1);
});

const OPEN =
  "SELECT count(*) AS n FROM webhook_deliveries WHERE state = 'pending' AND claimed_by IS NOT NULL";

describe("delivery", () => {
  test("what was sent is recorded, even if other accesses use up the statements meanwhile", async () => {
    const webhook = await add("a");
    await insertMessages("a", 1);
    const { run, database } = runOf();
    await deliver(
      run,
      [webhook],
      senderOf(run, async () => {
        database.reserve(database.statementsLeft);
        return new Response(null, { status: 204 });
      }),
    );
    expect(await stored("SELECT state, attempts FROM webhook_deliveries")).toEqual([
      { state: "delivered", attempts: 1 },
    ]);
  });

  test("messages that a run has no time for are free for the next run", async () => {
    const webhook = await add("a");
    await insertMessages("a", 3);
    const { clock, pass } = stoppedClock();
    const { run, database } = runOf(clock);
    database.after = (name) => {
      if (name === "claim messages") pass(20_000);
    };
    let sent = 0;
    const fetch = async (): Promise<Response> => {
      sent += 1;
      return new Response(null, { status: 200 });
    };
    await deliver(run, [webhook], senderOf(run, fetch));
    expect(sent).toBe(0);
    expect(await stored(OPEN)).toEqual([{ n: 0 }]);
    database.after = () => {};
    await deliver(run, [webhook], senderOf(run, fetch));
    expect(sent).toBe(3);
  });

  test("no attempt lasts longer than what is left of its endpoint's time", async () => {
    const webhook = await add("a");
    await insertMessages("a", 3);
    const { run } = runOf();
    const limitsMs: number[] = [];
    let nowMs = NOW;
    // The first attempt takes 4 of the 5 seconds, the second one gets no answer.
    const clock: Runtime["clock"] = {
      now: () => nowMs,
      after: (delayMs, then) => {
        limitsMs.push(delayMs);
        if (limitsMs.length === 1) nowMs += 4_000;
        else queueMicrotask(then);
        return () => {};
      },
    };
    const fetch = (): Promise<Response> =>
      limitsMs.length === 0 ? Promise.resolve(new Response(null, { status: 200 })) : new Promise(() => {});
    const sender = { ...senderOf(run, fetch), clock, timeoutMs: 4_500 };
    await deliver({ ...run, runtime: { ...run.runtime, clock } }, [webhook], sender);
    expect(limitsMs).toEqual([4_500, 1_000]);
    // The second one says nothing about the endpoint, so it is as if it had not been made.
    expect(await stored("SELECT state, attempts FROM webhook_deliveries ORDER BY message_id")).toEqual([
      { state: "delivered", attempts: 1 },
      { state: "pending", attempts: 0 },
      { state: "pending", attempts: 0 },
    ]);
    expect(await stored(OPEN)).toEqual([{ n: 0 }]);
  });

  test.each([
    { what: "disabled", change: "UPDATE webhooks SET is_enabled = 0", sentTo: [] },
    { what: "removed", change: "DELETE FROM webhooks", sentTo: [] },
    {
      what: "changed",
      change: "UPDATE webhooks SET url = 'https://b.example.com/'",
      sentTo: ["https://b.example.com/"],
    },
  ])("an endpoint that was $what since the run began", async ({ change: statement, sentTo }) => {
    const webhook = await add("a");
    await insertMessages("a", 1);
    await env.DB.prepare(statement).run();
    const { run } = runOf();
    const addresses: unknown[] = [];
    const fetch: Sender["fetch"] = async (url) => {
      addresses.push(url);
      return new Response(null, { status: 200 });
    };
    await deliver(run, [webhook], senderOf(run, fetch));
    expect(addresses).toEqual(sentTo);
  });

  test("messages that are too old are given up, also those of a disabled endpoint", async () => {
    await add("a", { isEnabled: false });
    await insertMessages("a", 150);
    const { run } = runOf();
    const giveUpAfter = (webhookRetryS: number): Promise<unknown> =>
      giveUpOld({ ...run, limits: { ...run.limits, webhookRetryS } });
    await giveUpAfter(3_601);
    expect(await stored("SELECT DISTINCT state FROM webhook_deliveries")).toEqual([{ state: "pending" }]);
    await giveUpAfter(3_600);
    await giveUpAfter(3_600);
    expect(await stored("SELECT given_up AS n FROM webhooks")).toEqual([{ n: 150 }]);
    expect(
      await stored("SELECT state, last_error AS error, count(*) AS n FROM webhook_deliveries GROUP BY 1, 2"),
    ).toEqual([{ state: "given_up", error: "too old to be sent", n: 100 }]);
  });

  test("a slow endpoint leaves time for the others", async () => {
    const slow = await add("slow");
    await insertMessages("slow", 20);
    const { clock, pass } = stoppedClock();
    const { run } = runOf(clock);
    await deliver(
      run,
      [slow],
      senderOf(run, async () => {
        pass(2_000);
        return new Response(null, { status: 200 });
      }),
    );
    expect(await stored("SELECT count(*) AS n FROM webhook_deliveries WHERE state = 'delivered'")).toEqual([
      { n: 3 },
    ]);
    expect(await stored(OPEN)).toEqual([{ n: 0 }]);
  });
});

describe("test messages", () => {
  test("only the latest 100 are kept", async () => {
    const webhook = await add("a");
    for (let n = 0; n < 103; n += 1) {
      const message = { messageId: `m${String(n).padStart(3, "0")}`, body: "{}" };
      valueOf(await beginTest(new Database(env), webhook, message, change(NOW + n)));
    }
    expect(await stored("SELECT count(*) AS n, min(message_id) AS first FROM webhook_deliveries")).toEqual([
      { n: 100, first: "m003" },
    ]);
  });

  test("[O1] none is stored for a webhook that was removed or changed meanwhile", async () => {
    const webhook = await add("a");
    const database = new Database(env);
    const message = { messageId: "m", body: "{}" };
    expect(await beginTest(database, { ...webhook, version: "earlier" }, message, change())).toMatchObject({
      ok: false,
      refusal: { reason: "CONCURRENT_CHANGE" },
    });
    valueOf(await removeWebhook(database, webhook, change()));
    expect(await beginTest(database, webhook, message, change())).toMatchObject({ ok: false });
    expect(valueOf(await listWebhooks(database))).toEqual([]);
    expect(await stored("SELECT 1 FROM webhook_deliveries")).toEqual([]);
    expect(await stored("SELECT action FROM audit ORDER BY action")).toEqual([
      { action: "add_webhook" },
      { action: "remove_webhook" },
    ]);
  });
});
