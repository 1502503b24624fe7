import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { createClient } from "../../../src/users/client/index.ts";
import { startTestCoordinator, type TestCoordinator } from "../../../src/users/testing/index.ts";

// A coordinator in this process tells real HTTP servers on loopback. Its clock is advanced, so only the time
// limit of an attempt passes in real time.

const MINUTE_MS = 60_000;
const HOLD_S = 120;

interface Received {
  headers: IncomingHttpHeaders;
  body: string;
}

type Behaviour = (response: ServerResponse, count: number) => void;

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const answer =
  (status: number, headers: Record<string, string> = {}): Behaviour =>
  (response) =>
    void response.writeHead(status, headers).end("x".repeat(100_000));

async function receiver(behaviour: Behaviour = answer(200)) {
  const received: Received[] = [];
  const state = { behaviour };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      received.push({ headers: request.headers, body: Buffer.concat(chunks).toString() });
      state.behaviour(response, received.length);
    });
  });
  await new Promise<void>((ready) => void server.listen(0, "127.0.0.1", ready));
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise<void>((done) => void server.close(() => done()));
  };
  closing.push(close);
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  return { url, received, close, become: (next: Behaviour) => void (state.behaviour = next) };
}

/** Verifies a message as standardwebhooks.com says, with nothing of Leasehold. */
function isSigned({ headers, body }: Received, secret: string): boolean {
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const signed = `${String(headers["webhook-id"])}.${String(headers["webhook-timestamp"])}.${body}`;
  const expected = createHmac("sha256", key).update(signed).digest();
  return String(headers["webhook-signature"])
    .split(" ")
    .filter((signature) => signature.startsWith("v1,"))
    .some((signature) => {
      const given = Buffer.from(signature.slice(3), "base64");
      return given.length === expected.length && timingSafeEqual(given, expected);
    });
}

interface Message {
  type: string;
  text: string;
  data: { subject: string; cell_id: string | null; value: number | null };
}

const messagesOf = (received: readonly Received[]): Message[] =>
  received.map(({ body }) => JSON.parse(body) as Message);
const typesOf = (received: readonly Received[]): string[] => messagesOf(received).map(({ type }) => type);
const idsOf = (received: readonly Received[]): string[] =>
  received.map(({ headers }) => String(headers["webhook-id"]));

interface Webhook {
  id: string;
  failing_since: string | null;
  last_error: string | null;
  delivered: number;
  failed_attempts: number;
  given_up: number;
  queued: number;
}

interface Delivery {
  message_id: string;
  state: string;
  attempts: number;
  http_status: number | null;
  last_error: string | null;
}

class World {
  readonly coordinator: TestCoordinator;

  constructor(coordinator: TestCoordinator) {
    this.coordinator = coordinator;
  }

