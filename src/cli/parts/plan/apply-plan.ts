import { isLeaseholdError, type Client, type LeaseholdError } from "../../../client/index.ts";
import type { Batch } from "../../../client/api-types.ts";
import { countOf } from "../../../text/count-of.ts";
import { escapeControls } from "../../../text/escape.ts";
import { commandLine } from "../../../text/shell-word.ts";
import { leaseIdOf } from "../../backup/lease-id.ts";
import { untilAnswered } from "../../backup/until-answered.ts";
import { CommandError } from "../../framework/command-error.ts";
import type { Context } from "../../framework/context.ts";
import { exitCodes } from "../../framework/exit-codes.ts";
import type { Io } from "../../framework/io.ts";
import { fields } from "../../output/table.ts";
import type { Result } from "../../output/result.ts";
import { confirm, reasonOf, type ChangeOptions } from "../../safety/confirm.ts";
import { readPlan, type Plan, type PlanLine } from "./plan-file.ts";
import { requireReconciling } from "./reconciling-shard.ts";

type List = "creates" | "destroys" | "replaces";
type ApiOp = NonNullable<Batch[List]>[number];

/** One op of the plan. A move is a destroy and then a create. */
interface Step {
  cell: string;
  list: List;
  op: ApiOp;
  name: string;
}

interface Done {
  claimed: number;
  released: number;
  replaced: number;
  /** What the plan wants is so already, from an earlier run or from a verification. */
  present: number;
  /** The first names that are no longer as they were when the plan was made, or that leases hold. */
  left: { name: string; cell_id: string; because: string }[];
}

/** Both are far below what a begin may have by default. */
const OPS_PER_LEASE = 500;
const CHARS_PER_LEASE = 300_000;

const COUNTED = { creates: "claimed", destroys: "released", replaces: "replaced" } as const;

/**
 * Carries out a plan, with leases that count as part of a verification (J3). A run that repeats another one
 * finds the same leases, and goes on.
 */
export async function applyPlan(
  context: Context,
  id: string,
  path: string,
  options: ChangeOptions,
): Promise<Result> {
  const reason = reasonOf(options);
  const plan = await readPlan(path);
  await requireSameLoss(context, id, plan);
  const undecided = plan.lines.filter((line) => line.do === null).length;
  const steps = stepsOf(plan);
  const contents: [string, string | number][] = [
    ["names", plan.lines.length],
    ["to carry out", plan.lines.filter((line) => line.do !== null && line.do !== "leave").length],
    ["to leave", plan.lines.filter((line) => line.do === "leave").length],
    ["undecided", undecided],
  ];
  if (options.dryRun === true)
    return {
      document: { part: id, file: path, ...Object.fromEntries(contents), changed: false, dry_run: true },
      text: () => fields(contents),
      notes: ["Nothing was changed."],
      nextSteps: [`${commandLine("parts", "apply", id, path)} --reason TEXT`],
    };
  await confirm(context, options, {
    name: id,
    effect: `This claims and releases names of ${id} as ${path} says, because: ${reason}`,
  });
  const client = await context.client();
  const done: Done = { claimed: 0, released: 0, replaced: 0, present: 0, left: [] };
  for (const list of ["destroys", "replaces", "creates"] as const)
    for (const batch of batchesOf(steps.filter((step) => step.list === list)))
      await carryOut(context.io, client, plan, batch, reason, done);
  return resultOf(id, done, undecided);
}

async function requireSameLoss(context: Context, id: string, { header }: Plan): Promise<void> {
  const { loss } = await requireReconciling(context, id);
  if (header.part === id && header.loss_noticed_at === loss.noticed_at) return;
  throw new CommandError(
    `the plan is for the loss of ${escapeControls(header.part)} that was noticed at ` +
      `${escapeControls(header.loss_noticed_at)}, and that of ${id} was noticed at ${loss.noticed_at}`,
    exitCodes.conflict,
  );
}

function stepsOf({ lines }: Plan): Step[] {
  return lines.flatMap((line) => {
    const { name, now, known } = line;
    const step = (list: List, cell: string, op: object): Step => ({
      cell,
      list,
      op: op as ApiOp,
      name: `${name.type} ${name.value}`,
    });
    const isChanged = line.do !== null && line.do !== "leave";
    const ends = isChanged && line.do !== "claim" && line.do !== "replace" && now !== null;
    const destroy = ends
      ? [step("destroys", now.cell_id, { bucket: spelled(line, now), epoch: now.epoch })]
      : [];
    if (!isChanged || known === null) return destroy;
    const { subject, source, scope } = known;
    const claim = { bucket: spelled(line, known), subject, source, ...(scope && { scope }) };
    if (line.do === "replace" && now !== null)
      return [step("replaces", known.cell_id, { ...claim, epoch: now.epoch })];
    return [...destroy, step("creates", known.cell_id, claim)];
  });
}

