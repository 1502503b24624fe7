/** An object of the host: what persists, what is lost, when its alarm runs, and what its gate holds back. */
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { peerMethod } from "../../../src/coordinator/kernel/method.ts";
import type { Ports } from "../../../src/coordinator/kernel/ports.ts";
import { TestClock } from "../../../src/users/testing/clock.ts";
import { SqliteDatabase } from "../../../src/hosts/node/sqlite-database.ts";
import {
  AlarmQueue,
  HostedObject,
  type Instance,
  type ObjectContext,
} from "../../../src/hosts/node/hosted-object.ts";
import { HostedNamespace } from "../../../src/hosts/node/namespace.ts";
import { MemoryStore, type ObjectStore } from "../../../src/hosts/node/object-store.ts";
import { sizesIn } from "../../support/private-fields.ts";

let clock: TestClock;
let context: ObjectContext;
let logged: unknown[];
let object: HostedObject;
/** The ports of each instance so far. */
let lives: Ports[];
let rung: number[];
/** An instance with these methods, and without an alarm. */
const called = (methods: Record<string, (message: never) => Promise<unknown>>): Instance => ({
  call: async (method, message) => methods[method]?.(message as never),
  alarm: async () => {},
});

let onAlarm: () => Promise<void>;

beforeEach(() => {
  clock = new TestClock();
  lives = [];
  rung = [];
  onAlarm = async () => {};
  logged = [];
  context = { clock, alarms: new AlarmQueue(), log: (event, fields) => logged.push([event, fields]) };
  object = new HostedObject("cell-1", context, new MemoryStore(), (ports) => {
    lives.push(ports);
    return {
      ...called({
        setAlarm: async (inMs: number) => ports.alarm.set(clock.now() + inMs),
        getAlarm: () => ports.alarm.get(),
        echo: async (message: unknown) => message,
        hang: () => new Promise(() => {}),
        wait: (ms: number) => new Promise<void>((resume) => void ports.clock.after(ms, resume)),
        fail: async () => ports.halt(new Error("the disk is full")),
      }),
      alarm: async () => {
        rung.push(clock.now());
        await onAlarm();
      },
    };
  });
});

afterEach(() => {
  object.close();
  clock.stop();
});

const advance = (ms: number): Promise<void> => clock.advance(ms, () => context.alarms.untilIdle());

test("messages and answers are passed on without copies", async () => {
  const message = { deep: { value: 1 } };
  expect(await object.call("echo", message)).toBe(message);
});

test("[M3] an alarm runs once, at its time, even if the instance that set it has ended", async () => {
  await object.call("setAlarm", 60_000);
  object.restart();
  const dueMs = (await object.call("getAlarm", null)) as number;
  await advance(59_000);
  expect(rung).toEqual([]);
  await advance(2_000);
  expect(rung).toHaveLength(1);
  expect(rung[0]).toBeGreaterThanOrEqual(dueMs);
  expect(await object.call("getAlarm", null)).toBeNull();
  await advance(600_000);
  expect(rung).toHaveLength(1);
});

test("[M3] an alarm is stored as a whole millisecond, as files need it", async () => {
  const dueMs = clock.now() + 60_000.25;
  await object.call("echo", 1);
  lives[0]?.alarm.set(dueMs);
  expect(await object.call("getAlarm", null)).toBe(Math.ceil(dueMs));
});

test("an alarm also runs without `advance`", async () => {
  await object.call("setAlarm", 5);
  await expect.poll(() => rung.length).toBe(1);
});

test("a failed alarm is logged and runs again, after twice as long each time, without end", async () => {
  let message = 'no row "Ada"';
  onAlarm = async () => {
    if (message !== "") throw new Error(message);
  };
  await object.call("setAlarm", 10);
  await advance(600_000);
  // After 2, 4, 8, 16 and 32 s, and then every 64 s.
  expect(rung).toHaveLength(1 + 5 + 8);
  expect(logged).toHaveLength(14);
  expect(logged[0]).toEqual(["alarm_failed", { object: "cell-1", error: "no row" }]);
  message = "";
  await advance(600_000);
  expect(rung).toHaveLength(15);
  message = "again";
  await object.call("setAlarm", 10);
  await advance(10_000);
  expect(rung).toHaveLength(15 + 3);
});

