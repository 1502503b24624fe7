import { CommandError, exitCodes } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import type { Result } from "../output/result.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";
import { readAdvice, leaseText } from "./show-lease.ts";

interface DecideOptions extends ChangeOptions {
  cell: string;
}

const decisions = {
  commit: {
    state: "COMMITTED",
    effect: "Its creates become claims, and its destroys free their names.",
    undo: "There is no undo. If the rows were not saved, the cell's verification finds the claims.",
  },
  rollback: {
    state: "ROLLED_BACK",
    effect: "Its names are free for others, and its destroys keep their claims.",
    undo: "There is no undo. If the rows were saved, the cell's verification claims their names, if free.",
  },
} as const;

/** Decides a lease in place of its cell. */
export async function decide(
  context: Context,
  decision: keyof typeof decisions,
  uuid: string,
  options: DecideOptions,
): Promise<Result> {
  const reason = reasonOf(options);
  const { cell } = options;
  const { state, effect, undo } = decisions[decision];
  const client = (await context.client()).forCell(cell);
  const { leases } = client;
  const before = await leases.get(uuid);
  if (before.state === state)
    return {
      document: { lease: before, changed: false, dry_run: options.dryRun === true },
      text: () => `Lease ${uuid} was ${state} already. Nothing was changed.`,
    };
  if (before.state !== "GRANTED")
    throw new CommandError(`lease ${uuid} is ${before.state}, which is final`, exitCodes.conflict, [
      commandLine("leases", "show", uuid, "--cell", cell),
    ]);
  const advice = await readAdvice(client, before);
  if (options.dryRun === true)
    return {
      document: { lease: before, would_be: state, changed: false, dry_run: true },
      text: (style) => `${leaseText(before, style)}\n\nThe lease would be ${state}. ${effect}`,
      notes: [...advice, "Nothing was changed."],
    };
  await confirm(context, options, {
    name: cell,
    effect: [
      `This makes lease ${uuid} of cell ${cell} ${state}, because: ${reason}`,
      `${effect} ${undo}`,
      ...advice,
    ].join("\n"),
  });
  const lease = await leases[decision](uuid, { reason });
  return {
    document: { lease, changed: true, dry_run: false, undo: null },
    text: () => `Lease ${uuid} of cell ${cell} is ${lease.state}. ${effect}`,
    notes: [undo],
    nextSteps: [commandLine("leases", "show", uuid, "--cell", cell)],
  };
}
