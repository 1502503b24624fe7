import type { Client, Lease, StaleLease } from "../../client/index.ts";
import type { Context } from "../framework/context.ts";
import { pageSizeFor, type LimitOption } from "../framework/arguments.ts";
import { durationText } from "../../text/duration.ts";
import { listResult, take, type Result } from "../output/result.ts";
import { commandLine } from "../../text/shell-word.ts";

interface ListOptions extends LimitOption {
  cell?: string;
  stale?: boolean;
  olderThan?: number;
}

type Listed = Lease & Partial<Pick<StaleLease, "confirmed">>;

export async function listLeases(context: Context, options: ListOptions): Promise<Result> {
  const { limit, stale } = options;
  const client = await context.client();
  const { items, isCut } = await take<Listed>(
    stale === true ? staleLeases(client, options) : openLeases(client, options),
    limit,
  );
  const isUnconfirmed = items.some(({ confirmed }) => confirmed === false);
  const first = items[0];
  return listResult({
    name: "leases",
    items,
    isCut,
    columns: [
      { title: "UUID", value: ({ uuid }) => uuid },
      { title: "CELL", value: ({ cell_id: cell }) => cell },
      { title: "STATE", value: ({ state }) => state },
      { title: "AGE", value: ({ age_ms: ms }) => durationText(ms), isNumber: true },
      { title: "CREATES", value: ({ counts }) => counts.creates, isNumber: true },
      { title: "DESTROYS", value: ({ counts }) => counts.destroys, isNumber: true },
      { title: "REPLACES", value: ({ counts }) => counts.replaces, isNumber: true },
    ],
    empty: stale === true ? "There are no stale leases." : "There are no open leases.",
    notes: isUnconfirmed
      ? ["The ledgers of some of these leases can't be reached: they may be decided."]
      : [],
    nextSteps:
      first === undefined ? [] : [commandLine("leases", "show", first.uuid, "--cell", first.cell_id)],
  });
}

const staleLeases = (client: Client, { cell, olderThan, limit }: ListOptions): AsyncIterable<Listed> =>
  client.leases.listStale({ cell, olderThanS: olderThan, pageSize: pageSizeFor(limit) });

/** Each cell's leases are listed oldest first. */
async function* openLeases(client: Client, { cell, olderThan, limit }: ListOptions): AsyncGenerator<Listed> {
  const cells = cell === undefined ? (await client.cells.list().all()).map(({ cell_id: id }) => id) : [cell];
  for (const id of cells)
    for await (const lease of client.forCell(id).leases.list({ pageSize: pageSizeFor(limit) })) {
      if (olderThan !== undefined && lease.age_ms < olderThan * 1_000) break;
      yield lease;
    }
}
