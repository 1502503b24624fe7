import { checkHistory } from "../history/check.ts";
import { thaw } from "./activity.ts";
import { defaultLimits } from "../../src/core/limits.ts";
import type { Cell } from "./cell.ts";
import { nameKey } from "./local.ts";
import { Violation } from "./violation.ts";
import { weatherOf, type Weather } from "./weather.ts";
import { World } from "./world.ts";

export interface RunOptions {
  seed: number;
  steps: number;
  /** Actions to leave out, by index; for shrinking. */
  skipped?: { has: (index: number) => boolean };
  weather?: Weather;
}

export interface RunResult {
  seed: number;
  steps: number;
  actions: number;
  violation: { rule: string; message: string } | undefined;
  /** How often each fault, invariant, rule and activity occurred. */
  seen: Record<string, number>;
  log: readonly string[];
}

/** Events that a whole world may need for one long pause when nobody does anything. */
const REST_STEPS = 20_000;

/** One run: a storm of at least `steps` events, then a calm in which everything must come to rest. */
export async function run({ seed, steps, skipped = new Set(), weather = weatherOf(seed) }: RunOptions): Promise<RunResult> {
  const world = new World(seed, weather, skipped);
  let violation: RunResult["violation"];
  const onRejection = (error: unknown): void => world.fail(error);
  process.on("unhandledRejection", onRejection);
  try {
    await world.start();
    world.act();
    world.tick();
    const last = world.scheduler.steps + steps;
    while (world.scheduler.steps < last && (await world.step()));
    await quiesce(world);
  } catch (error) {
    violation = violationOf(error);
  } finally {
    process.off("unhandledRejection", onRejection);
  }
  const seen: Record<string, number> = {};
  for (const [kind, count] of world.faults.counts) seen[`fault ${kind}`] = count;
  for (const [what, count] of world.judge.seen) seen[what] = count;
  // An alarm that the platform had lost, and that was set again.
  if (world.faults.counts.has("alarm_restored")) seen["M3"] = 1;
  return { seed, steps: world.scheduler.steps, actions: world.actions, violation, seen, log: world.log };
}

/** A crash of the code under test is a finding like any other. */
function violationOf(error: unknown): { rule: string; message: string } {
  if (error instanceof Violation) return { rule: error.rule, message: error.message };
  return { rule: "CRASH", message: `unexpected: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}` };
}

/** Faults end and time passes, with cron and reconciliation as ever: nothing may be left over. */
async function quiesce(world: World): Promise<void> {
  world.stopActing();
  world.faults.calm = true;
  world.faults.partitions = [];
  for (const cell of world.cells) cell.restart();
  await world.settle(world.cron());
  // Longer than any message can be late.
  await world.pass(300_000, REST_STEPS);
  for (const cell of world.cells) await world.settle(thaw(world, cell, world.operator));
  for (let round = 0; round < 3; round += 1) {
    await world.pass(750_000, REST_STEPS);
    await world.settle(world.cron());
    for (const cell of world.cells) await world.settle(cell.reconcile({ full: true, orphanMs: 60_000 }));
    await world.pass(70_000, REST_STEPS);
    await world.settle(world.cron());
  }
  await world.settle(lookAtAll(world));
  checkRest(world);
  for (const cell of world.cells) await world.settle(checkAlive(world, cell));
  checkHistories(world);
}

/** The last word on every name, for the history. */
async function lookAtAll(world: World): Promise<void> {
  for (const name of world.names) await world.router.lookup(world.shardOf(name), [name]);
}

/** A lease that was forgotten may be begun again: the register knows nothing of that, so runs with a short retention go without. */
function checkHistories({ judge, recorder, coordinator }: World): void {
  if (coordinator.limits.outcomeRetentionS < defaultLimits.outcomeRetentionS) return;
  const result = checkHistory(recorder.events);
  judge.check("I18", result.ok, () => (result.ok ? "" : `the history of ${result.bucket} has no order:\n${result.explanation}`));
  judge.check("I18", !result.ok || result.undecided.length === 0, () => "the history of a bucket takes too long to judge");
}

