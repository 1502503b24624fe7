/** The verification of the SDK, as the operations page shows it. */
import { formatReport, type Cell, type VerificationItem, type VerificationReport } from "leasehold/cell";

export interface Verification {
  headline: string;
  counts: [name: string, count: number][];
  items: { kind: string; name: string; row: string; end: string }[];
  /** The report in words. */
  text: string;
}

/** Compares rows with claims; with `apply` it also brings the claims in line with the rows. */
export async function verify<Tx>(cell: Pick<Cell<Tx>, "verify">, apply: boolean): Promise<Verification> {
  // In a demo even what changed a moment ago is to be looked at.
  const report = await cell.verify({ apply, recentMs: 0 });
  return {
    headline: headlineOf(report),
    counts: countsOf(report),
    items: report.items.map(itemOf),
    text: formatReport(report),
  };
}

function headlineOf({
  status,
  applied,
  counts: { missing, different, extra },
  items,
}: VerificationReport): string {
  if (status === "no_slot") return "Other cells verify at the moment. Try again in a minute.";
  if (missing + different + extra + items.length === 0) return "Rows and claims agree.";
  return applied
    ? "Rows and claims did not agree. This is what was done."
    : "Rows and claims do not agree. Nothing was changed yet.";
}

function countsOf({ counts }: VerificationReport): [string, number][] {
  const { rows, missing, different, extra, created, replaced, destroyed } = counts;
  return Object.entries({ rows, missing, different, extra, created, replaced, "given up": destroyed });
}

const ACTIONS: Record<VerificationItem["action"], string> = {
  create: "claim it",
  replace: "claim it anew",
  destroy: "give it up",
  none: "nothing",
};

function itemOf({
  kind,
  bucket,
  source,
  action,
  outcome,
  skipReason,
}: VerificationItem): Verification["items"][number] {
  const end =
    outcome === "skipped"
      ? `left alone: ${(skipReason ?? "").replaceAll("_", " ")}`
      : `${outcome === "done" ? "done" : "would"}: ${ACTIONS[action]}`;
  return { kind, name: `${bucket.type} ${bucket.value}`, row: `${source.type} ${source.id}`, end };
}
