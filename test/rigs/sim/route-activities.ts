/** What routers do, and what happens to them. */
import type { Cell } from "./cell.ts";
import { drawNewRows, drawOwnRows, drawRow } from "./draw-rows.ts";
import { nameKey, type Name } from "./local.ts";
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
  const questions = Array.from({ length: count }, () => ({ name, isUpperCase: random.chance(0.3) }));
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

/**
 * A name changes while an answer about it is on its way to a router. Then the other routers ask, which may
 * share a cache with it.
 */
export async function overtake(simulation: Simulation, cell: Cell, random: Random): Promise<void> {
  const [router, ...others] = random.shuffle(simulation.routers);
  const changed = (name: Name): Promise<void> =>
    new Promise((resolve) => simulation.judge.routes?.whenChanged(name, resolve));
  const owned = drawOwnRows(cell, random, 1);
  const replaces = owned.map((row) => drawRow(row, cell, random));
  const creates = owned.length === 0 ? drawNewRows(simulation, cell, random, 1) : [];
  const [name] = [...owned, ...creates];
  if (router === undefined || name === undefined) return;
  const question = { name, isUpperCase: false };
  const late = router.findLate(
    question,
    changed(name).then(() => cell.api.sleep(random.exponential(5))),
  );
  await cell.api.sleep(random.exponential(20));
  await cell.update({ creates, destroys: [], replaces, allowMissing: false, isAbandoned: false });
  await late;
  await cell.api.sleep(random.exponential(10));
  await Promise.all(others.map((other) => other.find(question)));
}

/** Names move to other shards while answers about them are on their way to a router. */
export async function overtakeByMove(simulation: Simulation, random: Random): Promise<void> {
  const router = drawRouter(simulation, random);
  if (router === undefined) return;
  const { promise: moved, resolve } = Promise.withResolvers<void>();
  const late = simulation.routedNames.map((name) => router.findLate({ name, isUpperCase: false }, moved));
  for (let left = 8; left > 0; left -= 1) {
    await simulation.operator.sleep(random.exponential(50));
    await Promise.all(simulation.routedNames.map((name) => router.find({ name, isUpperCase: true })));
  }
  resolve();
  await Promise.all(late);
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
