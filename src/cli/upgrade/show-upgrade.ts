import type { Upgrade } from "../../users/client/api-types.ts";
import type { Context } from "../framework/context.ts";
import type { Result } from "../output/result.ts";
import type { Style } from "../output/style.ts";
import { fields, table } from "../output/table.ts";
import { APPLY_MIGRATIONS } from "../../common/status/reasons.ts";
import { readUpgrade } from "./call-upgrade.ts";

export async function showUpgrade(context: Context): Promise<Result> {
  const upgrade = await readUpgrade(context);
  return {
    document: upgrade,
    text: (style) => describeUpgrade(upgrade, style),
    nextSteps: nextOf(upgrade),
  };
}

type Blocker = Upgrade["blockers"][number];

const COLUMNS = [
  { title: "PART", value: ({ part }: Blocker) => part },
  { title: "CAUSE", value: ({ cause }: Blocker) => cause },
  { title: "DETAIL", value: ({ detail }: Blocker) => detail },
];

export function describeUpgrade(upgrade: Upgrade, style: Style): string {
  const { release, format, newest_format: newest, waiting_features: waiting, blockers } = upgrade;
  const about = fields([
    ["release", release],
    ["format in force", format],
    ["newest format", newest],
    ["waiting features", waiting.length === 0 ? null : waiting.join(", ")],
  ]);
  return blockers.length === 0 ? about : `${about}\n\n${table(blockers, COLUMNS, style)}`;
}

/** What an operator does next. */
export function nextOf({ is_finished: isFinished, blockers }: Upgrade): string[] {
  if (blockers.some(({ cause }) => cause === "MISSING_MIGRATION")) return [APPLY_MIGRATIONS];
  return isFinished || blockers.length > 0 ? [] : ["leasehold upgrade finish --reason TEXT"];
}
