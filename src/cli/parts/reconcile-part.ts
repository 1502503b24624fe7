import type { Reconciliation } from "../../users/client/index.ts";
import type { Context } from "../framework/context.ts";
import type { Result } from "../output/result.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { callPart } from "./call-part.ts";
import { describeReconciliation } from "./describe-part.ts";
import { nextOf } from "./show-part.ts";

interface ReconcileOptions extends ChangeOptions {
  declareLost?: boolean;
}

export async function reconcilePart(
  context: Context,
  id: string,
  options: ReconcileOptions,
): Promise<Result> {
  const reason = reasonOf(options);
  const { declareLost = false, dryRun = false } = options;
  const declared = declareLost ? { declare_lost: true } : {};
  if (!dryRun)
    await confirm(context, options, {
      name: id,
      effect:
        `This accepts that ${id} has gone back in time, because: ${reason}\n` +
        `${declareLost ? "The part stops at once, as if it had noticed the loss. " : ""}There is no undo.`,
    });
  const done = await callPart<Reconciliation>(context, "POST", id, "/reconcile", {
    dry_run: dryRun,
    ...declared,
    reason: reason === "" ? "dry run" : reason,
  });
  const flag = declareLost ? " --declare-lost" : "";
  return {
    document: { ...done, changed: !dryRun },
    text: () => describeReconciliation(done),
    notes: dryRun
      ? ["Nothing was changed."]
      : done.part.state === "reconciling"
        ? ["Let every cell verify twice without changes, then finish the shard."]
        : [],
    nextSteps: dryRun ? [`${commandLine("parts", "reconcile", id)}${flag} --reason TEXT`] : nextOf(done.part),
  };
}