describe("alarms that became due while nothing ran", () => {
  let open: HostedNamespace;
  let stores: MemoryStore[];
  /** The names of the objects whose alarm began, and how to end it. */
  let begun: { name: string; end: () => void }[];

  beforeEach(() => {
    begun = [];
    stores = [];
    const store = (): MemoryStore => {
      const made = new MemoryStore();
      made.setAlarm(clock.now() - 3_600_000);
      stores.push(made);
      return made;
    };
    open = new HostedNamespace({ ...context, store }, {}, (name, ports) => ({
      ...called({ setAlarm: async (inMs: number) => ports.alarm.set(clock.now() + inMs) }),
      alarm: () => new Promise<void>((end) => void begun.push({ name, end })),
    }));
  });

  const openAll = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n += 1) open.open(`shard-${n}`);
    await expect.poll(() => begun.length).toBeGreaterThan(0);
  };
  const names = (): string[] => begun.map(({ name }) => name);

  test("[M3] ring without a call, eight at once, in their order", async () => {
    const ended = Array.from({ length: 20 }, (_, n) => `shard-${n}`);
    await openAll(20);
    expect(names()).toEqual(ended.slice(0, 8));
    begun[3]?.end();
    await expect.poll(() => begun.length).toBe(9);
    expect(names()).toEqual(ended.slice(0, 9));
    for (let n = 0; n < 20; n += 1) {
      begun[n]?.end();
      await clock.turn();
    }
    await context.alarms.untilIdle();
    expect(names()).toEqual(ended);
    expect(stores.map(({ alarmAtMs }) => alarmAtMs)).toEqual(ended.map(() => null));
    const { sizes } = sizesIn([context.alarms]);
    expect([sizes.get("AlarmQueue.#running"), sizes.get("AlarmQueue.#waiting")]).toEqual([[0], [0]]);
  });

  test("wait while they are held, and none rings twice or after the end", async () => {
    context.alarms.hold();
    for (let n = 0; n < 3; n += 1) open.open(`shard-${n}`);
    await expect.poll(() => sizesIn([context.alarms]).sizes.get("AlarmQueue.#waiting")).toEqual([3]);
    await open.open("shard-1").call("setAlarm", 60_000);
    [...open.objects][2]?.end();
    expect(begun).toEqual([]);
    context.alarms.release();
    expect(names()).toEqual(["shard-0"]);
    begun[0]?.end();
    await context.alarms.untilIdle();
    const due = clock.advance(60_000, async () => {});
    await expect.poll(names).toEqual(["shard-0", "shard-1"]);
    begun[1]?.end();
    await due;
  });
});

test("an object that keeps setting its alarm does not stop time", async () => {
  onAlarm = async () => void (await object.call("setAlarm", 60_000));
  await object.call("setAlarm", 60_000);
  const before = clock.now();
  await advance(30 * 86_400_000);
  expect(rung.length).toBeGreaterThan(500);
  expect(clock.now() - before).toBeGreaterThanOrEqual(30 * 86_400_000);
});

test("an instance that ends loses its callers, timers and storage, and another one replaces it", async () => {
  const calls = [object.call("hang", null), object.call("wait", 60_000)].map((call) =>
    expect(call).rejects.toThrow("the object was restarted"),
  );
  await clock.turn();
  object.restart();
  await Promise.all(calls);
  expect(() => lives[0]?.sql.all("SELECT 1")).toThrow("the instance has ended");
  expect(await object.call("echo", 1)).toBe(1);
  expect(lives).toHaveLength(2);
});

test("[B5] an instance that ends itself answers no call", async () => {
  await expect(object.call("fail", null)).rejects.toThrow("the disk is full");
  expect(await object.call("echo", 1)).toBe(1);
  expect(lives).toHaveLength(2);
});

test("stored data persists", async () => {
  await object.call("echo", 1);
  lives[0]?.sql.all("CREATE TABLE kept (n)");
  lives[0]?.sql.transaction([], () => void lives[0]?.sql.all("INSERT INTO kept VALUES (7)"));
  object.restart();
  await object.call("echo", 1);
  expect(lives[1]?.sql.all("SELECT n FROM kept")).toEqual([{ n: 7 }]);
});

test("a timer longer than Node's longest delay fires at its time", async () => {
  let isRung = false;
  clock.after(60 * 86_400_000, () => (isRung = true));
  await clock.turn();
  expect(isRung).toBe(false);
  await advance(59 * 86_400_000);
  expect(isRung).toBe(false);
  await advance(86_400_000);
  expect(isRung).toBe(true);
});

