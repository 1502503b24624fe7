import type { Client, Lease, StaleLease, StalePage } from "../../users/client/index.ts";
import type { Context } from "../framework/context.ts";
import { pageSizeFor, type LimitOption } from "../framework/arguments.ts";
import { durationText } from "../../common/text/duration.ts";
import { copyNote } from "../output/copy-note.ts";
import { listResult, take, type Result } from "../output/result.ts";
import { commandLine } from "../../common/text/shell-word.ts";

interface ListOptions extends LimitOption {
  cell?: string;
  stale?: boolean;
  olderThan?: number;
}

type Listed = Lease & Partial<Pick<StaleLease, "confirmed">>;

export async function listLeases(context: Context, options: ListOptions): Promise<Result> {
  const { limit, stale } = options;
  const client = await context.client();
  let copy: StalePage | undefined;
  const staleLeases = async function* (): AsyncGenerator<Listed> {
    for await (const page of stalePages(client, options)) {
      // The first page was read first, so the list has everything up to its time.
      copy ??= page;
      yield* page.items;
    }
  };
  const { items, isCut } = await take<Listed>(
    stale === true ? staleLeases() : openLeases(client, options),
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
    ...(copy === undefined ? {} : { about: { last_pulled_at: copy.lastPulledAt } }),
    notes: [
      ...(isUnconfirmed
        ? ["The ledgers of some of these leases can't be reached: they may be decided."]
        : []),
      ...(copy === undefined ? [] : [copyNote("leases that were granted", copy.lastPulledAt)]),
    ],
    nextSteps:
      first === undefined ? [] : [commandLine("leases", "show", first.uuid, "--cell", first.cell_id)],
  });
}

const stalePages = (client: Client, { cell, olderThan, limit }: ListOptions): AsyncIterable<StalePage> =>
  client.leases.listStale({ cell, olderThanS: olderThan, pageSize: pageSizeFor(limit) }).pages();

/** Each cell's leases are listed oldest first. */
async function* openLeases(client: Client, { cell, olderThan, limit }: ListOptions): AsyncGenerator<Listed> {
  const cells = cell === undefined ? (await client.cells.list().all()).map(({ cell_id: id }) => id) : [cell];
  for (const id of cells)
    for await (const lease of client.forCell(id).leases.list({ pageSize: pageSizeFor(limit) })) {
      if (olderThan !== undefined && lease.age_ms < olderThan * 1_000) break;
      yield lease;
    }
}
