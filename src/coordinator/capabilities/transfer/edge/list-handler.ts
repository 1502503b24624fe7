import { fanOut } from "../../../kernel/fan-out.ts";
import { ok, type Result } from "../../../kernel/refusal.ts";
import type { ListTransfers, Transfer } from "../messages.ts";
import type { Call, Handler } from "../../../api/handler.ts";
import type { transferRoutes } from "./routes.ts";
import { pageOf } from "../../../api/paging.ts";
import { LEDGER, readTimeoutMs } from "../../../isolate/reach.ts";
import { toApiTransfer } from "./answers.ts";
import { askDestination, askerOf, authorize } from "../../../api/handlers/ledger-access.ts";

/** The most ledgers that one request asks. Most of them have no transfers. */
const MOST_LEDGERS = 100;

/** Where a list continues: at the transfers to a cell that began before a position. */
interface Position {
  to: string;
  before: number | null;
}

/** A destination whose ledger is asked, for all transfers or for those from one cell. */
interface Asked extends Position {
  from: string | null;
}

/** Lists transfers. Only the ledgers of the destinations have them (Y1). */
export const listTransfers: Handler<(typeof transferRoutes)["listTransfers"]> = async (call) => {
  const page = await pageOf<Position>(call);
  if (!page.ok) return page;
  const { limit, position, next } = page.value;
  const destinations = await destinationsOf(call, position);
  if (!destinations.ok) return destinations;
  const found = await readTransfers(call, destinations.value, limit);
  if (!found.ok) return found;
  const { transfers, position: last, headers } = found.value;
  return ok({
    status: 200,
    body: {
      transfers: transfers.map((each) => toApiTransfer(each, call.principal.cell)),
      next_page_token: await next(last),
    },
    headers,
  });
};

/** The destinations that may have transfers for the caller, in the order of the list. */
async function destinationsOf(
  { deployment, waitUntil, principal, query }: Call<(typeof transferRoutes)["listTransfers"]>,
  position: Position | undefined,
): Promise<Result<Asked[]>> {
  for (const cell of [query.from, query.to]) {
    const registered = cell === undefined ? undefined : await deployment.directory.cell(cell, waitUntil);
    if (registered?.ok === false) return registered;
  }
  const own = principal.cell;
  // The ledgers of other cells don't know the caller's key (Y7).
  const authorized = own === null ? ok(null) : await authorize(deployment, principal, own);
  if (!authorized.ok) return authorized;
  const view = await deployment.directory.view(waitUntil);
  if (!view.ok) return view;
  const { cells, removedCells } = view.value;
  const first = position?.to;
  const asked = [...cells.keys(), ...removedCells.keys()]
    .filter((to) => (query.to ?? to) === to && (first === undefined || compareCells(to, first) >= 0))
    .toSorted(compareCells)
    .flatMap((to): Asked[] => {
      const before = to === first ? (position?.before ?? null) : null;
      if (own === null || to === own) return [{ to, before, from: query.from ?? null }];
      return (query.from ?? own) === own ? [{ to, before, from: own }] : [];
    });
  return ok(asked);
}

const compareCells = (one: string, other: string): number => {
  const [a, b] = [BigInt(one), BigInt(other)];
  return a < b ? -1 : Number(a > b);
};

interface Found {
  transfers: Transfer[];
  position: Position | undefined;
  headers: Record<string, string>;
}

/** Asks the ledgers, some at a time, until there are enough transfers. */
async function readTransfers(
  { deployment, principal, seen }: Call<(typeof transferRoutes)["listTransfers"]>,
  destinations: readonly Asked[],
  limit: number,
): Promise<Result<Found>> {
  const { objects, config } = deployment;
  const { limits } = config;
  const transfers: Transfer[] = [];
  // Of the ledger of the caller's cell, if it was asked.
  const headers: Record<string, string> = {};
  const last = Math.min(destinations.length, MOST_LEDGERS);
  for (let index = 0; index < last; index += limits.fanOut) {
    const some = destinations.slice(index, Math.min(index + limits.fanOut, last));
    const pages = await fanOut(some, limits.fanOut, ({ to, before, from }) => {
      const party = principal.cell === null ? "operator" : to === principal.cell ? "to" : "from";
      const message: ListTransfers = {
        ...askerOf(deployment, principal, party === "to" ? seen : undefined),
        party,
        before,
        from,
        limit,
      };
      return askDestination(principal, party, readTimeoutMs(limits), { name: LEDGER }, () =>
        objects.ledger(to).listTransfers(message),
      );
    });
    for (const [at, page] of pages.entries()) {
      if (!page.ok) return page;
      const to = some[at]?.to ?? "";
      if (transfers.length === limit)
        return ok({ transfers, position: { to, before: some[at]?.before ?? null }, headers });
      const { transfers: listed, next } = page.value.value;
      Object.assign(headers, page.value.headers);
      const taken = listed.slice(0, limit - transfers.length);
      transfers.push(...taken);
      const isWhole = taken.length === listed.length;
      const before = isWhole ? next : (taken.at(-1)?.position ?? null);
      if (before !== null) return ok({ transfers, position: { to, before }, headers });
    }
  }
  const following = destinations[last];
  return ok({
    transfers,
    position: following && { to: following.to, before: following.before },
    headers,
  });
}
