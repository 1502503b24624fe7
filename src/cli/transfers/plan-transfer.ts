import type { TransferPlanned } from "../../users/client/index.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import type { Context } from "../framework/context.ts";
import type { Result } from "../output/result.ts";
import { fields, table } from "../output/table.ts";

export interface ScopeOptions {
  from: string;
  to: string;
  scope: string;
}

export async function planTransfer(context: Context, options: ScopeOptions): Promise<Result> {
  const plan = await readPlan(context, options);
  const { from, to, scope, leases, obstacles } = plan;
  const prepare = commandLine("transfers", "prepare", "--from", from, "--to", to, "--scope", scope);
  return {
    document: { plan },
    ...planned(plan),
    nextSteps:
      obstacles.length === 0
        ? [`${prepare} --reason TEXT`]
        : leases.map(({ cell_id: cell, uuid }) => commandLine("leases", "show", uuid, "--cell", cell)),
  };
}

export async function readPlan(
  context: Context,
  { from, to, scope }: ScopeOptions,
): Promise<TransferPlanned> {
  const { transfers } = await context.client();
  return transfers.plan({ from, to, scope });
}

type Counted = TransferPlanned["claims"][number];

/** How a plan is shown. */
export const planned = (plan: TransferPlanned): Pick<Result, "text" | "notes"> => ({
  text: (style) =>
    [
      fields([
        ["scope", plan.scope],
        ["from", `cell ${plan.from}`],
        ["to", `cell ${plan.to}`],
        ["claims to move", plan.claims_total],
        ["claims there", plan.present_claims],
        ["leases", plan.leases.length],
      ]),
      ...(plan.claims.length === 0
        ? []
        : [
            table(
              plan.claims,
              [
                { title: "SOURCE", value: ({ source_type: source }: Counted) => source },
                { title: "TYPE", value: ({ bucket_type: type }: Counted) => type },
                { title: "CLAIMS", value: ({ count }: Counted) => count, isNumber: true },
              ],
              style,
            ),
          ]),
    ].join("\n\n"),
  notes: [
    ...plan.obstacles.map((each) => `In the way: ${each}.`),
    ...(plan.claims_total === 0
      ? [`Cell ${plan.from} has no claims of this scope. Claims get a scope when they are made or replaced.`]
      : []),
    "Nothing was changed.",
  ],
});
