import type { Part, Reconciliation } from "../../users/client/index.ts";
import type { Context } from "../framework/context.ts";
import type { Result } from "../output/result.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";
import { callRoute, changeRoute } from "../connection/call-route.ts";

export async function showPart(context: Context, id: string): Promise<Result> {
  const { part } = await callPart<{ part: Part }>(context, "GET", id);
  return { document: { part }, text: () => describePart(part), nextSteps: nextOf(part) };
}

/** What an operator does with a part in this state. */
function nextOf({ id, state }: Part): string[] {
  switch (state) {
    case "complete":
      return [];
    case "lost":
      return [`${commandLine("parts", "reconcile", id)} --dry-run`];
    case "reconciling":
      return ["leasehold verify status", `${commandLine("parts", "finish", id)} --reason TEXT`];
  }
}

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

/** The service doesn't check it (H6). */
const CONDITION = "Do it only once every cell has verified twice without changes.";

export async function finishPart(context: Context, id: string, options: ChangeOptions): Promise<Result> {
  const reason = reasonOf(options);
  if (options.dryRun === true) {
    const { part } = await callPart<{ part: Part }>(context, "GET", id);
    const what =
      part.state === "reconciling"
        ? `Would take ${id} back into service. ${CONDITION}`
        : `${id} is ${part.state}, so there is nothing to finish.`;
    return {
      document: { part, changed: false, dry_run: true },
      text: () => `${describePart(part)}\n${what}`,
      notes: ["Nothing was changed."],
    };
  }
  await confirm(context, options, {
    name: id,
    effect: `This takes ${id} back into service, because: ${reason}\n${CONDITION} There is no undo.`,
  });
  const { part } = await callPart<{ part: Part }>(context, "POST", id, "/finish", { reason });
  return { document: { part, changed: true, dry_run: false }, text: () => describePart(part) };
}

/** The deployment asks other parts meanwhile, and its own limit is two minutes. */
const TIMEOUT_MS = 130_000;

/** Calls a route of a part, such as `/reconcile`. An error says if the outcome of a change is unknown. */
export function callPart<T>(
  context: Context,
  method: "GET" | "POST",
  id: string,
  action = "",
  body?: object,
): Promise<T> {
  const path = `/v1/admin/parts/${encodeURIComponent(id)}${action}`;
  const request = {
    method,
    path,
    timeoutMs: TIMEOUT_MS,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  };
  return method === "GET"
    ? callRoute<T>(context, request)
    : changeRoute<T>(context, request, commandLine("parts", "show", id), "look at the part");
}

const pointOf = (point: Part["point"]): string =>
  point === null ? "none" : `position ${point.position} of incarnation ${point.incarnation}`;

function describePart({ id, state, point, loss }: Part): string {
  const lines = [`${id} is ${state}. Its newest point: ${pointOf(point)}.`];
  if (loss !== null) {
    const noticed =
      loss.seen === null
        ? `${loss.noticed_by} declared a loss`
        : `${loss.noticed_by} had seen ${pointOf(loss.seen)}`;
    lines.push(`${loss.noticed_at}: ${noticed}.`, `What was left then: ${pointOf(loss.point)}.`);
  }
  return lines.join("\n");
}

/** Says what a reconciliation has done, or what it would do. */
function describeReconciliation({ part, dry_run: isDryRun, ...done }: Reconciliation): string {
  const lines = [describePart(part)];
  for (const { cell_id: cell, outstanding, decided, leases } of done.lost_leases) {
    const ids = leases.length > 0 ? `, among them ${leases.join(", ")}` : "";
    lines.push(`Cell ${cell}: ${decided} decided leases and ${outstanding} open ones are lost${ids}.`);
  }
  const verb = isDryRun ? "would be" : "were";
  for (const { shard, holds, leases } of done.rebuilt_leases)
    lines.push(`shard-${shard}: ${leases} leases ${verb} granted again, from ${holds} holds.`);
  if (done.cell_state !== undefined)
    lines.push(`The cell is ${done.cell_state}. Freeze it again if that is out of date.`);
  if (done.restored !== undefined) {
    const { cells, keys, revocations, types } = done.restored;
    const ids = cells.length > 0 ? ` (${cells.join(", ")})` : "";
    lines.push(
      `From the copies in D1, ${cells.length} cells${ids}, ${keys} keys, ${revocations} revocations and ` +
        `${types.length} types${types.length > 0 ? ` (${types.join(", ")})` : ""} ${verb} restored.`,
      "Changes of the last minutes before the loss may be missing in D1. Repeat those that you know of.",
    );
  }
  if (done.unreachable.length > 0) lines.push(`Could not be asked: ${done.unreachable.join(", ")}.`);
  return lines.join("\n");
}
