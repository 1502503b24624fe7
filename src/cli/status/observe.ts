import { isLeaseholdError, type Client, type Key } from "../../users/client/index.ts";
import { callRoute } from "../connection/call-route.ts";
import { keyFactsOf } from "../connection/key-facts.ts";
import { bodyOf, type RawAnswer } from "../connection/send.ts";
import { messageOf } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { take } from "../output/result.ts";
import { readOperations } from "../operations/operations.ts";
import { readUpgrade } from "../upgrade/upgrade.ts";
import { readShards } from "../shards/shards.ts";
import {
  cellLimitsOf,
  cellStatusOf,
  expiringAuthoritiesOf,
  expiringKeysOf,
  idsOf,
  failedCopyOf,
  keyedCellsOf,
  operationsOf,
  readinessOf,
  shardsOf,
  textOf,
  type FailedCopy,
  type Observed,
  type Unread,
} from "../../common/status/observed.ts";

/** A deployment has at most 1,000 cells. */
const MAX_CELLS = 1_000;
const MAX_STALE = 1_000;
export async function observe(context: Context): Promise<Observed> {
  const { url, key } = await context.target();
  const client = await context.client();
  const unread: Unread[] = [];
  const health = await attempt(unread, "The version", () =>
    context.send({ method: "GET", path: "/healthz" }),
  );
  // Nothing else can answer then, and every call would wait for its deadline.
  if (health === undefined) return nothing(url, unread);
  const ready = await context.send({ method: "GET", path: "/readyz" });
  const nowMs = timeOf(ready) ?? context.io.now();
  const cells = await attempt(unread, "The list of cells", () => take(client.cells.list(), MAX_CELLS));
  const stale = await attempt(unread, "The list of stale leases", () =>
    take(client.leases.listStale(), MAX_STALE),
  );
  const limits = await attempt(unread, "The list of limits", () => client.limits());
  const copies = await attempt(unread, "The list of failed copies", () =>
    take(failedCopies(context), MAX_CELLS),
  );
  const keys = await attempt(unread, "The list of keys", () => allKeys(client));
  const keyed = keys && keyedCellsOf(keys, nowMs);
  const growth = await attempt(unread, "The number of shards", () => readShards(context));
  const operations = await attempt(unread, "The list of operations", () => readOperations(context));
  const upgrade = await attempt(unread, "The formats of the parts", () => readUpgrade(context));
  const identities = await attempt(unread, "The identities", () => client.identities.get());
  const facts = keyFactsOf(key);
  return {
    url,
    version: textOf(bodyOf(health)["version"]),
    placement: textOf(bodyOf(health)["placement"]),
    ...readinessOf(ready.status, bodyOf(ready), nowMs),
    cells: cells?.items.map((cell) => cellStatusOf(cell, stale?.items ?? [], keyed)) ?? [],
    failed_copies: copies?.items ?? [],
    expiring_keys:
      keys === undefined
        ? []
        : expiringKeysOf(keys, nowMs, cells?.isCut === false ? idsOf(cells.items) : undefined),
    expiring_authorities: expiringAuthoritiesOf(identities?.authority_expiries ?? [], nowMs),
    cut: [cells, stale, copies].some((list) => list?.isCut === true),
    unread,
    ...shardsOf(growth, nowMs),
    operations: operationsOf(operations ?? [], nowMs),
    upgrade: upgrade ?? null,
    limits: limits === undefined ? null : cellLimitsOf(limits),
    key: facts === undefined ? null : { role: facts.role, expires_in_ms: facts.expiresAtMs - nowMs },
  };
}

/** A key that is refused ends the command. Everything else is one more thing that is not in order. */
async function attempt<T>(unread: Unread[], what: string, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (isLeaseholdError(error) && !UNREADABLE.has(error.code)) throw error;
    unread.push({ what, why: messageOf(error) });
    return undefined;
  }
}

const UNREADABLE: ReadonlySet<string> = new Set(["UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"]);

const nothing = (url: string, unread: readonly Unread[]): Observed => ({
  url,
  version: null,
  placement: null,
  readiness: "failed",
  failed_parts: [],
  failure: null,
  d1: null,
  missing_migrations: [],
  cron: null,
  failed_copies: [],
  cells: [],
  expiring_keys: [],
  expiring_authorities: [],
  cut: false,
  unread,
  limits: null,
  shards: null,
  growth: null,
  operations: [],
  upgrade: null,
  key: null,
});

interface CopiesPage {
  copies: Parameters<typeof failedCopyOf>[0][];
  next_page_token: string;
}

async function* failedCopies(context: Context): AsyncGenerator<FailedCopy> {
  let token = "";
  do {
    const query = new URLSearchParams({ page_size: String(MAX_CELLS), page_token: token });
    const path = `/v1/admin/copies/failed?${query}`;
    const page = await callRoute<CopiesPage>(context, { method: "GET", path });
    yield* page.copies.map(failedCopyOf);
    token = page.next_page_token;
  } while (token !== "");
}

/** The deployment's clock. The times that it tells are not compared with the clock of this machine. */
function timeOf(answer: RawAnswer): number | undefined {
  const ms = Date.parse(answer.header("date") ?? "");
  return Number.isNaN(ms) ? undefined : ms;
}

const MAX_KEYS = 1_000;

/** Undefined: there are more, so that the newest keys may be among those that were not read. */
export async function allKeys(client: Client): Promise<readonly Key[] | undefined> {
  const { items, isCut } = await take(client.keys.list({ pageSize: MAX_KEYS }), MAX_KEYS);
  return isCut ? undefined : items;
}
