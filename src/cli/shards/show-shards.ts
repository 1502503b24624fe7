import type { Shards } from "../../users/client/api-types.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import type { Context } from "../framework/context.ts";
import type { Result } from "../output/result.ts";
import type { Style } from "../output/style.ts";
import { fields, table } from "../output/table.ts";
import { readShards, type Growth } from "./call-growth.ts";

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
