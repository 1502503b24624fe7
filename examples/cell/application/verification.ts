/** Runs a verification and prepares its report for the operations page. */
import { formatReport, type Cell, type VerificationItem, type VerificationReport } from "leasehold/cell";

export interface Verification {
  headline: string;
  counts: [name: string, count: number][];
  items: { kind: string; name: string; row: string; end: string }[];
  /** The SDK's report as text. */
  text: string;
}

/** Compares rows with claims. With `apply`, it also repairs the claims to match the rows. */
export async function verify<Tx>(cell: Pick<Cell<Tx>, "verify">, apply: boolean): Promise<Verification> {
  // `recentMs: 0` includes rows that changed just now. In production they are skipped, because their leases
  // may be open.
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
  if (status === "no_slot") return "All verification slots are in use by other cells. Try again in a minute.";
  if (missing + different + extra + items.length === 0) return "Rows and claims agree.";
  return applied
    ? "Rows and claims did not agree. The repairs are listed below."
    : "Rows and claims do not agree. Nothing was changed yet.";
}

function countsOf({ counts }: VerificationReport): [string, number][] {
  const { rows, missing, different, extra, created, replaced, destroyed } = counts;
  return Object.entries({ rows, missing, different, extra, created, replaced, destroyed });
}

const ACTIONS: Record<VerificationItem["action"], string> = {
  create: "create the claim",
  replace: "replace the claim",
  destroy: "destroy the claim",
  none: "nothing",
};

/** Says who has the name, if the report knows it: only a person can decide then. */
function skipText({ skipReason = "changed", otherCell, otherRow }: VerificationItem): string {
  if (otherCell !== undefined) return `Cell ${otherCell} has the name`;
  if (otherRow !== undefined) return `${otherRow.type} ${otherRow.id} has the name, too`;
  return skipReason.replaceAll("_", " ");
}

function itemOf(item: VerificationItem): Verification["items"][number] {
  const { kind, bucket, source, action, outcome } = item;
  const end =
    outcome === "skipped"
      ? `skipped: ${skipText(item)}`
      : `${outcome === "done" ? "done" : "to do"}: ${ACTIONS[action]}`;
  return { kind, name: `${bucket.type} ${bucket.value}`, row: `${source.type} ${source.id}`, end };
}
