/** Tests of the connection to one shard: what shares a message, in which order, and what is never sent. */
import { expect, test } from "vitest";
import {
  RIDE_WAIT_MS,
  ShardLink,
  type SendExchange,
} from "../../../../src/coordinator/kernel/ledger/shard-link.ts";
import { defaultLimits, type Limits } from "../../../../src/common/limits.ts";
import type {
  Decision,
  Exchange,
  ExchangeAnswer,
  Prepare,
} from "../../../../src/coordinator/kernel/messages.ts";
import type { Answer } from "../../../../src/coordinator/kernel/ports.ts";
import { privateField } from "../../../support/private-fields.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

const PLACEMENT = "here";
const WAIT_MS = defaultLimits.decisionWaitMs;
const GRANTED = { granted: true, epoch: 1, missing: 0 } as const;

function prepareOf(lease: string, ops: number): Prepare {
  const op = { kind: "create", type: 1, value: "v", canonical: "v", shard: 0 } as const;
  return {
    cell: "1",
    lease,
    incarnation: 1,
    counter: 1,
    allowMissing: false,
    ops: Array.from({ length: ops }, (_, index) => ({ ...op, index })),
  };
}

const decisionOf = (lease: string): Decision => ({
  cell: "1",
  lease,
  incarnation: 1,
  counter: 1,
  outcome: "COMMITTED",
  epoch: 1,
});

/** Messages wait for `answer`, so that a test controls what arrives while one is being sent. */
class Wire {
  readonly clock = new VirtualClock();
  readonly sent: Pick<Exchange, "placement" | "decisions" | "prepares">[] = [];
  halted = false;
  readonly link: ShardLink;
  readonly #waiting: ((answer: Answer<ExchangeAnswer>) => void)[] = [];

  constructor(messageOps: number, limits: Partial<Limits> = {}) {
    const send: SendExchange = (placement, content) => {
      this.sent.push({ placement, ...content });
      return new Promise((resolve) => this.#waiting.push(resolve));
    };
    this.link = new ShardLink(
      this.clock,
      { ...defaultLimits, messageOps, ...limits },
      (work) => work(),
      send,
      () => this.halted,
      () => PLACEMENT,
    );
  }

  prepare(lease: string, ops: number, signal = { isOver: false }): ReturnType<ShardLink["prepare"]> {
    return this.link.prepare(PLACEMENT, prepareOf(lease, ops), signal);
  }

  decide(lease: string, ops: number, signal?: { isOver: boolean }): ReturnType<ShardLink["decide"]> {
    return this.link.decide(PLACEMENT, decisionOf(lease), ops, signal);
  }

  /** The number of items that wait. */
  waiting(queue: "#prepares" | "#decisions"): number {
    return (privateField(this.link, queue) as unknown[]).length;
  }

  async answer(answer?: Answer<ExchangeAnswer>): Promise<void> {
    const { prepares = [] } = this.sent.at(-1) ?? {};
    this.#waiting.shift()?.(
      answer ?? { kind: "ok", value: { seen: null, point: null, prepares: prepares.map(() => GRANTED) } },
    );
    await this.clock.pass(0);
  }

  /** Begins and commits `count` leases, one every `gapMs`. Each commit is half a gap after its begin. */
  async cycles(count: number, gapMs: number): Promise<void> {
    for (let n = 0; n < count; n += 1) {
      void this.prepare("p", 1);
      await this.clock.pass(0);
      await this.answer();
      await this.clock.pass(gapMs / 2);
      void this.decide("d", 1);
      for (const waitMs of [WAIT_MS, gapMs / 2 - WAIT_MS]) {
        await this.clock.pass(waitMs);
        await this.answer();
      }
    }
  }

  /** The messages that were sent, as letters: decisions | prepares of each message. */
  get leases(): string[] {
    return this.sent.map(
      ({ decisions, prepares }) =>
        `${decisions.map(({ lease }) => lease).join("")}|${prepares.map(({ lease }) => lease).join("")}`,
    );
  }
}

test("[N1] one message is sent at a time, and what waits shares the next, decisions first", async () => {
  const wire = new Wire(100);
  const works: Promise<unknown>[] = [wire.prepare("a", 1)];
  await wire.clock.pass(0);
  works.push(wire.prepare("b", 1), wire.decide("c", 1), wire.prepare("d", 1));
  await wire.clock.pass(0);
  expect(wire.leases).toEqual(["|a"]);
  await wire.answer();
  expect(wire.leases).toEqual(["|a", "c|bd"]);
  await wire.answer();
  expect(await Promise.all(works)).toEqual([
    { kind: "ok", value: GRANTED },
    { kind: "ok", value: GRANTED },
    { kind: "ok", value: null },
    { kind: "ok", value: GRANTED },
  ]);
  // Later items are sent at once again.
  void wire.prepare("e", 1);
  await wire.clock.pass(0);
  expect(wire.leases).toEqual(["|a", "c|bd", "|e"]);
  expect(wire.sent.every(({ placement }) => placement === PLACEMENT)).toBe(true);
});

