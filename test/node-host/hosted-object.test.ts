/** A Durable Object in memory: what persists, what is lost, and when its alarm runs. */
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Ports } from "../../src/core/ports.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { HostedObject } from "../../src/node-host/hosted-object.ts";

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

test("messages are copied on their way in and out", async () => {
  const message = { deep: { value: 1 } };
  const answered = object.call("echo", message);
  message.deep.value = 2;
  expect(await answered).toEqual({ deep: { value: 1 } });
  await expect(object.call("echo", () => {})).rejects.toMatchObject({ name: "DataCloneError" });
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
