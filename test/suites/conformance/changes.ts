/** Tests of the change feed: pages, and the stream of server-sent events. */
import { v4 as newUuid } from "uuid";
import { beforeAll, describe, expect, test } from "vitest";
import type * as z from "zod";
import type { change as changeSchema } from "../../../src/coordinator/capabilities/feed/edge/routes.ts";
import type { Client, KeyName } from "./client.ts";
import type { Open } from "./coordinator.ts";
import { applied, begun, claim, committed, freshName } from "./leases.ts";

type Change = z.infer<typeof changeSchema>;

type Point = Record<"incarnation" | "position", number>;

interface Page {
  changes: Change[];
  checkpoint: string;
  has_more: boolean;
  ranges: { shard: number; after: Point; through: Point }[];
  unavailable: number[];
}

interface ReceivedEvent {
  event: string;
  id: string | undefined;
  data: unknown;
}

const named = (changes: readonly Change[]): string[] =>
  changes.map(({ event, lease_uuid: lease, claim: its }) => `${event} ${its?.bucket?.value ?? lease}`);

/** Reads events of a stream until one fits. */
async function eventsUntil(
  body: ReadableStream<Uint8Array>,
  isLast: (event: ReceivedEvent) => boolean,
): Promise<ReceivedEvent[]> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const events: ReceivedEvent[] = [];
  for (let text = ""; ;) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`the stream has ended after ${JSON.stringify(events)}`);
    text += decoder.decode(value, { stream: true });
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const fields = new Map(block.split("\n").map((line) => line.split(/: (.*)/s) as [string, string]));
      const [event, data] = [fields.get("event"), fields.get("data")];
      if (event === undefined || data === undefined) continue;
      events.push({ event, id: fields.get("id"), data: JSON.parse(data) });
    }
    if (events.some(isLast)) {
      await reader.cancel();
      return events;
    }
  }
}

