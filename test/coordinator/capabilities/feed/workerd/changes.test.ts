/** Tests of the stream of changes that watch or break the calls of objects. */
import { v4 as newUuid } from "uuid";
import { beforeAll, describe, expect, test } from "vitest";
import { OpenStreams } from "../../../../../src/coordinator/capabilities/feed/edge/open-streams.ts";
import { Api, env, keyOf, startDeployment } from "../../../../support/workerd/api.ts";
import { watchedNamespace } from "../../../../support/workerd/counting.ts";

type Fate = (call: number) => Promise<unknown> | undefined;

/** An application that counts the calls of shards for changes. `fate` decides how those of one shard end. */
function watched(fate: Fate = () => undefined): { api: Api; calls: () => number } {
  let [calls, ofShard] = [0, 0];
  const CLAIM_SHARD = watchedNamespace("CLAIM_SHARD", env.CLAIM_SHARD, (call, object) => {
    if (call !== "CLAIM_SHARD.listChanges") return undefined;
    calls += 1;
    return object === "shard-0" ? fate((ofShard += 1)) : undefined;
  });
  return { api: new Api({ CLAIM_SHARD }), calls: () => calls };
}

interface Stream {
  /** The next block of the stream; undefined at its end. */
  next: () => Promise<string | undefined>;
  leave: () => Promise<void>;
}

async function openStream(api: Api, query = "", key?: string): Promise<Stream> {
  const headers = {
    authorization: `Bearer ${key ?? (await keyOf("operator"))}`,
    accept: "text/event-stream",
  };
  const { status, body } = await api.fetch(`${api.url}/v1/changes${query}`, { headers });
  expect(status).toBe(200);
  if (body === null) throw new Error("the answer has no body");
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  return {
    async next() {
      while (!text.includes("\n\n")) {
        const { value, done } = await reader.read();
        if (done) return undefined;
        text += decoder.decode(value, { stream: true });
      }
      const end = text.indexOf("\n\n");
      const block = text.slice(0, end);
      text = text.slice(end + 2);
      return block;
    },
    leave: () => reader.cancel(),
  };
}

const bucketOf = (value: string) => ({ type: "ROUTES", value });

async function own(api: Api, value: string): Promise<void> {
  const uuid = newUuid();
  const source = { type: "RAILS_TABLE_NAMESPACES", id: "1" };
  const body = { creates: [{ bucket: bucketOf(value), subject: { type: "NAMESPACE", id: "1" }, source }] };
  await api.json(201, "PUT", `/v1/cells/1/leases/${uuid}`, { key: "cell 1", body });
  await api.json(200, "POST", `/v1/cells/1/leases/${uuid}/commit`, { key: "cell 1" });
}

beforeAll(async () => own(await startDeployment("1", "2"), "first"));

describe("a shard that cannot be read", () => {
  test("[F4] is named, keeps its position, and is told later", async () => {
    let isDown = false;
    const { api } = watched(() => (isDown ? Promise.reject(new Error("the shard is down")) : undefined));
    const { checkpoint } = await api.json<{ checkpoint: string }>(200, "GET", "/v1/changes");
    isDown = true;
    const path = `/v1/changes?after=${checkpoint}`;
    expect(await api.json(200, "GET", path)).toMatchObject({ checkpoint, unavailable: [0] });
    // Without a checkpoint, the newest positions are right only together.
    expect(await api.problem(503, "GET", "/v1/changes")).toMatchObject({ code: "UNAVAILABLE" });
    isDown = false;
    expect(await api.json(200, "GET", path)).toMatchObject({ checkpoint, unavailable: [] });
  });

  test("[G9] keeps those with a larger number from being read, if `after` leaves them out", async () => {
    let isDown = true;
    const { api } = watched(() => (isDown ? Promise.reject(new Error("the shard is down")) : undefined));
    const path = "/v1/changes?page_size=1000&after=3:0";
    const page = await api.json<{ checkpoint: string }>(200, "GET", path);
    expect(page).toMatchObject({ checkpoint: expect.stringMatching(/^3:\d+$/), unavailable: [0] });
    isDown = false;
    const { checkpoint } = await api.json<{ checkpoint: string }>(200, "GET", path);
    expect(checkpoint).toMatch(/^0:\d+,1:\d+,2:\d+,3:\d+$/);
  });

  test("[F4] does not end a stream", async () => {
    // Call 1 is for the checkpoint, call 2 for the first page of the stream.
    const { api, calls } = watched((call) =>
      call === 3 ? Promise.reject(new Error("it is down")) : undefined,
    );
    const { checkpoint } = await api.json<{ checkpoint: string }>(200, "GET", "/v1/changes");
    const perPage = calls();
    const stream = await openStream(api, `?after=${checkpoint}`);
    expect(await stream.next()).toBe("retry: 1000");
    expect(await stream.next()).toContain("event: checkpoint");
    const next = stream.next();
    await expect.poll(calls).toBeGreaterThan(3 * perPage);
    await own(api, "later");
    // The shard tells the decision when it has it.
    await api.json(200, "POST", "/v1/records/lookup", { body: { buckets: [bucketOf("later")] } });
    expect(await next).toMatch(/^event: granted/);
    await stream.leave();
  });
});

