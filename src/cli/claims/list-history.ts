import type { Bucket, Period } from "../../users/client/index.ts";
import { pageSizeFor, type LimitOption } from "../framework/arguments.ts";
import type { Context } from "../framework/context.ts";
import { listResult, type Result } from "../output/result.ts";
import { callRoute } from "../connection/call-route.ts";

interface HistoryOptions extends LimitOption {
  type: Bucket["type"];
  at?: string;
}

interface Page {
  periods: readonly Period[];
  complete_since: string | null;
  next_page_token: string;
}

interface Read {
  items: readonly Period[];
  isCut: boolean;
  completeSince: string | null;
}

/** Lists the owners of a name, now and before, the latest first. */
export async function listHistory(context: Context, name: string, options: HistoryOptions): Promise<Result> {
  const { items, isCut, completeSince } = await read(context, name, options);
  const listed = listResult<Period>({
    name: "periods",
    items,
    isCut,
    columns: [
      { title: "FROM", value: ({ from }) => from },
      { title: "UNTIL", value: ({ until }) => until },
      { title: "CELL", value: ({ cell_id: cell }) => cell },
      { title: "NAME", value: ({ value }) => value },
      { title: "SUBJECT", value: ({ subject }) => `${subject.type} ${subject.id}` },
      { title: "SOURCE", value: ({ source }) => `${source.type} ${source.id}` },
      { title: "ENDED BY", value: ({ ended_by: end }) => end && `${end.kind} ${end.lease_uuid}` },
    ],
    empty:
      options.at === undefined ? "No owner of this name is known." : ownerless(options.at, completeSince),
    notes: [completeness(completeSince)],
  });
  return { ...listed, document: { ...listed.document, complete_since: completeSince } };
}

const completeness = (since: string | null): string =>
  since === null
    ? "The history is complete, except for periods that were erased."
    : `Periods that ended before ${since} may be missing.`;

const ownerless = (at: string, since: string | null): string =>
  since === null || Date.parse(at) >= Date.parse(since)
    ? `No cell owned this name at ${at}.`
    : `The owner at ${at} is unknown.`;

async function read(context: Context, name: string, { type, at, limit }: HistoryOptions): Promise<Read> {
  const path = `/v1/admin/history/${encodeURIComponent(type)}/${encodeURIComponent(name)}`;
  const items: Period[] = [];
  let completeSince: string | null = null;
  let token = "";
  do {
    const query = new URLSearchParams({ page_size: String(pageSizeFor(limit)), page_token: token });
    if (at !== undefined) query.set("at", at);
    const page = await callRoute<Page>(context, { method: "GET", path: `${path}?${query}` });
    items.push(...page.periods);
    // Segments may be dropped between two pages, so the last page knows best.
    completeSince = page.complete_since;
    token = page.next_page_token;
  } while (token !== "" && items.length <= limit);
  return { items: items.slice(0, limit), isCut: items.length > limit, completeSince };
}
