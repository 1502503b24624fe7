import type { Different, Drift, SkipReason, Missing } from "./drift.ts";
import { judge, withHolders } from "./holders.ts";
import { namesOf } from "./row-names.ts";
import type { VerificationPorts } from "./ports.ts";

export interface Preview {
  /** What would be changed. */
  todo: Drift[];
  skipped: { drift: Drift; skipReason: SkipReason }[];
}

/** What would come of drifts: who has the names that are missing is asked. Nothing is locked, so it may come otherwise. */
export async function preview(
  ports: Pick<VerificationPorts, "records" | "tables" | "limits">,
  drifts: readonly Drift[],
): Promise<Preview> {
  const previewed: Preview = { todo: drifts.filter(({ action }) => action !== "create"), skipped: [] };
  const missing = drifts.filter((drift): drift is Missing => drift.action === "create");
  const needed = new Set<string>();
  for await (const [drift, holder] of withHolders(ports, missing)) {
    const judged = holder === undefined ? drift : judge(drift, holder, ports.tables);
    if (typeof judged === "string") previewed.skipped.push({ drift, skipReason: judged });
    else if (needed.has(drift.want.key) || (await isUsedByHolder(ports, judged)))
      previewed.skipped.push({ drift, skipReason: "duplicate" });
    else previewed.todo.push(judged);
    needed.add(drift.want.key);
  }
  return previewed;
}

/** The row that has the claim still has the name. */
async function isUsedByHolder(
  { tables }: Pick<VerificationPorts, "tables">,
  drift: Missing | Different,
): Promise<boolean> {
  if (drift.action === "create" || drift.reason !== "row") return false;
  const table = tables.find(({ source }) => source === drift.record.source.type);
  const [row] = (await table?.read([drift.record.source.id])) ?? [];
  return row !== undefined && namesOf(row.claims).keys.has(drift.want.key);
}
