/** An object of the host: what persists, what is lost, when its alarm runs, and what its gate holds back. */
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Ports } from "../../src/core/ports.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { SqliteDatabase } from "../../src/node-host/sqlite-database.ts";
import { HostedObject } from "../../src/node-host/hosted-object.ts";
import { HostedNamespace } from "../../src/node-host/namespace.ts";
import { MemoryStore } from "../../src/node-host/object-store.ts";
import { sizesIn } from "../support/private-fields.ts";

let clock: TestClock;
let object: HostedObject;
/** The ports of each instance so far. */
let lives: Ports[];
let rung: number[];
let onAlarm: () => Promise<void>;

beforeEach(() => {
  clock = new TestClock();
  lives = [];
  rung = [];
  onAlarm = async () => {};
  object = new HostedObject(
    clock,
    () => {},
    new MemoryStore(),
    (ports) => {
      lives.push(ports);
      return {
        calls: {
          setAlarm: async (inMs: number) => ports.alarm.set(clock.now() + inMs),
          getAlarm: () => ports.alarm.get(),
          echo: async (message: unknown) => message,
          hang: () => new Promise(() => {}),
          wait: (ms: number) => new Promise<void>((resume) => void ports.clock.after(ms, resume)),
          fail: async () => ports.halt(new Error("the disk is full")),
        },
        alarm: async () => {
          rung.push(clock.now());
          await onAlarm();
        },
      };
    },
  );
});

afterEach(() => {
  object.close();
  clock.stop();
});

const advance = (ms: number): Promise<void> => clock.advance(ms, () => object.untilIdle());

test("messages and answers are passed on without copies", async () => {
  const message = { deep: { value: 1 } };
  expect(await object.call("echo", message)).toBe(message);
  await expect(object.call("nothing", 1)).rejects.toThrow("no method nothing");
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

test("an alarm also runs without `advance`", async () => {
  await object.call("setAlarm", 5);
  await expect.poll(() => rung.length).toBe(1);
});

test("a failed alarm runs again", async () => {
  onAlarm = async () => {
    if (rung.length < 3) throw new Error("not yet");
  };
  await object.call("setAlarm", 10);
  await advance(60_000);
  expect(rung).toHaveLength(3);
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
  const { sizes } = sizesIn([object]);
  for (const kept of ["HostedObject.#alarms", "RunningInstance.#cancels", "RunningInstance.#callers"])
    expect(sizes.get(kept), kept).toEqual([0]);
});

describe("the output gate", () => {
  let unsynced: number;
  let isDurable: boolean;
  let finish: () => void;
  let gated: HostedObject;
  let arrived: unknown[];

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
    const context = { clock, log: () => {} };
    const store = { database, alarmAtMs: null, setAlarm: () => {}, close: () => database.close() };
    const peers = new HostedNamespace({ ...context, store: () => new MemoryStore() }, () => ({
      calls: { hear: async (message: unknown) => void arrived.push(message) },
    }));
    gated = new HostedObject(clock, context.log, store, ({ sql, halt }, gate) => {
      const { hear } = peers.behind(gate).getByName("peer") as { hear: (text: unknown) => Promise<void> };
      return {
        calls: {
          write: async () => void sql.all("CREATE TABLE IF NOT EXISTS t (n)"),
          read: async () => sql.all("SELECT name FROM sqlite_schema"),
          fail: async () => {
            throw new Error("refused");
          },
          send: (message: unknown) => hear(message),
          halt: async () => halt(new Error("halted")),
        },
      };
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