const spelled = ({ name }: PlanLine, { value = name.value }: { value?: string }): PlanLine["name"] => ({
  ...name,
  value,
});

function* batchesOf(steps: readonly Step[]): Generator<Step[], void, undefined> {
  for (const ofCell of Map.groupBy(steps, ({ cell }) => cell).values()) {
    let batch: Step[] = [];
    let chars = 0;
    for (const step of ofCell) {
      const length = JSON.stringify(step.op).length;
      if (batch.length === OPS_PER_LEASE || (batch.length > 0 && chars + length > CHARS_PER_LEASE)) {
        yield batch;
        batch = [];
        chars = 0;
      }
      batch.push(step);
      chars += length;
    }
    if (batch.length > 0) yield batch;
  }
}

async function carryOut(
  io: Io,
  client: Client,
  { header }: Plan,
  batch: readonly Step[],
  reason: string,
  done: Done,
): Promise<void> {
  let left = batch;
  for (let attempt = 0; ; attempt += 1) {
    const [first] = left;
    if (first === undefined) return;
    const { cell, list } = first;
    const { leases } = client.forCell(cell);
    const ops = left.map(({ op }) => op);
    const uuid = leaseIdOf([header.part, header.loss_noticed_at, cell, attempt, list, ops]);
    const refusal = await untilAnswered(io, async () => {
      try {
        const { state } = await leases.begin({ [list]: ops, verification: true }, { uuid });
        if (state === "GRANTED") await leases.commit(uuid, { reason });
        return undefined;
      } catch (error) {
        const isFinal =
          isLeaseholdError(error) && (error.conflicts.length > 0 || error.reason === "LEASE_ROLLED_BACK");
        if (isFinal) return error;
        throw error;
      }
    });
    if (refusal === undefined) {
      done[COUNTED[list]] += left.length;
      return;
    }
    const rest = withoutConflicts(left, refusal, done);
    if (rest.length === left.length && refusal.reason !== "LEASE_ROLLED_BACK") throw refusal;
    left = rest;
  }
}

/** Leaves out what stands in the way. Nothing is changed that is no longer as the plan says. */
function withoutConflicts(steps: readonly Step[], { conflicts }: LeaseholdError, done: Done): Step[] {
  const kinds = new Map(conflicts.map((conflict) => [conflict.index, conflict]));
  return steps.filter(({ cell, list, name }, index) => {
    const conflict = kinds.get(index);
    if (conflict === undefined) return true;
    const { kind, owner } = conflict;
    const isSo = (list === "creates" && kind === "taken" && owner === "self") || isEnded(list, kind);
    if (isSo) done.present += 1;
    else done.left.push({ name, cell_id: cell, because: BECAUSE[kind] ?? kind });
    return false;
  });
}

/** A claim that is gone, or that another cell has by now, was released. */
const isEnded = (list: List, kind: string): boolean =>
  list === "destroys" && (kind === "absent" || kind === "not_owner");

const BECAUSE: Readonly<Record<string, string>> = {
  taken: "another cell has it",
  leased: "a lease holds it",
  absent: "nobody has it any more",
  not_owner: "another cell has it",
  mismatch: "its claim has changed since the plan was made",
};

const MAX_LISTED = 100;

function resultOf(id: string, { left, ...done }: Done, undecided: number): Result {
  return {
    document: { part: id, ...done, left, undecided, changed: true, dry_run: false },
    text: () =>
      fields([
        ["claimed", done.claimed],
        ["released", done.released],
        ["replaced", done.replaced],
        ["was so already", done.present],
        ["left as it is", left.length],
        ["undecided", undecided],
      ]),
    notes: [
      ...left
        .slice(0, MAX_LISTED)
        .map(({ name, cell_id: cell, because }) => `${escapeControls(name)}, cell ${cell}: ${because}.`),
      ...(undecided === 0 ? [] : [`${countOf(undecided, "name")} of the plan: nobody has decided.`]),
      "Let every cell verify twice without changes, then finish the shard.",
    ],
    nextSteps: ["leasehold verify status", `${commandLine("parts", "finish", id)} --reason TEXT`],
    exitCode: left.length === 0 && undecided === 0 ? exitCodes.ok : exitCodes.drift,
  };
}
