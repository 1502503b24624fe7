import { durationText } from "../../common/text/duration.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { pageSizeFor, type LimitOption } from "../framework/arguments.ts";
import type { Context } from "../framework/context.ts";
import { listResult, take, type Result } from "../output/result.ts";

interface ListOptions extends LimitOption {
  from?: string;
  to?: string;
}

export async function listTransfers(context: Context, { from, to, limit }: ListOptions): Promise<Result> {
  const { transfers } = await context.client();
  const listing = transfers.list({ from, to, pageSize: pageSizeFor(limit) });
  const { items, isCut } = await take(listing, limit);
  const first = items[0];
  return listResult({
    name: "transfers",
    items,
    isCut,
    columns: [
      { title: "ID", value: ({ id }) => id },
      { title: "FROM", value: (transfer) => transfer.from },
      { title: "TO", value: (transfer) => transfer.to },
      { title: "SCOPE", value: ({ scope }) => scope },
      { title: "STATE", value: ({ state }) => state },
      { title: "CLAIMS", value: ({ expected }) => expected.from?.count, isNumber: true },
      { title: "AGE", value: ({ prepared }) => durationText(prepared.age_ms), isNumber: true },
    ],
    empty: "There are no transfers.",
    nextSteps: first === undefined ? [] : [commandLine("transfers", "show", first.id)],
  });
}