test("[M7] [G9] a page reads few shards that `after` leaves out, and says that more follow", async () => {
  const api = new Api({ LEASEHOLD_FAN_OUT: "2" });
  interface Page {
    checkpoint: string;
    has_more: boolean;
    ranges: { shard: number }[];
  }
  const path = "/v1/changes?page_size=1000&after=";
  const first = await api.json<Page>(200, "GET", `${path}2:0`);
  expect(first).toMatchObject({ has_more: true, ranges: [{ shard: 2 }, { shard: 0 }, { shard: 1 }] });
  const second = await api.json<Page>(200, "GET", `${path}${first.checkpoint}`);
  expect(second).toMatchObject({ has_more: false });
  expect(second.ranges.map(({ shard }) => shard)).toEqual([0, 1, 2, 3]);
});

test("[M6] a stream reads nothing before its client has taken what was sent", async () => {
  const { api, calls } = watched();
  await api.json(200, "GET", "/v1/changes");
  const perPage = calls();
  const stream = await openStream(api);
  expect(await stream.next()).toBe("retry: 1000");
  // Longer than the pause between two pages.
  await new Promise((resume) => setTimeout(resume, 1_200));
  expect(calls()).toBe(2 * perPage);
  await stream.leave();
});

test.each([{ role: "cell", cell_id: "1" }, { role: "viewer" }])(
  "[A1] a stream ends with a problem once its key is revoked: $role",
  async (body) => {
    const { api } = watched();
    const { key, id } = await api.json<{ key: string; id: string }>(201, "POST", "/v1/admin/keys", { body });
    const stream = await openStream(api, "", key);
    expect(await stream.next()).toBe("retry: 1000");
    expect(await stream.next()).toContain("event: checkpoint");
    await api.json(200, "POST", `/v1/admin/keys/${id}/revoke`, { body: {} });
    const problem = await stream.next();
    expect(problem).toMatch(/^event: problem\ndata: .*"KEY_REVOKED"/);
    expect(await stream.next()).toBeUndefined();
  },
);

test("[M6] HEAD opens no stream", async () => {
  const { api } = watched();
  const headers = { authorization: `Bearer ${await keyOf("operator")}`, accept: "text/event-stream" };
  for (let n = 0; n < 12; n += 1) {
    const { status } = await api.fetch(`${api.url}/v1/changes`, { method: "HEAD", headers });
    expect(status).toBe(200);
  }
});

test("[M6] a limited number of streams is open, and one that was left without a word makes room", () => {
  let now = 0;
  const streams = new OpenStreams(() => now);
  const enter = (n: number) => streams.enter(`key-${n % 11}`);
  // A key may have 10 of them.
  const ofOne = Array.from({ length: 10 }, () => streams.enter("key-0"));
  expect(streams.enter("key-0")).toBeUndefined();
  for (const stream of ofOne) stream?.leave();
  const open = Array.from({ length: 100 }, (_, n) => enter(n));
  expect(open.every((stream) => stream !== undefined)).toBe(true);
  expect(enter(10)).toBeUndefined();
  open[10]?.leave();
  expect(enter(10)).toBeDefined();
  now = 20_000;
  expect(open[1]?.touch()).toBe(true);
  now = 30_001;
  // All but the one that was touched count no longer, and end when they are used again.
  expect(Array.from({ length: 99 }, (_, n) => enter(n + 2)).every(Boolean)).toBe(true);
  expect(enter(1)).toBeUndefined();
  expect(open[2]?.touch()).toBe(false);
});

test("[F4] a client that refuses events gets a page", async () => {
  const { api } = watched();
  const headers = { accept: "text/event-stream;q=0, application/json" };
  expect((await api.send("GET", "/v1/changes", { headers })).headers.get("content-type")).toBe(
    "application/json",
  );
});
