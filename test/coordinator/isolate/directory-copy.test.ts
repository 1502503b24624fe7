import { beforeEach, describe, expect, test } from "vitest";
import { defaultLimits } from "../../../src/common/limits.ts";
import { placementOf } from "../../../src/coordinator/kernel/placement.ts";
import { ok, refused, type Result } from "../../../src/coordinator/kernel/refusal.ts";
import type { Snapshot } from "../../../src/coordinator/kernel/directory/messages.ts";
import { AgeClock } from "../../../src/coordinator/isolate/recent-answer.ts";
import { DirectoryCopy } from "../../../src/coordinator/isolate/directory-copy.ts";
import { TypesCopy } from "../../../src/coordinator/capabilities/types/edge/types-copy.ts";
import { KnownPlacement } from "../../../src/coordinator/isolate/known-placement.ts";
import type { Objects } from "../../../src/coordinator/objects/objects.ts";
import { STAMP } from "../../support/ops.ts";

const placement = placementOf(4);
const HOUR_MS = 3_600_000;
const MAX_MS = 30_000;

/** A directory whose answers the test gives, or never gives. Each snapshot has another revoked key. */
class Fixture {
  nowMs = 10 * HOUR_MS;
  readonly asked: ((reply: Result<Snapshot>) => void)[] = [];
  readonly kept: Promise<unknown>[] = [];
  readonly copy: DirectoryCopy;