export function changeSuite(open: Open): void {
  let api: Client;

  beforeAll(async () => {
    api = await open();
  });

  const page = (query: Record<string, string> = {}, key: KeyName = "operator"): Promise<Page> =>
    api.json<Page>(200, "GET", `/v1/changes?${String(new URLSearchParams(query))}`, { key });

  /** Reads everything after a checkpoint. */
  async function all(after: string, query: Record<string, string> = {}, key?: KeyName): Promise<Change[]> {
    const changes: Change[] = [];
    for (let checkpoint = after; ;) {
      const next = await page({ ...query, after: checkpoint }, key);
      expect(next.unavailable).toEqual([]);
      changes.push(...next.changes);
      ({ checkpoint } = next);
      if (!next.has_more) return changes;
    }
  }

  async function follow(
    query: string,
    headers: Record<string, string>,
    isLast: (event: ReceivedEvent) => boolean,
    key: KeyName = "operator",
  ): Promise<ReceivedEvent[]> {
    const authorization = await api.authorization(key);
    const response = await api.fetch(`${api.url}/v1/changes${query}`, {
      headers: { authorization, accept: "text/event-stream", ...headers },
    });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    expect(response.headers.get("cache-control")).toBe("no-store");
    if (response.body === null) throw new Error("the answer has no body");
    return eventsUntil(response.body, isLast);
  }

  async function release(value: string): Promise<void> {
    const uuid = newUuid();
    const body = { destroys: [{ bucket: { type: "ROUTES", value } }] };
    await api.json(201, "PUT", `/v1/cells/1/leases/${uuid}`, { key: "cell 1", body });
    await api.json(200, "POST", `/v1/cells/1/leases/${uuid}/commit`, { key: "cell 1" });
    await applied(api, value);
  }

  test("[F2] [F4] pages tell a claim and its release, once each and in order", async () => {
    const start = await page();
    expect(start).toMatchObject({ changes: [], has_more: false, unavailable: [] });
    const positions = start.ranges.map(({ shard, through }) => `${shard}:${through.position}`);
    expect(positions.join(",")).toBe(start.checkpoint);
    const { uuid, value } = await committed(api);
    await applied(api, value);
    await release(value);
    const changes = (await all(start.checkpoint)).filter(
      ({ claim: its, lease_uuid: lease }) => its?.bucket?.value === value || lease === uuid,
    );
    expect(named(changes)).toEqual([
      `granted ${uuid}`,
      `committed ${uuid}`,
      `claimed ${value}`,
      `released ${value}`,
    ]);
    expect(changes[2]).toMatchObject({
      cell_id: "1",
      lease_uuid: uuid,
      claim: { bucket: { type: "ROUTES" }, subject: { type: "NAMESPACE", id: "7" }, source: { id: "42" } },
    });
    expect(changes[3]?.epoch).toBe(changes[2]?.epoch);
    expect(changes[3]?.claim?.uuid).toBe(changes[2]?.claim?.uuid);
    expect(new Set(changes.map(({ id }) => id)).size).toBe(4);
    // A page that is read again has the same changes.
    expect(await all(start.checkpoint)).toEqual(await all(start.checkpoint));
  });

  test("[F2] a lease that is rolled back is told without names", async () => {
    const { checkpoint } = await page();
    const { uuid, value } = await begun(api);
    await api.json(200, "POST", `/v1/cells/1/leases/${uuid}/rollback`, { key: "cell 1" });
    await applied(api, value);
    const changes = (await all(checkpoint)).filter(({ lease_uuid: lease }) => lease === uuid);
    expect(named(changes)).toEqual([`granted ${uuid}`, `rolled_back ${uuid}`]);
  });

  test("[F5] a cell gets the changes of its own leases, and may not ask for those of another", async () => {
    const { checkpoint } = await page();
    const { value } = await committed(api);
    await applied(api, value);
    const own = await all(checkpoint, {}, "cell 1");
    expect(named(own)).toContain(`claimed ${value}`);
    expect(await all(checkpoint, { cell: "1" }, "cell 1")).toEqual(own);
    expect(await all(checkpoint, {}, "cell 2")).toEqual([]);
    expect(await all(checkpoint, { cell: "2" })).toEqual([]);
    const refused = await api.problem(403, "GET", "/v1/changes?cell=1", { key: "cell 2" });
    expect(refused).toMatchObject({ code: "PERMISSION_DENIED", field: "cell" });
    await api.problem(403, "GET", "/v1/changes", { key: "router" });
  });

  test("[F5] the claims of one type", async () => {
    const { checkpoint } = await page();
    const [route, email] = [freshName(), `${freshName()}@example.com`];
    const uuid = newUuid();
    const body = { creates: [claim(route), claim(email, 1, "EMAILS")] };
    await api.json(201, "PUT", `/v1/cells/1/leases/${uuid}`, { key: "cell 1", body });
    await api.json(200, "POST", `/v1/cells/1/leases/${uuid}/commit`, { key: "cell 1" });
    for (const [type, value] of [
      ["ROUTES", route],
      ["EMAILS", email],
    ] as const) {
      const buckets = [{ type, value }];
      await api.json(200, "POST", "/v1/records/lookup", { key: "cell 1", body: { buckets } });
      expect(named(await all(checkpoint, { bucket_type: type }))).toEqual([`claimed ${value}`]);
    }
  });

  test("[F6] whoever starts from an export and reads all changes has all claims", async () => {
    const before = await committed(api);
    await applied(api, before.value);
    const { checkpoint } = await page();
    const copy = new Map<string, number>();
    const path = "/v1/cells/1/records/export?source_type=RAILS_TABLE_ROUTES";
    const records = async (): Promise<[uuid: string, epoch: number][]> => {
      const { text } = await api.send("GET", path, { key: "cell 1" });
      const lines = text.trim().split("\n");
      return lines.flatMap((line): [string, number][] => {
        const { record } = JSON.parse(line) as { record?: { uuid: string; epoch: number } };
        return record === undefined ? [] : [[record.uuid, record.epoch]];
      });
    };
    for (const [uuid, epoch] of await records()) copy.set(uuid, epoch);
    for (let n = 0; n < 5; n += 1) {
      const { value } = await committed(api);
      await applied(api, value);
      if (n % 2 === 0) await release(value);
    }
    await release(before.value);
    for (const { event, epoch, claim: its } of await all(checkpoint)) {
      if (its === undefined || (copy.get(its.uuid) ?? 0) > epoch) continue;
      if (event === "released") copy.delete(its.uuid);
      else copy.set(its.uuid, epoch);
    }
    expect(copy).toEqual(new Map(await records()));
  });

  describe("a stream", () => {
    test("[F4] tells where it begins, then what happens, and goes on after Last-Event-ID", async () => {
      const { checkpoint } = await page();
      const first = await committed(api);
      await applied(api, first.value);
      const isOf = (value: string) => (event: ReceivedEvent) =>
        event.event === "claimed" && (event.data as Change).claim?.bucket?.value === value;
      const events = await follow(`?after=${checkpoint}`, {}, isOf(first.value));
      expect(events.some(isOf(first.value))).toBe(true);
      const newest = await follow("", {}, ({ event }) => event === "checkpoint");
      expect(newest).toHaveLength(1);
      const { id, data } = newest[0] ?? {};
      const { ranges, ...rest } = data as Pick<Page, "checkpoint" | "ranges" | "unavailable">;
      expect(rest).toEqual({ checkpoint: id, unavailable: [] });
      expect(ranges.map(({ shard, through }) => `${shard}:${through.position}`).join()).toBe(id);
      const second = await committed(api);
      await applied(api, second.value);
      const later = await follow(`?after=${checkpoint}`, { "last-event-id": id ?? "" }, isOf(second.value));
      expect(later.some(isOf(first.value))).toBe(false);
      expect(later.find(isOf(second.value))).toMatchObject({
        event: "claimed",
        data: { cell_id: "1", event: "claimed" },
      });
    });

    test("[F4] waits for what happens next", async () => {
      const name = freshName();
      const { checkpoint } = await page({}, "cell 1");
      const reading = follow(
        `?bucket_type=ROUTES&after=${checkpoint}`,
        {},
        ({ event, data }) => event === "claimed" && (data as Change).claim?.bucket?.value === name,
        "cell 1",
      );
      await committed(api, name);
      await applied(api, name);
      expect((await reading).at(-1)).toBeDefined();
    });

    test("is refused with a problem before it begins", async () => {
      const headers = { accept: "text/event-stream" };
      const refused = await api.problem(400, "GET", "/v1/changes?after=x", { headers });
      expect(refused).toMatchObject({ field: "after" });
      await api.problem(400, "GET", "/v1/changes", { headers: { ...headers, "last-event-id": "x" } });
      await api.problem(401, "GET", "/v1/changes", { headers, key: null });
    });
  });
}
