import { is } from "drizzle-orm";
import { PgTable } from "drizzle-orm/pg-core";
import { verificationQueue } from "../../../src/users/cell/postgres/index.ts";
import type { ReconcileOptions } from "../../../src/users/cell/index.ts";
import type { OpenCell } from "./open-cell.ts";
import { claimables } from "./tables.ts";

/**
 * Options for a reconciliation that waits for nothing. They are only safe if no other process of the cell
 * runs.
 */
const atOnce = { full: true, commitGraceMs: 0, staleMs: 0, orphanMs: 0 } satisfies Partial<ReconcileOptions>;
/** Several runs may be needed, because a request of a dead process can still arrive between two of them. */
const MOST_RUNS = 50;

/** Reconciles until a run finds nothing to do. Returns the complaints. */
export async function reconcileUntilDone({ cell }: OpenCell): Promise<string[]> {
  const complaints: string[] = [];
  for (let run = 1; run <= MOST_RUNS; run += 1) {
    const { counters, findings, deferred } = await cell.reconcile(atOnce);
    for (const finding of findings)
      if (finding.kind === "contradicted") complaints.push(`contradicted: ${JSON.stringify(finding)}`);
    if (counters.processed === 0 && deferred.postponed === 0) return complaints;
  }
  return [...complaints, `reconciliation is not done after ${MOST_RUNS} runs`];
}

/** Differences between the cell's database and the coordinator, and leftovers on either side. */
export async function findDisagreements(open: OpenCell): Promise<string[]> {
  const [saved, deferred, queued, granted] = await Promise.all([
    open.database.list({ afterUuid: "", limit: 1_000 }),
    open.database.listDeferred({ afterUuid: "", limit: 1_000 }),
    open.orm.select().from(verificationQueue),
    open.client.leases.list().all(),
  ]);
  const claims = await Promise.all(
    claimables.map(({ source }) => open.client.records.list({ sourceType: source }).all()),
  );
  const rows = await claimsOfRows(open);
  const atCoordinator = claims.flat().map((claim) => `${textOf(claim)} ${claim.status}`);
  return [
    ...saved.map(({ uuid }) => `lease ${uuid} is still outstanding in the database`),
    ...deferred.map(({ uuid }) => `deferred lease ${uuid} is still in the database`),
    ...queued.map(({ sourceType, sourceId }) => `${sourceType} ${sourceId} is queued for verification`),
    ...granted.map(({ uuid }) => `lease ${uuid} is still granted`),
    ...without(rows, atCoordinator).map((text) => `a row without its claim: ${text}`),
    ...without(atCoordinator, rows).map((text) => `a claim without its row: ${text}`),
  ];
}

/** The claims that all rows require, as the coordinator must have them. */
async function claimsOfRows({ orm }: OpenCell): Promise<string[]> {
  const all = await Promise.all(
    claimables.map(async (claimable) => {
      const { table } = claimable;
      if (!is(table, PgTable)) throw new TypeError(`${claimable.name} is not a table of PostgreSQL`);
      const rows: Record<string, unknown>[] = await orm.select().from(table);
      return rows.flatMap((row) => claimable.claimsOf(row));
    }),
  );
  return all.flat().map((claim) => `${textOf(claim)} ACTIVE`);
}

interface AnyClaim {
  bucket: { type: string; value: string };
  subject: { type: string; id: unknown } | undefined;
  source: { type: string; id: unknown };
}

const textOf = ({ bucket, subject, source }: AnyClaim): string =>
  `${bucket.type} ${bucket.value} of ${subject?.type} ` +
  `${String(subject?.id)} from ${source.type} ${String(source.id)}`;

function without(all: readonly string[], others: readonly string[]): string[] {
  const known = new Set(others);
  return all.filter((each) => !known.has(each));
}