  constructor() {
    const objects = { directory: () => ({ snapshot: () => this.#ask() }) } as unknown as Objects;
    const envelope = { ...STAMP, placement };
    this.copy = new DirectoryCopy(
      {
        objects,
        config: { limits: { ...defaultLimits, directoryCacheMs: MAX_MS } },
        placement: new KnownPlacement(4),
        envelope,
      },
      { now: () => this.nowMs, after: () => () => {} },
      new TypesCopy(objects, defaultLimits, () => envelope, {
        types: async () => ok(undefined),
        save: async ({ position }) => ok(position),
      }),
    );
  }

  #ask(): Promise<Result<Snapshot>> {
    return new Promise((resolve) => this.asked.push(resolve));
  }

  /** The revoked keys that a request sees. */
  async seen(): Promise<string[] | undefined> {
    const view = await this.copy.view((work) => this.kept.push(work));
    return view.ok ? [...view.value.revokedKeys] : undefined;
  }

  /** Answers the question with this number with a snapshot that has a key of this name. */
  async answer(question: number, key = `key-${question}`): Promise<void> {
    this.asked[question]?.({
      ok: true,
      value: {
        placement,
        growth: null,
        point: null,
        isPlaced: true,
        cells: [],
        revokedKeys: [key],
        revokedThroughMs: 0,
        types: null,
        identities: null,
      },
    });
    await new Promise((resolve) => setTimeout(resolve));
  }

  /** The revoked keys in a recent view, with `new` if the directory was read for this call. */
  async recent(): Promise<string[] | undefined> {
    const recent = await this.copy.recentView((work) => this.kept.push(work));
    if (!recent.ok) return undefined;
    const { view, isNew } = recent.value;
    return [...view.revokedKeys, ...(isNew ? ["new"] : [])];
  }

  async fail(question: number, reason?: "HISTORY_LOST"): Promise<void> {
    this.asked[question]?.(refused("UNAVAILABLE", "down", reason === undefined ? {} : { reason }));
    await new Promise((resolve) => setTimeout(resolve));
  }
}

let fixture: Fixture;

beforeEach(async () => {
  fixture = new Fixture();
  const first = fixture.seen();
  await fixture.answer(0);
  expect(await first).toEqual(["key-0"]);
});

describe("a copy of half the greatest age", () => {
  beforeEach(() => void (fixture.nowMs += MAX_MS / 2));

  test("serves while one request refreshes it in the background, work that the runtime keeps", async () => {
    expect(await fixture.seen()).toEqual(["key-0"]);
    expect(await fixture.seen()).toEqual(["key-0"]);
    expect(fixture.asked).toHaveLength(2);
    expect(fixture.kept).toHaveLength(2);
    await fixture.answer(1);
    expect(await fixture.seen()).toEqual(["key-1"]);
  });

  test("serves until it is too old, also if the refresh never ends", async () => {
    expect(await fixture.seen()).toEqual(["key-0"]);
    fixture.nowMs += MAX_MS / 2 - 1;
    expect(await fixture.seen()).toEqual(["key-0"]);
    // The first refresh has taken longer than a read may take, so another one began.
    expect(fixture.asked).toHaveLength(3);
  });
});

describe("a copy of a directory that has gone back in time", () => {
  test("[H8] serves no more, and the directory is asked once a second", async () => {
    fixture.nowMs += MAX_MS / 2;
    expect(await fixture.seen()).toEqual(["key-0"]);
    await fixture.fail(1, "HISTORY_LOST");
    expect(await fixture.seen()).toBeUndefined();
    expect(await fixture.seen()).toBeUndefined();
    expect(fixture.asked).toHaveLength(2);
    fixture.nowMs += 1_000;
    const later = fixture.seen();
    expect(fixture.asked).toHaveLength(3);
    await fixture.answer(2);
    expect(await later).toEqual(["key-2"]);
  });

  test("[H8] serves no more, also if the request that learns of it has no other copy", async () => {
    fixture.nowMs += MAX_MS;
    const waiting = fixture.seen();
    await fixture.fail(1, "HISTORY_LOST");
    expect(await waiting).toBeUndefined();
  });
});

test("[H8] [M1] an older refresh that fails brings no copy back that was dropped", async () => {
  fixture.nowMs += MAX_MS;
  const first = fixture.seen();
  // This one waits for a moment, and then starts a refresh of its own.
  const second = fixture.seen();
  await expect.poll(() => fixture.asked.length).toBe(3);
  await fixture.fail(2, "HISTORY_LOST");
  expect(await second).toBeUndefined();
  await fixture.fail(1);
  expect(await first).toBeUndefined();
  expect(await fixture.seen()).toBeUndefined();
});

test("[H8] a snapshot from before the loss was told is not kept", async () => {
  fixture.nowMs += MAX_MS;
  const first = fixture.seen();
  const second = fixture.seen();
  await expect.poll(() => fixture.asked.length).toBe(3);
  await fixture.fail(2, "HISTORY_LOST");
  await second;
  await fixture.answer(1);
  await first;
  expect(await fixture.seen()).toBeUndefined();
});

test("a younger copy is not refreshed", async () => {
  fixture.nowMs += MAX_MS / 2 - 1;
  expect(await fixture.seen()).toEqual(["key-0"]);
  expect(fixture.asked).toHaveLength(1);
});

describe("a copy that is too old", () => {
  beforeEach(() => void (fixture.nowMs += MAX_MS));

  test("doesn't serve, and requests share one refresh", async () => {
    const seen = [fixture.seen(), fixture.seen()];
    await fixture.answer(1);
    expect(await Promise.all(seen)).toEqual([["key-1"], ["key-1"]]);
    expect(fixture.asked).toHaveLength(2);
  });

  test("is refreshed by another request if the one that began has lost its work", async () => {
    void fixture.seen();
    const waiting = [fixture.seen(), fixture.seen()];
    await expect.poll(() => fixture.asked.length).toBe(3);
    await fixture.answer(2);
    expect(await Promise.all(waiting)).toEqual([["key-2"], ["key-2"]]);
    expect(fixture.asked).toHaveLength(3);
  });

  test("serves while the directory fails, and no further request waits", async () => {
    const first = fixture.seen();
    await fixture.fail(1);
    expect(await first).toEqual(["key-0"]);
    fixture.nowMs += 999;
    expect(await fixture.seen()).toEqual(["key-0"]);
    expect(fixture.asked).toHaveLength(2);
    fixture.nowMs += 1;
    expect(await fixture.seen()).toEqual(["key-0"]);
    expect(fixture.asked).toHaveLength(3);
    await fixture.answer(2);
    expect(await fixture.seen()).toEqual(["key-2"]);
  });

  test("doesn't serve because of a failure long ago", async () => {
    const first = fixture.seen();
    await fixture.fail(1);
    await first;
    fixture.nowMs += HOUR_MS;
    const later = fixture.seen();
    await fixture.answer(2);
    expect(await later).toEqual(["key-2"]);
  });
});

test("after `expire` the next request reads the directory, and an earlier refresh is not kept", async () => {
  fixture.nowMs += MAX_MS / 2;
  await fixture.seen();
  fixture.copy.expire();
  const next = fixture.seen();
  await fixture.answer(1, "from before the change");
  await fixture.answer(2);
  expect(await next).toEqual(["key-2"]);
  expect(await fixture.seen()).toEqual(["key-2"]);
});

test.each([HOUR_MS, 1])("a copy is too old once the clock was set back (by %i ms)", async (ms) => {
  fixture.nowMs += 10;
  await fixture.seen();
  fixture.nowMs -= ms;
  const next = fixture.seen();
  await fixture.answer(1);
  expect(await next).toEqual(["key-1"]);
  expect(await fixture.seen()).toEqual(["key-1"]);
  expect(fixture.asked).toHaveLength(2);
});

test("ages after jumps of the clock", () => {
  let now = 0;
  const clock = new AgeClock({ now: () => now, after: () => () => {} });
  const first = clock.now();
  now = HOUR_MS;
  const ahead = clock.now();
  expect(clock.ageMs(first)).toBe(HOUR_MS);
  now = 5;
  expect([clock.ageMs(first), clock.ageMs(ahead)]).toEqual([Infinity, Infinity]);
  const back = clock.now();
  now = 2 * HOUR_MS;
  expect(clock.ageMs(back)).toBe(2 * HOUR_MS - 5);
  expect(clock.ageMs(first)).toBe(Infinity);
});

describe("a recent view", () => {
  test("is the copy for a second, and then read", async () => {
    fixture.nowMs += 999;
    expect(await fixture.recent()).toEqual(["key-0"]);
    fixture.nowMs += 1;
    const recent = fixture.recent();
    await fixture.answer(1);
    expect(await recent).toEqual(["key-1", "new"]);
    expect(await fixture.recent()).toEqual(["key-1"]);
    expect(await fixture.seen()).toEqual(["key-1"]);
    expect(fixture.asked).toHaveLength(2);
  });

  test("is shared by the requests of a second, and is new only for the first one", async () => {
    fixture.nowMs += 1_000;
    const [first, second] = [fixture.recent(), fixture.recent()];
    await fixture.answer(1);
    expect(await first).toEqual(["key-1", "new"]);
    expect(await second).toEqual(["key-1"]);
    expect(fixture.asked).toHaveLength(2);
  });

  test("doesn't wait for a reading that began a second ago", async () => {
    fixture.nowMs += 1_000;
    void fixture.recent();
    fixture.nowMs += 1_000;
    const second = fixture.recent();
    await fixture.answer(2);
    expect(await second).toEqual(["key-2", "new"]);
  });

  test("is refused if the directory cannot be read, which is tried once a second", async () => {
    fixture.nowMs += 1_000;
    const recent = fixture.recent();
    await fixture.fail(1);
    expect(await recent).toBeUndefined();
    expect(await fixture.recent()).toBeUndefined();
    expect(fixture.asked).toHaveLength(2);
    expect(await fixture.seen()).toEqual(["key-0"]);
    fixture.nowMs += 1_000;
    const later = fixture.recent();
    await fixture.answer(2);
    expect(await later).toEqual(["key-2", "new"]);
  });

  test("[H8] is refused if the directory has gone back in time", async () => {
    fixture.nowMs += 1_000;
    const recent = fixture.recent();
    await fixture.fail(1, "HISTORY_LOST");
    expect(await recent).toBeUndefined();
    expect(await fixture.recent()).toBeUndefined();
    expect(fixture.asked).toHaveLength(2);
  });

  test("is read after a change made by this isolate, and after the clock was set back", async () => {
    fixture.copy.expire();
    const recent = fixture.recent();
    await fixture.answer(1);
    expect(await recent).toEqual(["key-1", "new"]);
    fixture.nowMs -= HOUR_MS;
    const later = fixture.recent();
    await fixture.answer(2);
    expect(await later).toEqual(["key-2", "new"]);
  });
});
