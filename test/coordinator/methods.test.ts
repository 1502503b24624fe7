/** Tests that each method of the objects checks what its level says, whatever else its message has. */
import { describe, expect, test } from "vitest";
import * as kinds from "../../src/coordinator/capabilities/index.ts";
import type { Result } from "../../src/coordinator/kernel/refusal.ts";
import type { Envelope } from "../../src/coordinator/kernel/messages.ts";
import { method, type MethodList } from "../../src/coordinator/kernel/method.ts";
import { Cluster } from "../support/cluster.ts";
import { callerOf, keyOf } from "../support/ops.ts";

type Calls = Readonly<Record<string, (message: Envelope) => Promise<Result<unknown>>>>;

const lists = [
  ["ledger", kinds.ledger.methods, (c: Cluster) => c.ledger("1").object],
  ["shard", kinds.shard.methods, (c: Cluster) => c.shard(0).object],
  ["directory", kinds.directory.methods, (c: Cluster) => c.directory.object],
] as const;

/** The platform gives these names a meaning of its own. */
const RESERVED_NAMES = new Set(["alarm", "connect", "constructor", "fetch", "then"]);

/** A point that no object of these tests has reached. */
const LATER = { incarnation: 2 ** 45, position: 1 };

/** What the checks of some methods read, besides what every message has. */
const content = {
  caller: callerOf(),
  cell: "1",
  id: "a",
  party: "to",
  lease: "a",
  keys: [keyOf("ROUTES", "ada")],
  questions: [],
  decisions: [],
  prepares: [],
  executions: [],
  growth: { from: 1, to: 2 },
};

/** Returns the reason why a method refuses a message. An error means that it has begun to carry it out. */
async function reasonOf(c: Cluster, calls: Calls, name: string, change: Partial<Envelope>): Promise<unknown> {
  const message = { ...c.envelope, ...content, ...change };
  const answer = await c.clock.runUntil((async () => calls[name]?.(message))().catch(() => undefined));
  return answer?.ok === false ? answer.refusal.reason : undefined;
}

describe.each(lists)("each method of a %s", (kind, methods: MethodList, objectOf) => {
  const names = Object.keys(methods);

  /** The names of those methods that refuse a message for a reason. */
  async function refusing(
    reason: string,
    change: (c: Cluster) => Partial<Envelope>,
    prepare: (c: Cluster, calls: Calls) => Promise<unknown> = async () => {},
  ): Promise<string[]> {
    const refused: string[] = [];
    for (const name of names) {
      const c = await Cluster.start({ shards: 1 });
      const calls = objectOf(c) as unknown as Calls;
      await reasonOf(c, calls, "part", {});
      await prepare(c, calls);
      if ((await reasonOf(c, calls, name, change(c))) === reason) refused.push(name);
    }
    return refused;
  }

  const withLevel = (...levels: string[]): string[] =>
    names.filter((name) => levels.includes(methods[name]?.level ?? ""));

  test("exists, and has a name that the platform does not use itself", async () => {
    const object = objectOf(await Cluster.start());
    expect(names.filter((name) => !Object.hasOwn(object, name))).toEqual([]);
    expect(names.filter((name) => RESERVED_NAMES.has(name))).toEqual([]);
  });

  test("[P1] refuses another placement, unless its level is `unplaced`", async () => {
    const placement = ({ envelope }: Cluster) => ({ placement: `${envelope.placement}0` });
    expect(await refusing("PLACEMENT_MISMATCH", placement)).toEqual(
      withLevel("always", "peer", "call", "read", "whole"),
    );
  });

  test("[H4] refuses when its object has gone back in time, unless its level is `always`", async () => {
    const notice = (c: Cluster, calls: Calls) =>
      reasonOf(c, calls, { ledger: "status", shard: "ping", directory: "snapshot" }[kind], { seen: LATER });
    expect(await refusing("HISTORY_LOST", () => ({}), notice)).toEqual(
      withLevel("unplaced", "peer", "call", "read", "whole"),
    );
  });

  test("[A1] refuses a revoked key of a cell, if its level is `call`", async () => {
    const revoke = async (c: Cluster) =>
      c.clock.runUntil(c.ledger("1").object.revoke({ ...c.envelope, ...callerOf() }));
    expect(await refusing("KEY_REVOKED", () => ({}), revoke)).toEqual(withLevel("call"));
  });
});

test("no list has two methods with one name", () => {
  const twice = {
    // oxlint-disable-next-line no-dupe-keys
    lookup: method("read"),
    // @ts-expect-error The compiler refuses a second property of the same name.
    lookup: method("peer"),
  };
  expect(Object.keys(twice)).toEqual(["lookup"]);
});
