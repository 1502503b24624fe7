/** What routers do, and what happens to them. */
import { nameKey } from "./local.ts";
import type { Random } from "./random.ts";
import type { Question, SimulatedRouter } from "./routers.ts";
import type { Simulation } from "./simulation.ts";

/** The clock of a router is set by at most this much at a time. */
const MOST_CLOCK_MS = 20_000;

/** A request that comes to a router. */
export async function route(simulation: Simulation, random: Random): Promise<void> {
  const router = drawRouter(simulation, random);
  if (router === undefined) return;
  if (random.chance(0.25)) return router.findMany(random.some(simulation.routedNames, 4));
  const name = random.pick(simulation.routedNames);
  // Several requests for one name come at once, so that they share a question.
  const count = random.chance(0.2) ? 2 : 1;
  const questions = Array.from({ length: count }, () => ({ name, isUpperCase: random.chance(0.1) }));
  await Promise.all(questions.map((question) => router.find(question)));
}

/** A client that has just written comes back with the positions of its lease (Q9). */
export async function routeOwn(simulation: Simulation, random: Random): Promise<void> {
  const router = drawRouter(simulation, random);
  const writes = simulation.judge.routes?.writes ?? [];
  if (router === undefined || writes.length === 0) return;
  const own = random.chance(0.7) ? writes.at(-1) : random.pick(writes);
  if (own === undefined) return;
  const question: Question = { name: random.pick(own.names), isUpperCase: random.chance(0.1), own };
  await router.find(question);
}

/** A cell that does not have the name answers 421, and the router asks once more. */
export async function heal(simulation: Simulation, random: Random): Promise<void> {
  const router = drawRouter(simulation, random);
  if (router === undefined) return;
  const name = random.pick(simulation.routedNames);
  const answer = await router.find({ name, isUpperCase: false });
  if (answer.kind !== "found") return;
  const { shard, position, cell } = answer;
  if (simulation.judge.inUse.get(nameKey(name)) === cell.id && random.chance(0.8)) return;
  await router.refresh(name, { shard, position });
}

export async function restartRouter(simulation: Simulation, random: Random): Promise<void> {
  drawRouter(simulation, random)?.restart();
}

/**
 * Sets the clock of a router. A clock that was set back is noticed at the next lookup, so one follows at
 * once: nobody could tell it from a clock that went slowly.
 */
export async function setRouterClock(simulation: Simulation, random: Random): Promise<void> {
  const router = drawRouter(simulation, random);
  if (router === undefined) return;
  router.setClock(random.between(-MOST_CLOCK_MS, MOST_CLOCK_MS));
  await router.find({ name: random.pick(simulation.routedNames), isUpperCase: false });
}

/** A router cannot reach any shard for some time. */
export async function cutRouter(simulation: Simulation, random: Random): Promise<void> {
  const router = drawRouter(simulation, random);
  if (router === undefined) return;
  const untilMs = simulation.scheduler.nowMs + random.exponential(random.pick([500, 5_000]));
  for (const { name } of simulation.coordinator.allShards)
    simulation.faults.partitions.push({ parts: [router.address, name], untilMs });
}

const drawRouter = ({ routers }: Simulation, random: Random): SimulatedRouter | undefined =>
  routers.length === 0 ? undefined : random.pick(routers);
