import type { Bucket } from "../../users/client/index.ts";
import { CommandError } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { exitCodes } from "../framework/exit-codes.ts";
import type { Result } from "../output/result.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { showHolder } from "../lookup/show-holder.ts";
import { fields } from "../output/table.ts";

export async function showClaim(
  context: Context,
  name: string,
  { type }: { type: Bucket["type"] },
): Promise<Result> {
  const client = await context.client();
  const found = await client.records.find({ type, value: name });
  if (found === undefined) throw new CommandError("no cell owns this name", exitCodes.notFound);
  const { record, cell } = found;
  const whole = "epoch" in record ? record : undefined;
  const lease = whole?.lease_uuid ?? null;
  const transfer = whole?.transfer_id ?? null;
  return {
    document: { claim: record, cell },
    text: () =>
      fields([
        ["name", record.bucket.value],
        ["type", record.bucket.type],
        ["cell", `${record.cell_id}, ${cell.address}`],
        ["status", record.status],
        ["lease", transfer === null ? lease : null],
        ["transfer", transfer],
        ["subject", whole && `${whole.subject.type} ${whole.subject.id}`],
        ...(whole?.scope === undefined ? [] : [["scope", whole.scope] as [string, string]]),
        ["source", whole && `${whole.source.type} ${whole.source.id}`],
        ["epoch", whole?.epoch],
        ["created", whole?.created_at],
        ["changed", whole?.updated_at],
      ]),
    nextSteps: [
      ...showHolder({ cell: record.cell_id, lease, transfer }),
      commandLine("lookup", "--trace", "--type", type, "--", name),
    ],
  };
}
