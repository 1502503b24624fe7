import type { Part, Reconciliation } from "../../users/client/index.ts";

const pointOf = (point: Part["point"]): string =>
  point === null ? "none" : `position ${point.position} of incarnation ${point.incarnation}`;

export function describePart({ id, state, point, loss }: Part): string {
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
export function describeReconciliation({ part, dry_run: isDryRun, ...done }: Reconciliation): string {
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
