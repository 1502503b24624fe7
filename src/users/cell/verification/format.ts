import {
  isDecision,
  type VerificationCounts,
  type VerificationItem,
  type VerificationReport,
  type VerificationStatus,
} from "./report.ts";

const HEADLINES: Record<VerificationStatus, string> = {
  done: "completed",
  out_of_time: "stopped when `maxMs` was over",
  needs_approval: "stopped, because it needs approval",
  no_slot: "did nothing, because too many other cells are verifying",
  slot_lost: "stopped, because its verification slot has ended",
  not_due: "did nothing, because the last verification is recent",
  stopped: "stopped before the end",
};

const number = (value: number): string => value.toLocaleString("en");

const count = (value: number, unit: string): string => `${number(value)} ${unit}${value === 1 ? "" : "s"}`;

export interface FormatOptions {
  /** How many of the items that a person must decide about are listed: all that the report has by default. */
  maxDecisions?: number;
  /** How many of the other items are listed: 20 by default. */
  maxItems?: number;
}

/**
 * Formats a report for a person to read. What a person must decide about comes first. Programs use the report
 * itself, which is JSON.
 *
 * @example
 * ```ts
 * import { formatReport } from "leasehold/cell";
 *
 * console.log(formatReport(await cell.verify())); // a dry run: changes nothing
 * ```
 */
export function formatReport(
  report: VerificationReport,
  { maxDecisions = Infinity, maxItems = 20 }: FormatOptions = {},
): string {
  const {
    status,
    applied,
    cell,
    counts,
    tables,
    items,
    decisionsOmitted,
    itemsOmitted,
    durationMs,
    approvalReason,
    next,
    resumed,
  } = report;
  const dryRun = applied ? "" : " (dry run, nothing was changed)";
  const reason = approvalReason === undefined ? "" : `: ${approvalReason}`;
  const { rows, claims, records, missing, different, extra, created, replaced, destroyed } = counts;
  const seconds = (durationMs / 1_000).toFixed(1);
  const lines = [
    `Verification of cell ${cell}${dryRun}${resumed ? ", resumed" : ""}: ${HEADLINES[status]}${reason}`,
    `${count(rows, "row")} with ${count(claims, "name")} in ${seconds} s; ` +
      `${count(records, "record")} read${equalText(counts)}`,
    `found: ${number(missing)} missing, ${number(different)} different, ${number(extra)} extra`,
    `done: ${count(created, "claim")} created, ${number(replaced)} replaced, ${number(destroyed)} destroyed`,
  ];
  const skipped = skippedText(counts);
  if (skipped !== "") lines.push(`skipped: ${skipped}`);
  const names = Object.keys(tables);
  if (names.length > 1)
    for (const name of names) lines.push(tableText(name, tables[name] as VerificationCounts));
  const decisions = { items: items.filter(isDecision), omitted: decisionsOmitted };
  const others = { items: items.filter((item) => !isDecision(item)), omitted: itemsOmitted };
  const toDecide = counts.otherCell + counts.duplicates + counts.unnameable + counts.notVerified;
  const fromEarlierRuns = toDecide - decisions.items.length - decisionsOmitted;
  if (toDecide > 0) lines.push("", `a person must decide about ${count(toDecide, "name")}:`);
  lines.push(...list(decisions, maxDecisions, " to decide about"));
  if (fromEarlierRuns > 0)
    lines.push(`… and ${number(fromEarlierRuns)} that earlier runs have found: a dry run lists them`);
  if (others.items.length > 0) lines.push("");
  lines.push(...list(others, maxItems, ""));
  if (next !== undefined)
    lines.push(
      `the next run continues with ${next.source}, ${positionText(next.after)} (pass: ${next.pass})`,
    );
  return lines.join("\n");
}

function list(
  { items, omitted }: { items: readonly VerificationItem[]; omitted: number },
  max: number,
  what: string,
): string[] {
  const listed = items.slice(0, max);
  const more = items.length - listed.length + omitted;
  return [...listed.map(itemText), ...(more > 0 ? [`… and ${number(more)} more${what}`] : [])];
}

const positionText = (after: string): string => (after === "" ? "from the start" : `after id ${after}`);

const equalText = ({ ranges, equalRanges }: VerificationCounts): string =>
  ranges === 0 ? "" : `, ${number(equalRanges)} of ${count(ranges, "range")} equal by digest`;

const tableText = (source: string, { rows, missing, different, extra }: VerificationCounts): string =>
  `  ${source}: ${count(rows, "row")}, ${missing} missing, ${different} different, ${extra} extra`;

function skippedText({
  recent,
  leased,
  otherCell,
  duplicates,
  unnameable,
  needed,
  notVerified,
  changed,
}: VerificationCounts): string {
  const parts: [number, string][] = [
    [otherCell, "held by another cell"],
    [duplicates, "used by two rows"],
    [unnameable, "not a name"],
    [notVerified, "in a table or column that is not verified"],
    [needed, "needed by a row"],
    [recent, "changed recently"],
    [leased, "leased"],
    [changed, "changed during the run"],
  ];
  return parts.flatMap(([value, what]) => (value === 0 ? [] : [`${number(value)} ${what}`])).join(", ");
}

const SIGNS: Record<VerificationItem["action"], string> = {
  create: "+",
  replace: "~",
  destroy: "-",
  none: "!",
};

const REASONS: Record<VerificationItem["reason"], string> = {
  no_claim: "the row's name has no claim",
  value: "the row has another name now",
  row: "the claim belongs to another row",
  subject: "the claim has another subject",
  scope: "the claim has another scope",
  spelling: "the claim has another spelling",
  row_gone: "the row does not exist",
  not_claimed: "the row does not have this name",
  two_rows: "two rows use this name, and only one can have the claim",
  not_a_name: "the value cannot be a name",
};

const SKIP_REASONS: Record<NonNullable<VerificationItem["skipReason"]>, string> = {
  other_cell: "another cell has the name",
  duplicate: "another row has the name too",
  unnameable: "the value cannot be a name",
  leased: "a lease holds the name",
  recent: "it changed recently",
  not_verified: "its table or column is not verified in this run",
  needed: "a row still needs the name",
  changed: "it changed during the run",
};

function skipText({ skipReason, reason, source, otherCell, otherRow }: VerificationItem): string | undefined {
  // The reason already says it.
  if (skipReason === undefined || reason === "not_a_name") return undefined;
  if (otherCell !== undefined) return `cell ${otherCell} has the name`;
  if (otherRow === undefined) return SKIP_REASONS[skipReason];
  if (otherRow.type === source.type && otherRow.id === source.id)
    return "another column of the row has the name too";
  const row = `${otherRow.type} ${otherRow.id}`;
  return skipReason === "not_verified"
    ? `the claim belongs to ${row}, which is not verified in this run`
    : `${row} has the name too`;
}

function itemText(item: VerificationItem): string {
  const { action, bucket, source, reason, claim, outcome, detail } = item;
  const sign = isDecision(item) ? "!" : SIGNS[action];
  const was =
    claim === undefined
      ? ""
      : ` (claimed as ${JSON.stringify(claim.value)} by ${claim.source.type} ${claim.source.id})`;
  const name = `${bucket.type} ${JSON.stringify(bucket.value)}`;
  const what = `${sign} ${name} of ${source.type} ${source.id}${was}: ${REASONS[reason]}`;
  const skipped = skipText(item);
  const done = outcome === "done" ? "; done" : "";
  const end = skipped === undefined ? done : `; skipped: ${skipped}`;
  return `${what}${detail === undefined ? "" : ` (${detail})`}${end}`;
}