test("[N1] a decision waits a moment for a prepare, whose message it then shares", async () => {
  const wire = new Wire(100);
  void wire.decide("a", 1);
  await wire.clock.pass(WAIT_MS - 1);
  void wire.decide("b", 1);
  expect(wire.leases).toEqual([]);
  void wire.prepare("c", 1);
  await wire.clock.pass(0);
  expect(wire.leases).toEqual(["ab|c"]);
  await wire.answer();
  // The end of an earlier wait ends no later one.
  void wire.decide("d", 1);
  await wire.clock.pass(WAIT_MS - 1);
  expect(wire.leases).toEqual(["ab|c"]);
});

test("[N1] without a prepare, a decision waits for its limit, and later ones don't extend it", async () => {
  const wire = new Wire(100);
  void wire.decide("a", 1);
  await wire.clock.pass(WAIT_MS - 1);
  void wire.decide("b", 1);
  await wire.clock.pass(1);
  expect(wire.leases).toEqual(["ab|"]);
  // What came during the message waits again, for a prepare that may share the next one.
  void wire.decide("c", 1);
  await wire.answer();
  await wire.clock.pass(WAIT_MS - 1);
  expect(wire.leases).toEqual(["ab|"]);
  await wire.clock.pass(1);
  expect(wire.leases).toEqual(["ab|", "c|"]);
});

test("[N1] [B6] a release waits for nothing, and takes the waiting decisions with it", async () => {
  const wire = new Wire(100);
  void wire.decide("a", 1);
  await wire.clock.pass(1);
  void wire.decide("r", 1, { isOver: false });
  await wire.clock.pass(0);
  expect(wire.leases).toEqual(["ar|"]);
});

test("[N1] with a limit of 0, a decision is sent at once", async () => {
  const wire = new Wire(100, { decisionWaitMs: 0 });
  void wire.decide("a", 1);
  await wire.clock.pass(0);
  expect(wire.leases).toEqual(["a|"]);
});

test("[N1] if begins come often, each decision shares the message of the next one", async () => {
  const wire = new Wire(100);
  // The first gaps are too few for a mean.
  await wire.cycles(10, 300);
  wire.sent.length = 0;
  await wire.cycles(20, 300);
  expect(wire.leases).toEqual(Array.from({ length: 20 }, () => "d|p"));
  // Without a further begin, the last one waits for a second.
  await wire.clock.pass(RIDE_WAIT_MS - 151);
  expect(wire.leases).toHaveLength(20);
  await wire.clock.pass(1);
  expect(wire.leases.slice(20)).toEqual(["d|"]);
});

test("[N1] if begins come rarely, a decision waits for its limit only", async () => {
  const wire = new Wire(100);
  await wire.cycles(10, 300);
  // A few long gaps are enough, however long they are.
  await wire.cycles(10, 60_000);
  wire.sent.length = 0;
  await wire.cycles(5, 700);
  expect(wire.leases).toEqual(Array.from({ length: 5 }, () => ["|p", "d|"]).flat());
});

test.each([-86_400_000, 86_400_000])(
  "[N1] [M4] a clock that jumps by %i ms makes no decision wait longer",
  async (jumpMs) => {
    const wire = new Wire(100);
    await wire.cycles(10, 300);
    await wire.clock.pass(RIDE_WAIT_MS);
    await wire.answer();
    wire.clock.jump(jumpMs);
    wire.sent.length = 0;
    void wire.decide("a", 1);
    await wire.clock.pass(RIDE_WAIT_MS);
    expect(wire.leases).toEqual(["a|"]);
    await wire.answer();
    // Further decisions still share messages.
    await wire.cycles(3, 300);
    expect(wire.leases).toEqual(["a|", "|p", "d|p", "d|p"]);
  },
);

test("[N1] decisions that fill a message wait for nothing", async () => {
  const wire = new Wire(4);
  void wire.decide("a", 3);
  await wire.clock.pass(0);
  expect(wire.leases).toEqual([]);
  void wire.decide("b", 1);
  await wire.clock.pass(0);
  expect(wire.leases).toEqual(["ab|"]);
});

test("[N1] [M6] a message has at most its limit of ops, unless one lease alone has more", async () => {
  const wire = new Wire(4);
  for (const [lease, ops] of [
    ["a", 2],
    ["b", 2],
    ["c", 1],
    ["d", 9],
    ["e", 1],
  ] as const)
    void wire.prepare(lease, ops);
  for (let message = 0; message < 6; message += 1) await wire.answer();
  expect(wire.leases).toEqual(["|ab", "|c", "|d", "|e"]);
});

