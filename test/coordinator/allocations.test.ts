/**
 * Counts the objects that a shard makes for an exchange. A hook costs one walk of an array when nobody has
 * anything to do, so the capabilities must not add objects to each name.
 */
import { Session } from "node:inspector/promises";
import { expect, test } from "vitest";
import type { Exchange } from "../../src/coordinator/kernel/messages.ts";
import { Cluster } from "../support/cluster.ts";
import { exchangeOf, opsOf } from "../support/ops.ts";

const NAMES = 16;
const WARM_UP = 200;
const EXCHANGES = 20;

interface ProfileNode {
  id: number;
  callFrame: { url: string };
  children: ProfileNode[];
}

/** The declared type of the runtime lacks the samples and the ids of nodes. */
interface Profile {
  head: ProfileNode;
  samples: { nodeId: number }[];
}

/** Returns the objects per exchange that functions of `folder` have made. Every allocation is sampled. */
async function objectsOf(folder: string, work: () => Promise<void>): Promise<number> {
  const session = new Session();
  session.connect();
  await session.post("HeapProfiler.startSampling", {
    samplingInterval: 1,
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC: true,
  });
  await work();
  const { profile } = (await session.post("HeapProfiler.stopSampling")) as unknown as { profile: Profile };
  session.disconnect();
  const own = new Set<number>();
  const visit = ({ id, callFrame, children }: ProfileNode): void => {
    if (callFrame.url.includes(folder)) own.add(id);
    children.forEach(visit);
  };
  visit(profile.head);
  return profile.samples.filter(({ nodeId }) => own.has(nodeId)).length / EXCHANGES;
}

test("an exchange of 16 names makes few objects, and the capabilities hardly any", async () => {
  const c = await Cluster.start({ shards: 1 });
  const shard = c.shard(0).object;
  let counter = 0;
  const exchange = (): Exchange => {
    counter += 1;
    const names = Array.from({ length: NAMES }, (_, n) => `name-${counter}-${n}`);
    const attempt = { cell: "1", lease: c.uuid(), incarnation: 7, counter };
    const ops = opsOf(c.envelope.placement, names);
    return exchangeOf(c.envelope, "1", { prepares: [{ ...attempt, ops, allowMissing: false }] });
  };
  const carryOut = async (exchanges: readonly Exchange[]): Promise<void> => {
    for (const message of exchanges) expect((await c.clock.runUntil(shard.exchange(message))).ok).toBe(true);
  };
  const many = (length: number): Exchange[] => Array.from({ length }, exchange);
  await carryOut(many(WARM_UP));
  const [first, second] = [many(EXCHANGES), many(EXCHANGES)];
  const all = await objectsOf("/src/coordinator/", () => carryOut(first));
  const ofCapabilities = await objectsOf("/src/coordinator/capabilities/", () => carryOut(second));
  expect(all).toBeLessThan(72 * NAMES);
  expect(ofCapabilities).toBeLessThan(2 * NAMES);
});