function checkRest(world: World): void {
  const { judge } = world;
  const held = judge.holds()[0];
  judge.check("I11", held === undefined, () => `${held?.canonical} is still held by lease ${held?.lease} of cell ${held?.cell}`);
  for (const { cell, lease, state, isApplied } of judge.facts.values()) {
    judge.check("I11", state !== "GRANTED", () => `lease ${lease} of cell ${cell} is still granted`);
    judge.check("I5", isApplied, () => `lease ${lease} of cell ${cell} is still not applied`);
  }
  for (const cell of world.cells) checkCell(world, cell);
  checkRecord(world);
  const rows = world.cells.reduce((sum, { local }) => sum + local.rows.size, 0);
  judge.check("I5", judge.claims().length === rows, () => `there are ${judge.claims().length} claims for ${rows} rows of the cells`);
}

/** Every lease that a ledger remembers is in the fleet record as it is, and no other is outstanding there. */
function checkRecord({ judge, cronJob }: World): void {
  const recorded = new Map(cronJob.record.leases().map((row) => [`${row.cell_id}/${row.uuid}`, row]));
  for (const [key, fact] of judge.facts) {
    const row = recorded.get(key);
    judge.check(
      "I13",
      row?.state === fact.state && row.position === fact.position,
      () => `the fleet record says ${row?.state} of lease ${key}, which is ${fact.state}`,
    );
  }
  // An outcome that waited too long for a cron is forgotten unpulled; the stale listing meets it, asks the ledger and drops it.
  const isLeft = (key: string, { cell_id, uuid }: { cell_id: string; uuid: string }): boolean =>
    judge.facts.get(key)?.state !== "GRANTED" && !judge.wasUnpulled(cell_id, uuid);
  const outstanding = [...recorded].find(([key, row]) => row.state === "GRANTED" && isLeft(key, row));
  judge.check("I13", outstanding === undefined, () => `the fleet record has lease ${outstanding?.[0]} as outstanding`);
}

/** After all that, a cell can work as on its first day: nothing counts what is over. */
async function checkAlive({ judge, coordinator }: World, cell: Cell): Promise<void> {
  const part = coordinator.ledger(cell.id);
  const kept = part.disk.readDurable<{ value: number }>("SELECT value FROM meta WHERE name = 'fences'")[0]?.value ?? 0;
  const fences = part.disk.readDurable("SELECT 1 FROM lease WHERE fence = 1").length;
  judge.check("I16", kept === fences, () => `cell ${cell.id} counts ${kept} fences and has ${fences}`);
  const { concurrentBegins, outstandingLeases } = coordinator.limits;
  for (let round = 0; round <= Math.min(5, Math.max(concurrentBegins, outstandingLeases)); round += 1) {
    const id = `9${round}`;
    const row = {
      type: "ROUTES" as const,
      canonical: `probe-${cell.id}`,
      value: `probe-${cell.id}`,
      subject: { type: "GROUP", id },
      source: { type: "RAILS_TABLE_ROUTES", id },
    } as never;
    const lease = `00000000-0000-4000-8000-0000000${cell.id}000${round}`;
    const batch = { lease, ops: cell.opsOf({ creates: [row], destroys: [], replaces: [] }), allowMissing: false };
    let begun = await cell.api.begin(cell.id, cell.caller, batch);
    // Some weathers have disks that are slower than the shortest timeouts.
    for (let tried = 1; begun.kind !== "ok" && tried < 20; tried += 1) {
      await cell.api.sleep(1_000);
      begun = await cell.api.begin(cell.id, cell.caller, batch);
    }
    judge.check(
      "I16",
      begun.kind === "ok",
      () => `in all calm cell ${cell.id} begins a lease of a free name and is answered ${JSON.stringify(begun)}`,
    );
    await cell.api.decide(cell.id, cell.caller, lease, "ROLLED_BACK");
  }
}

/** The cell's database and the coordinator agree, to the last field. */
function checkCell({ judge }: World, { id, local }: Cell): void {
  const claims = new Map(judge.claims().map((claim) => [claim.canonical, claim]));
  for (const row of local.rows.values()) {
    const claim = claims.get(row.canonical);
    const isSame = claim?.cell === id && claim.value === row.value && claim.subject_id === row.subject.id && claim.source_id === row.source.id;
    judge.check("I5", isSame, () => `cell ${id} has ${nameKey(row)} as ${row.value} from source ${row.source.id}, and its claim differs`);
  }
  const left = [...local.outstanding.keys()][0];
  judge.check("I5", left === undefined, () => `cell ${id} still has lease ${left} as outstanding`);
}