test("[N1] a steady flow of decisions does not overtake a prepare twice", async () => {
  const wire = new Wire(4);
  void wire.decide("a", 4);
  void wire.prepare("p", 3);
  void wire.decide("b", 4);
  void wire.decide("c", 1);
  void wire.prepare("q", 4);
  for (let message = 0; message < 6; message += 1) await wire.answer();
  await wire.clock.pass(WAIT_MS);
  // p waited while a was sent, so it goes before b. q waited too, but it goes with p.
  expect(wire.leases).toEqual(["a|", "|p", "b|", "|q", "c|"]);
});

test("[B3] a prepare whose begin has given up is unknown and never sent; the others are sent", async () => {
  const wire = new Wire(100);
  void wire.prepare("a", 1);
  await wire.clock.pass(0);
  const signal = { isOver: false };
  const [given, kept] = [wire.prepare("b", 1, signal), wire.prepare("c", 1)];
  signal.isOver = true;
  await wire.answer();
  expect(await given).toMatchObject({ kind: "unknown" });
  expect(wire.leases).toEqual(["|a", "|c"]);
  await wire.answer();
  expect(await kept).toMatchObject({ kind: "ok" });
  // If all items were given up, no message is sent.
  const over = wire.prepare("d", 1, { isOver: true });
  await wire.clock.pass(0);
  expect(await over).toMatchObject({ kind: "unknown" });
  expect(wire.leases).toHaveLength(2);
});

test("[M2] a failed exchange fails all its items; a short answer leaves the rest unknown", async () => {
  const wire = new Wire(100);
  const failed = [wire.decide("a", 1), wire.prepare("b", 1)];
  await wire.clock.pass(0);
  await wire.answer({ kind: "unknown", cause: "lost" });
  expect(await Promise.all<unknown>(failed)).toEqual([
    { kind: "unknown", cause: "lost" },
    { kind: "unknown", cause: "lost" },
  ]);
  const short = [wire.prepare("c", 1), wire.prepare("d", 1)];
  await wire.clock.pass(0);
  await wire.answer({ kind: "ok", value: { seen: null, point: null, prepares: [GRANTED] } });
  expect(await Promise.all(short)).toMatchObject([{ kind: "ok" }, { kind: "unknown" }]);
});

test("[M2] an exchange that throws is unknown, and later items are still sent", async () => {
  let calls = 0;
  const send = async (): Promise<Answer<ExchangeAnswer>> => {
    calls += 1;
    if (calls === 1) throw new Error("broken");
    return { kind: "ok", value: { seen: null, point: null, prepares: [] } };
  };
  const clock = new VirtualClock();
  const link = new ShardLink(
    clock,
    defaultLimits,
    (work) => work(),
    send,
    () => false,
    () => PLACEMENT,
  );
  expect(await clock.runUntil(link.decide(PLACEMENT, decisionOf("a"), 1))).toMatchObject({ kind: "unknown" });
  expect(await clock.runUntil(link.decide(PLACEMENT, decisionOf("b"), 1))).toEqual({
    kind: "ok",
    value: null,
  });
});

test("[B5] nothing is sent after the instance has ended, not even what had waited", async () => {
  const wire = new Wire(100);
  void wire.prepare("a", 1);
  await wire.clock.pass(0);
  void wire.decide("b", 1);
  wire.halted = true;
  await wire.answer();
  await wire.clock.pass(WAIT_MS);
  void wire.decide("c", 1);
  await wire.clock.pass(100);
  expect(wire.leases).toEqual(["|a"]);
});

test("[M6] [B6] while a shard hangs, only running begins have prepares and releases waiting", async () => {
  const wire = new Wire(100);
  void wire.prepare("a", 1);
  await wire.clock.pass(0);
  const running: { isOver: boolean }[] = [];
  for (let n = 0; n < 3 * defaultLimits.concurrentBegins; n += 1) {
    // A cell has at most this many begins at a time: the oldest one has given up.
    const oldest = running.length < defaultLimits.concurrentBegins ? undefined : running.shift();
    if (oldest !== undefined) oldest.isOver = true;
    const signal = { isOver: false };
    running.push(signal);
    void wire.prepare(`p${n}`, 1, signal);
    void wire.decide(`r${n}`, 1, signal);
    expect(wire.waiting("#prepares")).toBeLessThanOrEqual(defaultLimits.concurrentBegins);
    expect(wire.waiting("#decisions")).toBeLessThanOrEqual(defaultLimits.concurrentBegins);
  }
  // The decision of a lease is never dropped.
  void wire.decide("c", 1);
  for (const signal of running) signal.isOver = true;
  void wire.decide("r", 1, { isOver: false });
  expect(wire.waiting("#decisions")).toBe(2);
});

test("[B6] a release is sent although its begin has given up, as long as the queue is short", async () => {
  const wire = new Wire(100);
  void wire.prepare("a", 1);
  await wire.clock.pass(0);
  const signal = { isOver: false };
  void wire.decide("r", 1, signal);
  signal.isOver = true;
  await wire.answer();
  expect(wire.leases).toEqual(["|a", "r|"]);
});
