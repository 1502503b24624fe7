/** The positions that callers want come from clients, which can send any number (Q9). */
import { describe, expect, test } from "vitest";
import type { RouteAnswer } from "../../../src/users/router/lookups/routes.ts";
import { name, world, type World } from "./scripted-source.ts";

const byAge = { reports: false };
const HUGE = Number.MAX_SAFE_INTEGER;

const wanting = (position: number): { minPositions: Map<number, number> } => ({
  minPositions: new Map([[0, position]]),
});

/** A router that remembers `a`, and clients that send positions which the shard has not reached. */
async function attacked(): Promise<World & { refused: number[] }> {
  const refused: number[] = [];
  const given = world(byAge, { onPositionRefused: ({ shard }) => void refused.push(shard) });
  given.source.claim("a", "1");
  given.source.delayMs = 20;
  await given.clock.runUntil(given.routes.find(name("a")));
  return { ...given, refused };
}

describe("[Q9] positions that no shard has reached", () => {
  test("cost at most ten questions a second, whichever they are", async () => {
    const { clock, source, routes, refused } = await attacked();
    const answers: Promise<RouteAnswer>[] = [];
    for (let call = 0; call < 1_000; call += 1) {
      answers.push(routes.find(name("a"), wanting(HUGE - call)));
      await clock.pass(1);
    }
    const kinds = (await clock.runUntil(Promise.all(answers))).map(({ kind }) => kind);
    expect(new Set(kinds)).toEqual(new Set(["unavailable"]));
    expect(source.count("find a")).toBeLessThanOrEqual(1 + 12);
    expect(refused).toEqual(Array.from({ length: 1_000 }, () => 0));
    expect(await routes.find(name("a"))).toMatchObject({ kind: "found", layer: "memory" });
  });

  test("share the questions about a name that the router does not know", async () => {
    const { clock, source, routes } = await attacked();
    const calls = Array.from({ length: 50 }, (_, call) => routes.find(name("new"), wanting(HUGE - call)));
    await clock.runUntil(Promise.all(calls));
    expect(source.count("find new")).toBe(1);
  });

  test("cost no more questions at a time than names, also while the coordinator hangs", async () => {
    const { clock, source, routes } = await attacked();
    source.isSilent = true;
    const calls: Promise<RouteAnswer>[] = [];
    for (let call = 0; call < 1_100; call += 1) {
      calls.push(routes.find(name("new"), wanting(HUGE - call)));
      await clock.turn();
    }
    const answers = await clock.runUntil(Promise.all(calls));
    expect(source.count("find new")).toBe(1_024);
    expect(answers.at(-1)).toMatchObject({ kind: "unavailable", detail: expect.stringMatching("too many") });
  });

  test("are answered at once while questions are paused", async () => {
    const { clock, source, routes } = await attacked();
    source.isDown = true;
    for (const other of ["b", "c", "d", "e", "f"]) await clock.runUntil(routes.find(name(other)));
    const before = clock.now();
    const calls = Array.from({ length: 100 }, (_, n) => routes.find(name("a"), wanting(HUGE - n)));
    const answers = await clock.runUntil(Promise.all(calls));
    expect(new Set(answers.map(({ kind }) => kind))).toEqual(new Set(["unavailable"]));
    expect(clock.now()).toBe(before);
  });

  test("don't hold up a client that carries its own position", async () => {
    const { clock, source, routes } = await attacked();
    // Somebody guesses the positions that the next writes will get.
    const guesses = Array.from({ length: 20 }, (_, n) =>
      routes.find(name("a"), wanting(source.position + 1 + n)),
    );
    await clock.runUntil(Promise.all(guesses));
    source.claim("a", "2");
    const before = clock.now();
    const own = routes.find(name("a"), wanting(source.position));
    const others = Array.from({ length: 100 }, (_, n) => routes.find(name("a"), wanting(HUGE - n)));
    expect(await clock.runUntil(own)).toMatchObject({ kind: "found", cell: { id: "2" } });
    expect(clock.now() - before).toBeLessThanOrEqual(100 + 20);
    await clock.runUntil(Promise.all(others));
  });

  test("don't make a true position wait once some time has passed", async () => {
    const { clock, source, routes } = await attacked();
    await clock.runUntil(routes.find(name("a"), wanting(HUGE)));
    await clock.pass(10_000);
    for (const cell of ["2", "1", "2"]) {
      source.claim("a", cell);
      const before = clock.now();
      expect(await clock.runUntil(routes.find(name("a"), wanting(source.position)))).toMatchObject({
        cell: { id: cell },
      });
      expect(clock.now() - before).toBe(20);
    }
  });

  test("don't touch the other names of a call", async () => {
    const { clock, source, routes } = await attacked();
    const names = [name("a"), name("b"), name("c")];
    const [a, ...others] = await clock.runUntil(
      routes.findMany(names, { minPositions: new Map([[7, HUGE]]) }),
    );
    expect([a?.kind, ...others.map(({ kind }) => kind)]).toEqual(["found", "none", "none"]);
    expect(source.count("find")).toBe(2);
  });
});

describe("[Q9] a true position", () => {
  test("is not answered from a question that was sent before it", async () => {
    const { clock, source, routes } = await attacked();
    await clock.pass(5_001);
    const plain = routes.find(name("a"));
    await clock.pass(10);
    source.claim("a", "2");
    const before = clock.now();
    const own = await clock.runUntil(routes.find(name("a"), wanting(source.position)));
    expect(own).toMatchObject({ cell: { id: "2" }, position: source.position });
    expect(clock.now() - before).toBe(20);
    expect(await plain).toMatchObject({ kind: "found" });
  });

  test("is sent to the coordinator if an HTTP cache has an older answer", async () => {
    const { clock, source, routes } = await attacked();
    const { position } = source;
    source.claim("a", "2");
    const key = "a".padEnd(16, "0");
    const read = { key, shard: 0, position, settled: true, ageMs: 1_000 };
    source.next.push({
      kind: "found",
      cell: { id: "1", address: "https://cell-1.example.com" },
      epoch: 101,
      ...read,
    });
    const own = routes.find(name("a"), wanting(source.position));
    expect(await clock.runUntil(own)).toMatchObject({ cell: { id: "2" } });
    expect(source.asked.at(-1)).toBe(`find a 0,${source.position}`);
  });

  test("from before the shard went back is refused, and later ones are believed again", async () => {
    const { clock, source, routes } = await attacked();
    const lost = source.position;
    await clock.pass(5_001);
    source.position -= 1;
    expect(await clock.runUntil(routes.find(name("b"), wanting(lost)))).toMatchObject({
      kind: "unavailable",
    });
    expect(await clock.runUntil(routes.find(name("b"), wanting(lost)))).toMatchObject({
      kind: "unavailable",
    });
    source.claim("b", "3");
    const own = routes.find(name("b"), wanting(source.position));
    expect(await clock.runUntil(own)).toMatchObject({ kind: "found", cell: { id: "3" } });
  });
});
