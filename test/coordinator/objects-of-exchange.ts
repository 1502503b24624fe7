/** Prints the objects that a shard makes for an exchange of 16 names. `allocations.test.ts` runs it. */
import { Session } from "node:inspector/promises";
import type { Exchange } from "../../src/coordinator/kernel/messages.ts";
import { Cluster } from "../support/cluster.ts";
import { exchangeOf, opsOf } from "../support/ops.ts";

const NAMES = 16;
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

const c = await Cluster.start({ shards: 1 });
const shard = c.shard(0).object;
let counter = 0;

function exchange(): Exchange {
  counter += 1;
  const names = Array.from({ length: NAMES }, (_, n) => `name-${counter}-${n}`);
  const attempt = { cell: "1", lease: c.uuid(), incarnation: 7, counter };
  const ops = opsOf(c.envelope.placement, names);
  return exchangeOf(c.envelope, "1", { prepares: [{ ...attempt, ops, allowMissing: false }] });
}

async function carryOut(exchanges: readonly Exchange[]): Promise<void> {
  for (const message of exchanges) {
    const answer = await c.clock.runUntil(shard.exchange(message));
    if (!answer.ok || answer.value.prepares.some(({ granted }) => !granted))
      throw new Error("an exchange was refused");
  }
}

const many = (): Exchange[] => Array.from({ length: EXCHANGES }, exchange);
await carryOut(many());
const [first, second] = [many(), many()];
const all = await objectsOf("/src/coordinator/", () => carryOut(first));
const ofCapabilities = await objectsOf("/src/coordinator/capabilities/", () => carryOut(second));
process.stdout.write(JSON.stringify({ all, ofCapabilities }));
