import type { Bucket, Period } from "../../users/client/index.ts";
import { pageSizeFor, type LimitOption } from "../framework/arguments.ts";
import type { Context } from "../framework/context.ts";
import { listResult, type Result } from "../output/result.ts";
import { callRoute } from "../connection/call-route.ts";
import { countOf } from "../../common/text/count-of.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";

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

interface EraseOptions extends ChangeOptions {
  type: Bucket["type"];
}

interface Erased {
  erased: number;
  /** Changes in the change feed that lose the name. */
  changes: number;
  has_more: boolean;
}

/** Erases the periods of a name that have ended. */
export async function eraseHistory(context: Context, name: string, options: EraseOptions): Promise<Result> {
  const reason = reasonOf(options);
  const bucket = { type: options.type, value: name };
  const erase = (dryRun: boolean): Promise<Erased> => {
    // No entry is made of a dry run, so its reason is kept nowhere.
    const body = JSON.stringify({ bucket, reason: reason || "a dry run", dry_run: dryRun });
    return callRoute<Erased>(context, { method: "POST", path: "/v1/admin/history/erase", body });
  };
  const found = await erase(true);
  const periods = `${found.has_more ? "more than " : ""}${countOf(found.erased, "past period")}`;
  if (options.dryRun === true)
    return {
      document: { bucket, ...found, dry_run: true },
      text: () => `Would erase ${periods} of the name${inFeed(found)}.`,
      notes: ["Nothing was changed."],
    };
  if (found.erased === 0 && found.changes === 0)
    return {
      document: { bucket, erased: 0, changes: 0, has_more: false, dry_run: false },
      text: () => "The name has no period that has ended. Nothing was changed.",
    };
  await confirm(context, options, {
    name,
    effect: [
      `This erases ${periods} of the name ${name} (${options.type})${inFeed(found)}, because: ${reason}`,
      `Its current claim stays. ${FINAL}`,
    ].join("\n"),
  });
  let [erased, changes] = [0, 0];
  for (let hasMore = true; hasMore;) {
    const done = await erase(false);
    erased += done.erased;
    changes += done.changes;
    hasMore = done.has_more;
  }
  return {
    document: { bucket, erased, changes, has_more: false, dry_run: false },
    text: () => `Erased ${countOf(erased, "past period")}${inFeed({ changes })}.`,
    notes: [FINAL],
    nextSteps: ["leasehold audit --action erase_history"],
  };
}

/** The change feed keeps names for some time after their periods were dropped. */
const inFeed = ({ changes }: Pick<Erased, "changes">): string =>
  changes === 0 ? "" : `, and the name in ${countOf(changes, "change")} of the change feed`;

const FINAL = "There is no undo, and the history doesn't say that something was erased.";