test("[M6] nothing is left of calls, timers and alarms that have ended", async () => {
  for (let n = 0; n < 20; n += 1) await Promise.all([object.call("echo", n), object.call("wait", 1)]);
  await object.call("setAlarm", 60_000);
  await advance(120_000);
  const { sizes } = sizesIn([object, context.alarms]);
  for (const kept of [
    "AlarmQueue.#running",
    "AlarmQueue.#waiting",
    "RunningInstance.#cancels",
    "RunningInstance.#callers",
  ])
    expect(sizes.get(kept), kept).toEqual([0]);
});

describe("the output gate", () => {
  let unsynced: number;
  let isDurable: boolean;
  let finish: () => void;
  let gated: HostedObject;
  let arrived: unknown[];
  let store: ObjectStore;

  beforeEach(() => {
    unsynced = 0;
    isDurable = true;
    arrived = [];
    const flushed = Promise.withResolvers<void>();
    finish = () => {
      isDurable = true;
      flushed.resolve();
    };
    const database = new SqliteDatabase(new DatabaseSync(":memory:"), {
      get isDurable() {
        return isDurable;
      },
      written: () => {
        unsynced += 1;
        isDurable = false;
      },
      flush: () => flushed.promise,
      failed: () => {},
      closed: () => {},
    });
    store = { database, alarmAtMs: null, setAlarm: () => {}, close: () => database.close() };
    const inMemory = { ...context, store: () => new MemoryStore() };
    const peers = new HostedNamespace(inMemory, { hear: peerMethod("peer") }, () =>
      called({ hear: async (message: unknown) => void arrived.push(message) }),
    );
    gated = new HostedObject("cell-2", context, store, ({ sql, halt }, sender) => {
      const peer = peers.of(sender).getByName("peer") as { hear: (text: unknown) => Promise<void> };
      return called({
        write: async () => void sql.all("CREATE TABLE IF NOT EXISTS t (n)"),
        read: async () => sql.all("SELECT name FROM sqlite_schema"),
        fail: async () => {
          throw new Error("refused");
        },
        send: (message: unknown) => peer.hear(message),
        halt: async () => halt(new Error("halted")),
      });
    });
  });

  const turns = async (): Promise<void> => {
    for (let n = 0; n < 20; n += 1) await clock.turn();
  };

  test("[B5] [C2] holds back answers, refusals and messages until all writes are durable", async () => {
    expect(await gated.call("read", null)).toEqual([]);
    const left: string[] = [];
    for (const method of ["write", "read", "fail", "send"])
      void gated.call(method, "hello").then(
        () => left.push(method),
        () => left.push(method),
      );
    await turns();
    expect([unsynced, left, arrived]).toEqual([1, [], []]);
    finish();
    await turns();
    expect(left.toSorted()).toEqual(["fail", "read", "send", "write"]);
    expect(arrived).toEqual(["hello"]);
    gated.close();
  });

  test("[B5] [C2] [H2] passes messages on within one log, and holds back answers", async () => {
    const peer = new HostedObject("shard-0", context, { ...store, close: () => {} }, ({ sql }) =>
      called({ hear: async () => void arrived.push(sql.all("SELECT name FROM sqlite_schema")) }),
    );
    const teller = new HostedObject("cell-3", context, { ...store, close: () => {} }, ({ sql }, sender) =>
      called({
        tell: async () => {
          sql.all("CREATE TABLE told (n)");
          await sql.flush();
          await peer.call("hear", null, sender);
          arrived.push("heard");
        },
      }),
    );
    const left: string[] = [];
    void teller.call("tell", null).then(() => left.push("told"));
    void peer.call("hear", null).then(() => left.push("heard"));
    await turns();
    expect([arrived, left]).toEqual([[expect.anything(), [{ name: "told" }], "heard"], []]);
    finish();
    await turns();
    expect(left.toSorted()).toEqual(["heard", "told"]);
    for (const each of [teller, peer, gated]) each.close();
  });

  test("[B5] an instance that ends sends none of the messages that waited", async () => {
    const calls = ["write", "send"].map((method) =>
      expect(gated.call(method, "hello")).rejects.toThrow("halted"),
    );
    await turns();
    await expect(gated.call("halt", null)).rejects.toThrow("halted");
    finish();
    await Promise.all(calls);
    await turns();
    expect(arrived).toEqual([]);
    gated.close();
  });
});
