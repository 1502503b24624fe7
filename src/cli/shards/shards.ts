import type { Shards } from "../../users/client/api-types.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import type { Context } from "../framework/context.ts";
import type { Result } from "../output/result.ts";
import type { Style } from "../output/style.ts";
import { fields, table } from "../output/table.ts";
import { CommandError, exitCodes } from "../framework/command-error.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";
import { callRoute, changeRoute } from "../connection/call-route.ts";

type Source = Growth["sources"][number];

export async function showShards(context: Context): Promise<Result> {
  const status = await readShards(context);
  return {
    document: status,
    text: (style) => describeShards(status, style),
    nextSteps: status.growth === null ? [] : nextOf(status.growth),
  };
}

export function describeShards({ shards, growth }: Shards, style: Style): string {
  if (growth === null) return fields([["shards", shards]]);
  const about = fields([
    ["shards", shards],
    ["growth", `from ${growth.from} to ${growth.to}`],
    ["phase", growth.phase],
    ["started", growth.started_at],
    ["cut", growth.cut_at],
    ["can be cut", growth.phase === "copying" ? (growth.can_be_cut ? "yes" : "no") : null],
  ]);
  return `${about}\n\n${table(growth.sources, COLUMNS, style)}`;
}

const COLUMNS = [
  { title: "SHARD", value: ({ shard }: Source) => shard, isNumber: true },
  { title: "STATE", value: ({ state }: Source) => state ?? "no answer" },
  { title: "COPIED", value: ({ copied }: Source) => copied, isNumber: true },
  { title: "WAITING", value: ({ waiting }: Source) => waiting, isNumber: true },
  { title: "WAITS FOR", value: ({ waits_for: waitsFor }: Source) => waitsFor },
  { title: "DELETED", value: ({ cleaned }: Source) => cleaned, isNumber: true },
];

/** What an operator does while the deployment grows. */
export const nextOf = ({ to, phase }: Growth): string[] => [
  `${commandLine("shards", "grow", "--to", String(to))} --reason TEXT`,
  ...(phase === "copying" ? ["leasehold shards abort --reason TEXT"] : []),
];

/** One line about how far the shards of before are, and what the growth waits for. */
export function progressOf(growth: Growth): string {
  const { phase, sources } = growth;
  const total = (of: (source: Source) => number): number => sources.reduce((sum, each) => sum + of(each), 0);
  const done = (states: readonly string[]): string =>
    `${sources.filter(({ state }) => states.includes(state ?? "")).length} of ${sources.length} shards`;
  const progress =
    phase === "copying"
      ? `copying: ${total(({ copied }) => copied)} names, ${total(({ waiting }) => waiting)} changes wait, ` +
        `${done(["copied"])} have copied all`
      : `${phase}: ${done(["cleaning", "done"])} have handed over, ` +
        `${total(({ cleaned }) => cleaned)} old rows deleted`;
  return `${progress}${waitOf(growth)}`;
}

function waitOf({ phase, sources }: Growth): string {
  const silent = sources.filter(({ state }) => state === null).map(({ shard }) => shard);
  if (silent.length > 0) return `; no answer from shard ${silent.join(", ")}`;
  const held = sources.filter(({ waits_for: waitsFor }) => phase === "copying" && waitsFor !== null);
  if (held.length > 0)
    return `; waits for ${held.map(({ shard, waits_for: what }) => `the ${what} of shard ${shard}`).join()}`;
  const isDone = phase === "cut" && sources.every(({ state }) => state === "done");
  return isDone ? "; waits until the ledgers of all cells have answered" : "";
}

/** Ends a growth that was not cut. */
export async function abortGrowth(context: Context, options: ChangeOptions): Promise<Result> {
  const reason = reasonOf(options);
  const before = await readShards(context);
  const { growth } = before;
  if (growth === null)
    throw new CommandError("the deployment does not grow: there is nothing to abort", exitCodes.conflict);
  if (growth.phase !== "copying")
    throw new CommandError(
      `the growth to ${growth.to} shards was cut, so it goes on to its end`,
      exitCodes.conflict,
      nextOf(growth),
    );
  if (options.dryRun === true)
    return {
      document: { ...before, changed: false, dry_run: true },
      text: () => `Would abort the growth from ${growth.from} to ${growth.to} shards.`,
      notes: ["Nothing was changed."],
    };
  await confirm(context, options, {
    name: String(growth.to),
    effect:
      `This aborts the growth from ${growth.from} to ${growth.to} shards, because: ${reason}\n` +
      "No name has moved. The new shards delete their copies.",
  });
  const after = await changeGrowth(context, "/abort", { reason });
  return {
    document: { ...after, changed: true, dry_run: false },
    text: () => `The growth is aborted. The deployment has ${after.shards} shards, as before.`,
  };
}

export type Growth = NonNullable<Shards["growth"]>;

/** A call makes steps for some seconds, and waits for shards. */
const TIMEOUT_MS = 60_000;

const PATH = "/v1/admin/growth";

export const readShards = (context: Context): Promise<Shards> =>
  callRoute(context, { method: "GET", path: PATH, timeoutMs: TIMEOUT_MS });

/** Makes steps of the growth that runs. They can be repeated after any failure. */
export const stepGrowth = (context: Context): Promise<Shards> =>
  callRoute(context, { method: "POST", path: `${PATH}/steps`, timeoutMs: TIMEOUT_MS });

/** Changes the growth. `action` is a path, such as `/cut`. */
export function changeGrowth(context: Context, action: string, body: object): Promise<Shards> {
  const request = {
    method: "POST",
    path: `${PATH}${action}`,
    body: JSON.stringify(body),
    timeoutMs: TIMEOUT_MS,
  };
  return changeRoute<Shards>(context, request, "leasehold shards");
}