  async call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await this.coordinator.fetch(`${this.coordinator.url}/v1/admin/webhooks${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.coordinator.keys.operator}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answered = await response.json();
    if (!response.ok) throw new Error(JSON.stringify(answered));
    return answered as T;
  }

  add = (url: string, more: object = {}) =>
    this.call<{ webhook: Webhook; secret: string }>("POST", "", {
      url,
      events: ["stale_leases"],
      for_s: HOLD_S,
      resolve_s: HOLD_S,
      ...more,
    });

  list = async (): Promise<Webhook[]> => (await this.call<{ webhooks: Webhook[] }>("GET", "")).webhooks;

  only = async (): Promise<Webhook> => {
    const [webhook] = await this.list();
    if (webhook === undefined) throw new Error("there is no webhook");
    return webhook;
  };

  deliveries = async (id: string): Promise<Delivery[]> =>
    (await this.call<{ deliveries: Delivery[] }>("GET", `/${id}/deliveries`)).deliveries;

  /** The cron runs, then time passes. */
  async minutes(count: number, stepMs = MINUTE_MS): Promise<void> {
    for (let minute = 0; minute < count; minute += 1) {
      await this.coordinator.cron();
      await this.coordinator.advance(stepMs);
    }
  }

  /** Cell 1 leaves a lease open for so long that it is stale. */
  async leaveStaleLease(): Promise<() => Promise<void>> {
    const { url, fetch, keys } = this.coordinator;
    const client = createClient({ url, fetch, key: keys.cell("1"), cell: "1" });
    const lease = await client.leases.begin({
      creates: [
        {
          bucket: { type: "ROUTES", value: "stale" },
          subject: { type: "USER", id: "1" },
          source: { type: "RAILS_TABLE_USERS", id: "1" },
        },
      ],
    });
    await this.coordinator.cron();
    await this.coordinator.advance(11 * MINUTE_MS);
    return async () => void (await client.leases.rollback(lease.uuid));
  }
}

async function world(variables: Record<string, string> = {}): Promise<World> {
  const coordinator = await startTestCoordinator({
    variables: {
      LEASEHOLD_WEBHOOK_HOSTS: "any",
      LEASEHOLD_WEBHOOK_TIMEOUT_MS: "10000",
      ...variables,
    },
  });
  closing.push(() => coordinator.close());
  return new World(coordinator);
}

test("an alert fires and is resolved once each, with hysteresis and signatures", async () => {
  const at = await world();
  const to = await receiver();
  const { secret } = await at.add(to.url);
  const end = await at.leaveStaleLease();
  await at.minutes(2);
  expect(to.received).toHaveLength(0);
  // Runs may be repeated or overlap.
  await Promise.all([at.coordinator.cron(), at.coordinator.cron(), at.coordinator.cron()]);
  await at.minutes(5);
  expect(typesOf(to.received)).toEqual(["leasehold.stale_leases.firing"]);
  await end();
  await at.minutes(2);
  expect(to.received).toHaveLength(1);
  await Promise.all([at.coordinator.cron(), at.coordinator.cron()]);
  await at.minutes(5);
  expect(typesOf(to.received)).toEqual(["leasehold.stale_leases.firing", "leasehold.stale_leases.resolved"]);
  expect(to.received.map((each) => isSigned(each, secret))).toEqual([true, true]);
  expect(to.received.some((each) => isSigned({ ...each, body: "{}" }, secret))).toBe(false);
  expect(messagesOf(to.received)[0]).toMatchObject({
    text: "[Leasehold] Firing: Cell 1 has 1 stale lease.",
    data: { subject: "1", cell_id: "1", value: 1 },
  });
  expect(await at.only()).toMatchObject({ delivered: 2, failed_attempts: 0, queued: 0, failing_since: null });
});

test("a condition that ends before its time sends nothing", async () => {
  const at = await world();
  const to = await receiver();
  await at.add(to.url);
  const end = await at.leaveStaleLease();
  await at.minutes(1);
  await end();
  await at.minutes(10);
  expect(to.received).toHaveLength(0);
});

test("a condition that held before a gap without runs must hold again for its time", async () => {
  const at = await world();
  const to = await receiver();
  await at.add(to.url);
  await at.leaveStaleLease();
  await at.minutes(1, 30 * MINUTE_MS);
  await at.minutes(2);
  expect(to.received).toHaveLength(0);
  await at.minutes(1);
  expect(typesOf(to.received)).toEqual(["leasehold.stale_leases.firing"]);
});

test("an endpoint can choose its threshold and its events", async () => {
  const at = await world();
  const to = await receiver();
  await at.add(to.url, { thresholds: { stale_leases: 2 } });
  await at.add(to.url, { events: ["cron_failed"] });
  await at.leaveStaleLease();
  await at.minutes(6);
  expect(to.received).toHaveLength(0);
});

test("a cell that stops reporting, and drift that it has reported", async () => {
  const at = await world();
  const to = await receiver();
  await at.add(to.url, { events: ["cell_silent", "cell_drift"], thresholds: { cell_drift: 3 }, for_s: 0 });
  const { url, fetch, keys } = at.coordinator;
  const client = createClient({ url, fetch, key: keys.cell("1"), cell: "1" });
  const report = async (missing: number): Promise<void> => {
    const counts = { rows: 9, claims: 9, equal_ranges: 1, records: 9, missing, extra: 1 };
    const verification = { status: "done" as const, ended_ago_ms: 0, counts };
    await client.cells.reportStatus({ sdk: { name: "test", version: "1" }, verification });
  };
  await report(2);
  await at.minutes(3);
  expect(to.received).toHaveLength(0);
  await report(3);
  await at.minutes(3);
  expect(messagesOf(to.received)).toMatchObject([
    {
      type: "leasehold.cell_drift.firing",
      text: "[Leasehold] Firing: The last verification of cell 1 found 3 missing, 1 extra.",
      data: { subject: "1", cell_id: "1", value: 3 },
    },
  ]);
  await at.minutes(16);
  expect(typesOf(to.received).slice(1)).toEqual(["leasehold.cell_silent.firing"]);
  await report(0);
  await at.minutes(5);
  expect(typesOf(to.received).slice(2).toSorted()).toEqual([
    "leasehold.cell_drift.resolved",
    "leasehold.cell_silent.resolved",
  ]);
});

test("a contradiction fires once whatever `for_s` is, and again when there is another", async () => {
  const at = await world();
  const to = await receiver();
  await at.add(to.url, { events: ["contradiction"], for_s: 3_600 });
  const { url, fetch, keys } = at.coordinator;
  const client = createClient({ url, fetch, key: keys.cell("1"), cell: "1" });
  const contradict = (): Promise<unknown> => client.leases.commit(crypto.randomUUID()).catch(() => {});
  await at.minutes(3);
  await contradict();
  await at.minutes(4);
  expect(messagesOf(to.received)).toMatchObject([
    { type: "leasehold.contradiction.firing", data: { subject: "1", cell_id: "1", value: 1 } },
  ]);
  await at.minutes(20);
  expect(typesOf(to.received)).toEqual([
    "leasehold.contradiction.firing",
    "leasehold.contradiction.resolved",
  ]);
  await contradict();
  await at.minutes(4);
  expect(messagesOf(to.received).slice(2)).toMatchObject([
    { type: "leasehold.contradiction.firing", data: { value: 2 } },
  ]);
});

test("a key that is about to expire fires, and its revocation resolves it", async () => {
  const at = await world({ LEASEHOLD_KEY_LIFETIME_S: String(6 * 86_400) });
  const to = await receiver();
  await at.add(to.url, { events: ["credential_expiring"], for_s: 0 });
  const { url, fetch, keys } = at.coordinator;
  const client = createClient({ url, fetch, key: keys.operator });
  const key = await client.keys.mint({ role: "router", note: "a note that is not sent" });
  await at.minutes(3);
  expect(messagesOf(to.received)).toMatchObject([
    { type: "leasehold.credential_expiring.firing", data: { subject: key.id } },
  ]);
  expect(to.received[0]?.body).not.toMatch(/a note|lhk_/);
  await client.keys.revoke(key.id);
  await at.minutes(6);
  expect(typesOf(to.received)).toEqual([
    "leasehold.credential_expiring.firing",
    "leasehold.credential_expiring.resolved",
  ]);
});

test.each([
  { behaviour: "fails", become: answer(500), error: "the answer 500", httpStatus: 500 },
  {
    behaviour: "redirects",
    become: answer(302, { location: "/elsewhere" }),
    error: "a redirect (302), which is not followed",
    httpStatus: 302,
  },
  {
    behaviour: "hangs",
    become: (() => {}) as Behaviour,
    error: "no answer within 3000 ms",
    httpStatus: null,
  },
])("a receiver that $behaviour gets the same message again", async ({ become, error, httpStatus }) => {
  const at = await world({ LEASEHOLD_WEBHOOK_TIMEOUT_MS: "3000" });
  const to = await receiver(become);
  const other = await receiver();
  const { webhook, secret } = await at.add(to.url);
  await at.add(other.url);
  await at.leaveStaleLease();
  await at.minutes(3);
  expect(to.received).toHaveLength(1);
  expect(other.received).toHaveLength(1);
  expect(await at.deliveries(webhook.id)).toMatchObject([
    { state: "pending", attempts: 1, http_status: httpStatus, last_error: error },
  ]);
  expect(await at.only()).toMatchObject({ last_error: error, failed_attempts: 1, queued: 1 });
  expect((await at.only()).failing_since).not.toBeNull();
  to.become(answer(204));
  await at.minutes(3);
  expect(to.received).toHaveLength(2);
  expect(new Set(idsOf(to.received)).size).toBe(1);
  expect(to.received.every((each) => isSigned(each, secret))).toBe(true);
  expect(await at.only()).toMatchObject({ delivered: 1, failing_since: null, last_error: null, queued: 0 });
});

test("a dead receiver is tried for the stated time, and is then shown as failing", async () => {
  const at = await world({ LEASEHOLD_WEBHOOK_RETRY_S: "3600" });
  const to = await receiver();
  await to.close();
  const { webhook } = await at.add(to.url);
  await at.leaveStaleLease();
  await at.minutes(90);
  const [delivery] = await at.deliveries(webhook.id);
  expect(delivery).toMatchObject({ state: "given_up", last_error: "no connection, or it broke off" });
  // 30 s, 1, 2, 4, 8, 16 and 32 minutes, each up to a quarter more or less.
  expect(delivery?.attempts).toBeGreaterThanOrEqual(6);
  expect(delivery?.attempts).toBeLessThanOrEqual(8);
  const { failing_since: failingSince, ...shown } = await at.only();
  expect(failingSince).not.toBeNull();
  expect(shown).toMatchObject({ given_up: 1, delivered: 0, queued: 0, failed_attempts: delivery?.attempts });
});

test("a receiver that is gone (410) gets no second attempt", async () => {
  const at = await world();
  const to = await receiver(answer(410));
  const { webhook } = await at.add(to.url);
  await at.leaveStaleLease();
  await at.minutes(10);
  expect(to.received).toHaveLength(1);
  expect(await at.deliveries(webhook.id)).toMatchObject([{ state: "given_up", http_status: 410 }]);
});

test("an alert waits while the queue of its endpoint is full, and is not lost", async () => {
  const at = await world({ LEASEHOLD_WEBHOOK_QUEUE: "1" });
  const to = await receiver(answer(500));
  await at.add(to.url, {
    events: ["stale_leases", "credential_expiring"],
    for_s: 0,
    thresholds: { credential_expiring: 400 },
  });
  const { url, fetch, keys } = at.coordinator;
  await createClient({ url, fetch, key: keys.operator }).keys.mint({ role: "router" });
  await at.leaveStaleLease();
  await at.minutes(5);
  expect(await at.only()).toMatchObject({ queued: 1 });
  to.become(answer(200));
  await at.minutes(30);
  expect([...new Set(typesOf(to.received))].toSorted()).toEqual([
    "leasehold.credential_expiring.firing",
    "leasehold.stale_leases.firing",
  ]);
  expect(await at.only()).toMatchObject({ queued: 0, delivered: 2 });
});

test("a test message is signed and listed, and a removed endpoint gets nothing", async () => {
  const at = await world();
  const to = await receiver();
  const { webhook, secret } = await at.add(to.url);
  const sent = await at.call<{ delivery: Delivery }>("POST", `/${webhook.id}/test`);
  expect(sent.delivery).toMatchObject({ state: "delivered", http_status: 200, attempts: 1 });
  expect(to.received.map((each) => isSigned(each, secret))).toEqual([true]);
  expect(await at.deliveries(webhook.id)).toEqual([sent.delivery]);
  await at.call("POST", `/${webhook.id}/remove`);
  await at.leaveStaleLease();
  await at.minutes(6);
  expect(to.received).toHaveLength(1);
  expect(await at.list()).toEqual([]);
});

test("a disabled endpoint gets nothing until it is enabled", async () => {
  const at = await world();
  const to = await receiver();
  const { webhook } = await at.add(to.url, { enabled: false });
  await at.leaveStaleLease();
  await at.minutes(6);
  expect(to.received).toHaveLength(0);
  await at.call("PATCH", `/${webhook.id}`, { enabled: true });
  await at.minutes(5);
  expect(typesOf(to.received)).toEqual(["leasehold.stale_leases.firing"]);
});

test("[O1] changes are audited without the path of the address, and the secret is not repeated", async () => {
  const at = await world();
  const { webhook, secret } = await at.add("https://hooks.example.com/services/hidden", { reason: "a test" });
  await at.call("PATCH", `/${webhook.id}`, { for_s: 60 });
  await at.call("POST", `/${webhook.id}/remove`, { reason: "over" });
  const { url, fetch, keys } = at.coordinator;
  const listed = await fetch(`${url}/v1/admin/audit?target=${webhook.id}`, {
    headers: { authorization: `Bearer ${keys.operator}` },
  });
  const text = await listed.text();
  expect((JSON.parse(text) as { entries: unknown[] }).entries).toMatchObject([
    { action: "remove_webhook", part: "d1", reason: "over", after: null },
    { action: "change_webhook", before: { for_s: HOLD_S }, after: { for_s: 60 } },
    { action: "add_webhook", before: null, after: { origin: "https://hooks.example.com" }, reason: "a test" },
  ]);
  expect(text).not.toContain("hidden");
  expect(text + JSON.stringify(await at.list())).not.toContain(secret);
});

test("a viewer sees the origin of an address, but not its path", async () => {
  const at = await world();
  await at.add("https://hooks.example.com/services/hidden");
  const { url, fetch, keys } = at.coordinator;
  const { key } = await createClient({ url, fetch, key: keys.operator }).keys.mint({ role: "viewer" });
  const listed = await fetch(`${url}/v1/admin/webhooks`, { headers: { authorization: `Bearer ${key}` } });
  expect(await listed.json()).toMatchObject({ webhooks: [{ url: "https://hooks.example.com" }] });
});

test("there are at most as many endpoints as the limit says", async () => {
  const at = await world({ LEASEHOLD_WEBHOOKS: "1" });
  await at.add("https://hooks.example.com/a");
  await expect(at.add("https://hooks.example.com/b")).rejects.toThrow(/limit of 1 webhooks/);
});
