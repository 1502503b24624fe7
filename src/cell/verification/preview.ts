import type { Different, Drift, LeftBecause, Missing } from "./drift.ts";
import { judge, withHolders } from "./holders.ts";
import { namesOf } from "./row-names.ts";
import type { VerificationPorts } from "./ports.ts";

export interface Foreseen {
  /** What would be changed. */
  todo: Drift[];
  left: { drift: Drift; left: LeftBecause }[];
}

/** What would come of drifts: who has the names that are missing is asked. Nothing is locked, so it may come otherwise. */
export async function foresee(
  ports: Pick<VerificationPorts, "records" | "tables" | "limits">,
  drifts: readonly Drift[],
): Promise<Foreseen> {
  const foreseen: Foreseen = { todo: drifts.filter(({ action }) => action !== "create"), left: [] };
  const missing = drifts.filter((drift): drift is Missing => drift.action === "create");
  const wanted = new Set<string>();
  for await (const [drift, holder] of withHolders(ports, missing)) {
    const judged = holder === undefined ? drift : judge(drift, holder, ports.tables);
    if (typeof judged === "string") foreseen.left.push({ drift, left: judged });
    else if (wanted.has(drift.want.key) || (await isUsedByHolder(ports, judged)))
      foreseen.left.push({ drift, left: "duplicate" });
    else foreseen.todo.push(judged);
    wanted.add(drift.want.key);
  }
  return foreseen;
}

/** The row that has the claim still has the name. */
async function isUsedByHolder(
  { tables }: Pick<VerificationPorts, "tables">,
  drift: Missing | Different,
): Promise<boolean> {
  if (drift.action === "create" || drift.because !== "row") return false;
  const table = tables.find(({ source }) => source === drift.record.source.type);
  const [row] = (await table?.read([drift.record.source.id])) ?? [];
  return row !== undefined && namesOf(row.claims).keys.has(drift.want.key);
}
