import { isLeaseholdError, type Lease, type Client } from "../../users/client/index.ts";
import type { Context } from "../framework/context.ts";
import { durationText } from "../../common/text/duration.ts";
import type { Result } from "../output/result.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import type { Style } from "../output/style.ts";
import { fields, table } from "../output/table.ts";
import { adviceOn } from "../../common/status/lease-advice.ts";

export async function showLease(context: Context, uuid: string, { cell }: { cell: string }): Promise<Result> {
  const client = (await context.client()).forCell(cell);
  const lease = await client.leases.get(uuid);
  const notes = lease.state === "GRANTED" ? await readAdvice(client, lease) : [];
  return {
    document: { lease },
    text: (style) => leaseText(lease, style),
    notes,
    nextSteps:
      lease.state === "GRANTED"
        ? [
            commandLine("verify", "report", "--cell", cell),
            ...["commit", "rollback"].map(
              (decision) => `${commandLine("leases", decision, uuid, "--cell", cell)} --reason TEXT`,
            ),
          ]
        : [],
  };
}

export function leaseText(lease: Lease, style: Style): string {
  const { uuid, cell_id: cell, state, created_at: at, age_ms: ms, counts } = lease;
  const facts = fields([
    ["lease", uuid],
    ["cell", cell],
    ["state", state],
    ["granted", `${at}, ${durationText(ms)} ago`],
    ["renewed", lease.renewed_at],
    ["renewed for", lease.renewal_reason],
    ["decided", lease.decided_at],
    ["decided by", lease.decided_by],
    ["reason", lease.reason],
    ["ops", `${counts.creates} creates, ${counts.destroys} destroys, ${counts.replaces} replaces`],
  ]);
  const ops = opsOf(lease);
  return ops.length === 0 ? facts : `${facts}\n\n${table(ops, columns, style)}`;
}

type Op = ReturnType<typeof opsOf>[number];

const opsOf = ({ creates = [], destroys = [], replaces = [] }: Lease) => [
  ...creates.map((op) => ({ op: "create", ...op })),
  ...destroys.map((op) => ({ op: "destroy", ...op })),
  ...replaces.map((op) => ({ op: "replace", ...op })),
];

const columns = [
  { title: "OP", value: ({ op }: Op) => op },
  { title: "TYPE", value: ({ bucket }: Op) => bucket.type },
  { title: "NAME", value: ({ bucket }: Op) => bucket.value },
  { title: "SUBJECT", value: ({ subject }: Op) => subject && `${subject.type} ${subject.id}` },
  { title: "SOURCE", value: ({ source }: Op) => source && `${source.type} ${source.id}` },
];

/**
 * Says what the cell reported last, because a cell that is alive decides its leases itself, and how to
 * decide. Nothing depends on the report, so one that cannot be read is no failure.
 */
export async function readAdvice(client: Client, lease: Lease): Promise<string[]> {
  try {
    return adviceOn(lease, await client.cells.status());
  } catch (error) {
    if (!isLeaseholdError(error)) throw error;
    const unread = `The last report of cell ${lease.cell_id} cannot be read: ${error.message}`;
    return [unread, ...adviceOn(lease, null).slice(1)];
  }
}
