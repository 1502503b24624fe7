import { ask } from "../../../kernel/ask.ts";
import type { Result } from "../../../kernel/refusal.ts";
import type { ScrubStatus, ScrubStep, ScrubWork } from "../messages.ts";
import type { Objects } from "../../../objects/objects.ts";
import { CALL_TIMEOUT_MS, type CronRun } from "../../../cron/cron-run.ts";
import { causeOf } from "../../../d1/database.ts";

/** A ledger or shard that a run has woken. */
interface ScrubbedPart {
  /** The part's id in the API. */
  part: string;
  work: ScrubWork;
  step: (message: ScrubStep) => Promise<Result<ScrubStatus>>;
}

/** The steps of one part in one run (Z5). */
const STEPS_PER_PART = 5;

/** The time between two runs of the cron. */
const RUN_EVERY_MS = 60_000;

/** The steps of one run: a fifth of the calls that the platform allows an invocation of a Worker. */
const STEPS_PER_RUN = 2_000;

/** The parts that have said how far their scrub is. */
export const scrubbedParts = (
  objects: Objects,
  visits: readonly { cell: string; scrub: ScrubWork | null }[],
  shards: readonly { shard: number; scrub: ScrubWork | null }[],
): ScrubbedPart[] => [
  ...shards.flatMap(({ shard, scrub: work }): ScrubbedPart[] =>
    work === null
      ? []
      : [{ part: `shard-${shard}`, work, step: (message) => objects.shard(shard).scrub(message) }],
  ),
  ...visits.flatMap(({ cell, scrub: work }): ScrubbedPart[] =>
    work === null
      ? []
      : [{ part: `ledger-${cell}`, work, step: (message) => objects.ledger(cell).scrub(message) }],
  ),
];

/**
 * Continues the scrubs that are due, until the run has no time or no steps left. The parts take turns, and
 * each run begins with another one. Runs that overlap share steps or make more of them, which does no harm
 * (Z4).
 */
export async function scrub(run: CronRun, parts: readonly ScrubbedPart[]): Promise<void> {
  const due = parts.filter(({ work }) => work.isDue);
  if (due.length === 0) return;
  const { clock, log } = run.runtime;
  const first = Math.floor(run.scheduledAtMs / RUN_EVERY_MS) % due.length;
  const queue = [...due.slice(first), ...due.slice(0, first)].map((part) => ({ part, left: STEPS_PER_PART }));
  const rules = await readRules(run);
  let steps = STEPS_PER_RUN;
  const takeTurns = async (): Promise<void> => {
    while (steps > 0 && clock.now() < run.deadlineMs) {
      const next = queue.shift();
      if (next === undefined) return;
      steps -= 1;
      const { part, left } = next;
      if ((await hasMore(run, part, rules)) && left > 1) queue.push({ part, left: left - 1 });
    }
  };
  await Promise.all(Array.from({ length: Math.min(run.limits.fanOut, queue.length) }, takeTurns));
  const postponed = queue.filter(({ left }) => left === STEPS_PER_PART).length;
  if (postponed > 0) log("scrubs_postponed", { parts: postponed, due: due.length });
}

/** Carries out one step. Returns whether the pass has more. */
async function hasMore(
  { envelope, runtime }: CronRun,
  { part, step }: ScrubbedPart,
  rules: NonNullable<ScrubStep["rules"]>,
): Promise<boolean> {
  const stepped = await ask(runtime.clock, CALL_TIMEOUT_MS, async () =>
    step({ ...envelope, begin: "when_due", rules }),
  );
  if (stepped.kind === "ok") return stepped.value.running !== null;
  runtime.log("scrub_failed", { part, error: causeOf(stepped) });
  return false;
}

/** The rules of the types in use. Without the directory, canonical forms are not checked in this run. */
async function readRules({ envelope, objects, runtime }: CronRun): Promise<NonNullable<ScrubStep["rules"]>> {
  const read = await ask(runtime.clock, CALL_TIMEOUT_MS, async () => objects.directory().types(envelope));
  if (read.kind !== "ok") return [];
  return read.value.entries.flatMap(({ kind, number, rule, isInUse }) =>
    kind === "bucket" && isInUse && rule !== null ? [[number, rule] as [number, typeof rule]] : [],
  );
}
