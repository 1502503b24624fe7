import type {
  VerificationCounts,
  VerificationItem,
  VerificationReport,
  VerificationStatus,
} from "./report.ts";

const HEADLINES: Record<VerificationStatus, string> = {
  done: "everything was looked at",
  out_of_time: "the time was up before the end",
  needs_approval: "stopped to ask",
  no_slot: "nothing was done: other cells verify at the moment",
  slot_lost: "ended early: the verification slot ran out",
  not_due: "nothing was done: one was finished not long ago",
  stopped: "stopped before the end",
};

const count = (number: number, one: string, many = `${one}s`): string =>
  `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

/**
 * Formats a report for a person to read. Programs use the report itself, which is JSON.
 *
 * @example
 * ```ts
 * import { formatReport } from "leasehold/cell";
 *
 * console.log(formatReport(await cell.verify())); // a dry run: changes nothing
 * ```
 */
export function formatReport(report: VerificationReport): string {
  const { status, applied, cell, counts, tables, items, itemsLeftOut, durationMs, question, next, resumed } =
    report;
  const lines = [
    `Verification of cell ${cell}${applied ? "" : " (dry run: nothing was changed)"}${resumed ? ", resumed" : ""}: ${HEADLINES[status]}${question === undefined ? "" : `: ${question}`}`,
    `${count(counts.rows, "row")} with ${count(counts.claims, "name")} in ${(durationMs / 1_000).toFixed(1)} s; ${count(counts.records, "record")} sent by the coordinator${equalText(counts)}`,
    `found: ${count(counts.missing, "missing", "missing")}, ${count(counts.different, "different", "different")}, ${count(counts.extra, "extra", "extra")}`,
    `done: ${count(counts.created, "claim")} created, ${counts.replaced} replaced, ${counts.destroyed} given up`,
  ];
  const left = leftText(counts);
  if (left !== "") lines.push(`left alone: ${left}`);
  const names = Object.keys(tables);
  if (names.length > 1)
    for (const name of names) lines.push(tableText(name, tables[name] as VerificationCounts));
  if (items.length > 0) lines.push("", ...items.map(itemText));
  if (itemsLeftOut > 0) lines.push(`… and ${itemsLeftOut.toLocaleString("en")} more`);
  if (next !== undefined)
    lines.push(
      `the next run goes on with: ${next.source}, after ${next.after === "" ? "the beginning" : `id ${next.after}`} (${next.pass})`,
    );
  return lines.join("\n");
}

const equalText = ({ ranges, equalRanges }: VerificationCounts): string =>
  ranges === 0 ? "" : `, ${equalRanges.toLocaleString("en")} of ${count(ranges, "range")} equal by digest`;

const tableText = (source: string, { rows, missing, different, extra }: VerificationCounts): string =>
  `  ${source}: ${count(rows, "row")}, ${missing} missing, ${different} different, ${extra} extra`;

function leftText({
  recent,
  leased,
  otherCell,
  duplicates,
  unnameable,
  wanted,
  notVerified,
  changed,
}: VerificationCounts): string {
  const parts: [number, string][] = [
    [otherCell, "taken by another cell"],
    [duplicates, "used by two rows"],
    [unnameable, "not a name"],
    [notVerified, "of what is not looked at"],
    [wanted, "wanted by a row"],
    [recent, "changed just now"],
    [leased, "leased at the moment"],
    [changed, "changed meanwhile"],
  ];
  return parts
    .flatMap(([number, what]) => (number === 0 ? [] : [`${number.toLocaleString("en")} ${what}`]))
    .join(", ");
}

const SIGNS: Record<VerificationItem["action"], string> = {
  create: "+",
  replace: "~",
  destroy: "-",
  none: "!",
};

const WHY: Record<VerificationItem["because"], string> = {
  no_claim: "the row's name has no claim",
  value: "the row has another name now",
  row: "the claim names another row",
  subject: "the claim names another subject",
  spelling: "the claim has another spelling",
  row_gone: "there is no such row",
  not_claimed: "the row does not have this name",
  two_rows: "two rows have this name, and one claim can be made",
  not_a_name: "the value cannot be a name",
};

const LEFT: Record<NonNullable<VerificationItem["left"]>, string> = {
  other_cell: "another cell has the name",
  duplicate: "two rows have the name",
  unnameable: "it cannot be a name",
  leased: "a lease holds it at the moment",
  recent: "it was changed just now",
  not_verified: "it is of a table or column that is not looked at",
  wanted: "a row still needs the name",
  changed: "it was changed meanwhile",
};

function itemText({
  action,
  bucket,
  source,
  because,
  claim,
  outcome,
  left,
  detail,
}: VerificationItem): string {
  const was =
    claim === undefined
      ? ""
      : ` (claimed as ${JSON.stringify(claim.value)} by ${claim.source.type} ${claim.source.id})`;
  const what = `${SIGNS[action]} ${bucket.type} ${JSON.stringify(bucket.value)} of ${source.type} ${source.id}${was}: ${WHY[because]}`;
  const end = left === undefined ? (outcome === "planned" ? "" : `; ${outcome}`) : `; left: ${LEFT[left]}`;
  return `${what}${detail === undefined ? "" : ` (${detail})`}${end}`;
}
