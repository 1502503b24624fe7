import { durationText } from "../../common/text/duration.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { pageSizeFor, type LimitOption } from "../framework/arguments.ts";
import type { Context } from "../framework/context.ts";
import { listResult, take, type Result } from "../output/result.ts";
import { exitCodes, CommandError } from "../framework/command-error.ts";
import { nextOf, transferText, movedText } from "./transfer-text.ts";
import type { Transfer } from "../../users/client/index.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";
import { planned, readPlan, type ScopeOptions } from "./plan-transfer.ts";
import { reminder } from "../output/reminder.ts";

interface ListOptions extends LimitOption {
  from?: string;
  to?: string;
}

export async function listTransfers(context: Context, { from, to, limit }: ListOptions): Promise<Result> {
  const { transfers } = await context.client();
  const listing = transfers.list({ from, to, pageSize: pageSizeFor(limit) });
  const { items, isCut } = await take(listing, limit);
  const first = items[0];
  return listResult({
    name: "transfers",
    items,
    isCut,
    columns: [
      { title: "ID", value: ({ id }) => id },
      { title: "FROM", value: (transfer) => transfer.from },
      { title: "TO", value: (transfer) => transfer.to },
      { title: "SCOPE", value: ({ scope }) => scope },
      { title: "STATE", value: ({ state }) => state },
      { title: "CLAIMS", value: ({ expected }) => expected.from?.count, isNumber: true },
      { title: "AGE", value: ({ prepared }) => durationText(prepared.age_ms), isNumber: true },
    ],
    empty: "There are no transfers.",
    nextSteps: first === undefined ? [] : [commandLine("transfers", "show", first.id)],
  });
}

export async function showTransfer(context: Context, id: string): Promise<Result> {
  const transfer = await (await context.client()).transfers.get(id);
  return {
    document: { transfer },
    text: (style) => transferText(transfer, style),
    notes: transfer.is_rebuilt && transfer.state === "PREPARED" ? [REBUILT] : [],
    nextSteps: nextOf(transfer),
  };
}

const REBUILT =
  "The ledger of the destination has lost this transfer and got it back from the shards. It may have been " +
  "cut. Look which cell works with the names, then cut or abort it.";

/** Shows whether the rows of both cells equal the claims, and what else a cut needs. */
export async function verifyTransfer(context: Context, id: string): Promise<Result> {
  const transfer = await (await context.client()).transfers.get(id);
  const isReady = transfer.missing.length === 0;
  return {
    document: { transfer, is_ready: isReady },
    text: (style) => transferText(transfer, style),
    notes: isReady
      ? [transfer.state === "PREPARED" ? "The transfer can be cut." : `The transfer is ${transfer.state}.`]
      : transfer.missing.map((each) => `Missing: ${each}.`),
    nextSteps: nextOf(transfer).filter((line) => !line.includes("transfers verify")),
    exitCode: isReady ? exitCodes.ok : exitCodes.drift,
  };
}

export function prepareTransfer(context: Context, options: ScopeOptions & ChangeOptions): Promise<Result> {
  return prepare(context, options, options);
}

/** Prepares a transfer in the other direction, which is refused if the names have changed since. */
export async function switchBack(context: Context, id: string, options: ChangeOptions): Promise<Result> {
  reasonOf(options);
  const { transfers } = await context.client();
  const before = await transfers.get(id);
  if (before.state !== "FINISHED")
    throw new CommandError(
      `transfer ${id} is ${before.state}, and only a finished one can be undone: nothing was changed`,
      exitCodes.conflict,
      [commandLine("transfers", "show", id)],
    );
  const { from, to, scope } = before;
  return prepare(context, { from: to, to: from, scope }, options, before);
}

async function prepare(
  context: Context,
  moved: ScopeOptions,
  options: ChangeOptions,
  undone?: Transfer,
): Promise<Result> {
  const reason = reasonOf(options);
  const plan = await readPlan(context, moved);
  if (options.dryRun === true) return { document: { plan, changed: false, dry_run: true }, ...planned(plan) };
  const { from, to, scope } = moved;
  await confirm(context, options, {
    name: scope,
    effect:
      `This prepares to move ${movedText(moved)}, because: ${reason}\n` +
      `${plan.claims_total} names can't be claimed, changed or released until the transfer is cut or ` +
      "aborted.",
  });
  const { transfers } = await context.client();
  const transfer = await transfers.prepare(
    { from, to, scope },
    { reason, ...(undone === undefined ? {} : { switchBackOf: undone.id }) },
  );
  const undo = `${commandLine("transfers", "abort", transfer.id)} --reason TEXT`;
  return {
    document: { transfer, changed: true, dry_run: false, undo },
    text: (style) => transferText(transfer, style),
    notes: [
      "The names of the scope are held. Copy the rows now, and let both cells report theirs.",
      `To undo it: ${undo}`,
    ],
    nextSteps: nextOf(transfer),
  };
}

const PAUSE_MS = 1_000;
/** Shards rewrite 20,000 claims in a few seconds. An unreachable one is asked again every minute. */
const MOST_PAUSES = 600;

/** Waits until all shards have rewritten the names. They do so by themselves: nothing is sent to them. */
export async function finishTransfer(context: Context, id: string): Promise<Result> {
  const { transfers } = await context.client();
  const remind = reminder(context.io);
  for (let pauses = 0; ; pauses += 1) {
    const transfer = await transfers.get(id);
    if (transfer.state === "FINISHED")
      return {
        document: { transfer },
        text: (style) => transferText(transfer, style),
        nextSteps: nextOf(transfer),
      };
    if (transfer.state !== "CUT")
      throw new CommandError(
        `transfer ${id} is ${transfer.state}: it ends only after a cut`,
        exitCodes.conflict,
        nextOf(transfer),
      );
    if (pauses === MOST_PAUSES)
      throw new CommandError(
        `shards still rewrite the names of transfer ${id}. The destination has them. The same command goes ` +
          "on waiting",
        exitCodes.unavailable,
        ["leasehold status"],
      );
    await remind("waits until all shards have rewritten the names");
    await context.io.wait(PAUSE_MS);
  }
}
