import { isLeaseholdError } from "../../users/client/index.ts";
import { bodyOf } from "../connection/send.ts";
import { messageOf } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { durationText } from "../../common/text/duration.ts";
import { countOf } from "../../common/text/count-of.ts";
import { take } from "../output/result.ts";
import { APPLY_MIGRATIONS } from "../../common/status/reasons.ts";
import { fail, ok, warn, type Check } from "./check.ts";

/** The cron runs every minute. */
const LATE_MS = 5 * 60_000;

/** Says what fails, and when the cron last ran. */
const READYZ = "leasehold api GET /readyz";

const CELLS = "leasehold cells ls";

const MAX_STALE = 1_000;

/**
 * Whether the parts answer, and whether D1 and the cron keep up.
 *
 * @param canList - the key may read what operators and viewers may read
 */
export async function checkDeployment(context: Context, nowMs: number, canList: boolean): Promise<Check[]> {
  const ready = await context.send({ method: "GET", path: "/readyz" });
  const body = bodyOf(ready);
  const failed = Array.isArray(body["failed"]) ? body["failed"].map(String) : [];
  if (ready.status !== 200)
    return [
      fail("parts", `not ready: ${failed.join(", ") || `HTTP ${ready.status}`}`, "leasehold status", {
        failed: failed.length,
      }),
      ...(canList ? await checkStale(context, nowMs) : []),
    ];
  const parts =
    failed.length > 0
      ? warn("parts", `ready, but these fail: ${failed.join(", ")}`, "leasehold status")
      : body["status"] === "no_cells"
        ? warn("parts", "all parts answer, but there is no cell", "leasehold cells add --help")
        : ok("parts", "all parts answer");
  return [
    parts,
    checkD1(body),
    ...(body["d1"] === "up" || body["d1"] === "outdated" ? checkCron(body["last_cron_run"], nowMs) : []),
    ...(canList ? await checkStale(context, nowMs) : []),
  ];
}

function checkD1({ d1, missing_migrations: missing }: Readonly<Record<string, unknown>>): Check {
  if (d1 === "up") return ok("d1", "it answers");
  return d1 === "outdated"
    ? warn("d1", `it lacks migrations: ${[missing].flat().join(", ")}`, APPLY_MIGRATIONS)
    : fail("d1", "it does not answer", READYZ);
}

function checkCron(run: unknown, nowMs: number): Check[] {
  const { finished_at: at, cells_failed: failed } = (run ?? {}) as Record<string, unknown>;
  if (typeof at !== "string") return [fail("cron", "it has never finished a run", READYZ)];
  const ageMs = nowMs - Date.parse(at);
  const facts = { age_s: Math.round(ageMs / 1_000), cells_failed: Number(failed) };
  const failedCells = countOf(facts.cells_failed, "cell");
  const text = `it last finished ${durationText(ageMs)} ago, and ${failedCells} failed`;
  if (ageMs > LATE_MS) return [fail("cron", `${text}; it should run every minute`, READYZ, facts)];
  if (facts.cells_failed > 0) return [fail("cron", text, "leasehold cells ls", facts)];
  return [ok("cron", text, facts)];
}

async function checkStale(context: Context, nowMs: number): Promise<Check[]> {
  const page = bodyOf(await context.send({ method: "GET", path: "/v1/leases/stale?page_size=1" }));
  const pulledAt = page["last_pulled_at"];
  return [await checkStaleLeases(context), checkCopies(pulledAt, nowMs)];
}

async function checkStaleLeases(context: Context): Promise<Check> {
  try {
    const { items, isCut } = await take((await context.client()).leases.listStale(), MAX_STALE);
    const facts = { stale: items.length, oldest_s: Math.round((items[0]?.age_ms ?? 0) / 1_000) };
    if (items.length === 0) return ok("stale leases", "there are none", facts);
    const cells = new Set(items.map(({ cell_id: id }) => id)).size;
    const leases = `${isCut ? "more than " : ""}${countOf(items.length, "stale lease")}`;
    const text = `${leases} in ${countOf(cells, "cell")}`;
    return fail("stale leases", text, "leasehold leases ls --stale", facts);
  } catch (error) {
    if (!isLeaseholdError(error)) throw error;
    return fail("stale leases", `they can't be listed: ${messageOf(error)}`, READYZ);
  }
}

/** How far the copies in D1 are behind the ledgers. */
function checkCopies(pulledAt: unknown, nowMs: number): Check {
  if (pulledAt === null) return fail("copies in d1", "some cell was never copied into D1", CELLS);
  if (typeof pulledAt !== "string") return fail("copies in d1", "their age is not known", CELLS);
  const ageMs = nowMs - Date.parse(pulledAt);
  const facts = { age_s: Math.round(ageMs / 1_000) };
  const text = `they are ${durationText(ageMs)} old`;
  return ageMs > LATE_MS ? fail("copies in d1", text, CELLS, facts) : ok("copies in d1", text, facts);
}

/** The alert LeaseholdShardHoldsFilling has the same bound. */
const FULL = 0.8;

const METRICS = "leasehold api GET /metrics";

/** Whether the shards may hold more names. A shard that does not answer has no samples. */
export async function checkShards(context: Context): Promise<Check> {
  const { status, text } = await context.send({ method: "GET", path: "/metrics" });
  if (status !== 200) return fail("holds", `the metrics can't be read: HTTP ${status}`, METRICS);
  const samples = new Map(
    [...text.matchAll(/^(leasehold_holds\w*)\{shard="(\d+)"\} (\d+)$/gm)].map(
      ([, family = "", shard = "", value]) => [`${family} ${shard}`, Number(value)],
    ),
  );
  const shards = [...samples.keys()].flatMap((key) => /^leasehold_holds (\d+)$/.exec(key)?.[1] ?? []);
  const [fullest] = shards
    .map((shard) => {
      const of = (family: string): number => samples.get(`${family} ${shard}`) ?? 0;
      const facts = {
        held: of("leasehold_holds"),
        of_one_cell: of("leasehold_holds_of_one_cell"),
        limit: of("leasehold_holds_limit"),
      };
      // One cell may hold half.
      return { shard, facts, share: Math.max(facts.held, 2 * facts.of_one_cell) / facts.limit };
    })
    .toSorted((a, b) => b.share - a.share);
  if (fullest === undefined) return warn("holds", "no shard says how many names it holds", METRICS);
  const { shard, facts, share } = fullest;
  const detail =
    `shard ${shard} holds ${countOf(facts.held, "name")}, ${facts.of_one_cell} for one cell; ` +
    `the limit is ${facts.limit}, and half of it for a cell`;
  return share > FULL ? warn("holds", detail, "leasehold leases ls", facts) : ok("holds", detail, facts);
}
