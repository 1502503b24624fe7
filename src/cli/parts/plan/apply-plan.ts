import { countOf } from "../../../text/count-of.ts";
import { escapeControls } from "../../../text/escape.ts";
import { commandLine } from "../../../text/shell-word.ts";
import { shardsOf } from "../../../core/placement.ts";
import { bodyOf } from "../../connection/send.ts";
import { CommandError, usageError } from "../../framework/command-error.ts";
import type { Context } from "../../framework/context.ts";
import { exitCodes } from "../../framework/exit-codes.ts";
import { fields } from "../../output/table.ts";
import type { Result } from "../../output/result.ts";
import { confirm, reasonOf, type ChangeOptions } from "../../safety/confirm.ts";
import { ChangesSince } from "./changes-since.ts";
import { readNames, type Names } from "./names.ts";
import { readPlan, type Plan } from "./plan-file.ts";
import { PlanRun, type Done } from "./plan-run.ts";
import { spelled } from "./plan-tasks.ts";
import { requireReconciling } from "./reconciling-shard.ts";

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
  const shard = await requireSameLoss(context, id, plan);
  const { io } = context;
  const client = await context.client();
  const { placement } = bodyOf(await context.send({ method: "GET", path: "/healthz" }));
  const names = await readNames(io, client, shardsOf(String(placement)));
  requireNamesOf(shard, names, plan, path);
  const undecided = plan.lines.filter((line) => line.do === null).length;
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
  const since = new ChangesSince(io, client, names, shard, plan.header.read_through);
  const done = await new PlanRun(io, client, names, plan, reason, since).run();
  return resultOf(id, done, undecided);
}

async function requireSameLoss(context: Context, id: string, { header }: Plan): Promise<number> {
  const { shard, loss } = await requireReconciling(context, id);
  if (header.part === id && header.loss_noticed_at === loss.noticed_at) return shard;
  throw new CommandError(
    `the plan is for the loss of ${escapeControls(header.part)} that was noticed at ` +
      `${escapeControls(header.loss_noticed_at)}, and that of ${id} was noticed at ${loss.noticed_at}`,
    exitCodes.conflict,
  );
}

/** @throws if a person has changed a name, or its spelling, to another one */
function requireNamesOf(shard: number, names: Names, { lines }: Plan, path: string): void {
  for (const [index, line] of lines.entries()) {
    const { name, now, known } = line;
    const at = `${path}, line ${index + 2}`;
    if (names.shardOf(name) !== shard)
      throw usageError(`${at}: name is of shard-${names.shardOf(name)}, and the plan is for shard-${shard}`);
    for (const [field, claim] of Object.entries({ now, known }))
      if (claim !== null && names.keyOf(spelled(line, claim)) !== names.keyOf(name))
        throw usageError(`${at}: ${field}.value must be a spelling of name`);
  }
}

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
