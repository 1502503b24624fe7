/**
 * The coordinator's whole state is gone, and the cells rebuild it from their rows: the steps of
 * docs/operating/disaster.md. Until both cells have verified, neither may take a name of the other.
 */
import { eq } from "drizzle-orm";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startCoordinator, type Coordinator } from "../../../../src/hosts/workerd/coordinator.ts";
import { ReconcileAborted, type VerificationReport } from "../../../../src/users/cell/index.ts";
import { AlreadyClaimedError, createClient, UnavailableError } from "../../../../src/users/client/index.ts";
import { postgresDialect as dialect } from "./postgres-dialect.ts";
import { pglite } from "./starts.ts";
import { TestedCell, type TestedCoordinator } from "./drizzle.ts";

const { organizations } = dialect.tables;
const NAMES = "ORGANIZATION_PATH";
const SHARDS = 3;
const reason = "the coordinator was lost";
/** For callers who know that names may change only after a rebuild. */
const rebuild = { apply: true, startOver: true, recentMs: 0, maxShare: 1 } as const;

const stops: (() => Promise<unknown>)[] = [];
let folder = "";
let before: Coordinator;
let one: TestedCell;
let two: TestedCell;

const start = (name: string): Promise<Coordinator> =>
  startCoordinator({
    port: 0,
    stateFolder: join(folder, name),
    variables: { LEASEHOLD_SHARDS: String(SHARDS) },
  });

const asTested = (coordinator: Coordinator): TestedCoordinator => ({
  url: coordinator.url,
  fetch: (to, init) => fetch(to, init),
  keys: { cell: (id) => coordinator.keys.cells[id] ?? "", router: coordinator.keys.router },
  stop: () => coordinator.stop(),
});

const insert = ({ cell }: TestedCell, path: string): Promise<unknown> =>
  cell.transaction((tx) => tx.insert(organizations, { path }));

/** The same cell in a process that calls the new coordinator. */
const movedTo = (cell: TestedCell, coordinator: Coordinator): TestedCell =>
  cell.sibling(asTested(coordinator), {});

/** Reconciles all that is saved, then claims the names of all rows. */
async function rebuildFrom({ cell }: TestedCell): Promise<VerificationReport> {
  await cell.reconcile({ full: true, orphanMs: 0 });
  return cell.verify(rebuild);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "leasehold-lost-coordinator-"));
  stops.push(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  before = await start("before");
  const databases = [await pglite(), await pglite()] as const;
  for (const each of databases) stops.push(() => each.stop());
  one = await new TestedCell("1", dialect, asTested(before), databases[0]).prepare();
  two = await new TestedCell("2", dialect, asTested(before), databases[1]).prepare();
});

afterAll(async () => {
  for (const stop of stops.toReversed()) await stop();
});

test("[H6] [L6] two cells rebuild every claim after a total loss, and no name changes hands", async () => {
  const mine = Array.from({ length: 30 }, (_, index) => `one-${index}`);
  const theirs = Array.from({ length: 30 }, (_, index) => `two-${index}`);
  await one.cell.bulkInsert(
    organizations,
    mine.map((path) => ({ path })),
  );
  await two.cell.bulkInsert(
    organizations,
    theirs.map((path) => ({ path })),
  );
  // What is under way at the moment of the loss: a lease that is saved but not committed, one that is
  // committed nowhere and never saved, and a saved deletion whose names are still to be released.
  one.network.fate = ({ operation }) => (operation === "commit" ? "lose" : "deliver");
  await insert(one, "saved-last");
  one.network.fate = ({ operation }) => (operation === "begin" ? "lose" : "deliver");
  await one.cell.transaction((tx) => tx.deleteLater(organizations, eq(organizations.path, "one-0")));
  await two.client.leases.begin({
    creates: [
      {
        bucket: { type: NAMES, value: "never-saved" },
        subject: { type: "ORGANIZATION", id: "1" },
        source: { type: "RAILS_TABLE_ORGANIZATIONS", id: "1000" },
      },
    ],
  });
  // An older fault: cell 2 has a row with a name of cell 1, written without the SDK.
  await two.orm.insert(organizations).values({ path: "one-7" });
  await Promise.all([one.cell.flush(), two.cell.flush()]);
  await before.stop();

  const after = await start("after");
  stops.push(() => after.stop());
  const [first, second] = [movedTo(one, after), movedTo(two, after)];

  // The new ledgers don't have what the cells have seen, so they refuse every call. Nothing is saved.
  for (const each of [first, second]) {
    await expect(insert(each, "too-early")).rejects.toThrow(UnavailableError);
    await expect(each.cell.reconcile({ full: true })).rejects.toThrow(ReconcileAborted);
    expect((await each.rows("organizations")).some(({ path }) => path === "too-early")).toBe(false);
  }

  const operator = createClient({ url: after.url, key: after.keys.operator });
  const parts = (names: readonly string[], work: (part: string) => Promise<unknown>): Promise<unknown> =>
    Promise.all(names.map(work));
  const shards = Array.from({ length: SHARDS }, (_, number) => `shard-${number}`);
  await parts(shards, (part) =>
    operator.parts.reconcile(part, { dry_run: false, declare_lost: true, reason }),
  );
  await parts(["ledger-1", "ledger-2"], (part) => operator.parts.reconcile(part, { dry_run: false, reason }));

  // From now on only verification takes names, and routers are not told that a name is free.
  for (const path of ["two-1", "entirely-new"])
    await expect(insert(first, path)).rejects.toThrow(UnavailableError);
  await expect(first.owners(NAMES, "two-1")).rejects.toThrow(UnavailableError);

  const firstReport = await rebuildFrom(first);
  expect(firstReport).toMatchObject({ status: "done", counts: { created: 30, otherCell: 0 } });
  // Only the lease that was saved and not committed is unknown to the new coordinator.
  const contradicted = first.events.filter(({ kind }) => kind === "reconcile_finding");
  expect(contradicted).toMatchObject([{ finding: { kind: "contradicted", coordinator: "NOT_FOUND" } }]);
  expect(await first.owners(NAMES, "one-7", "saved-last")).toEqual([
    "one-7: ACTIVE of 1",
    "saved-last: ACTIVE of 1",
  ]);
  // Cell 2 has not verified yet, so its names and all unknown ones are still protected.
  for (const path of ["two-1", "entirely-new"])
    await expect(insert(first, path)).rejects.toThrow(UnavailableError);
  await expect(first.owners(NAMES, "two-1")).rejects.toThrow(UnavailableError);

  const secondReport = await rebuildFrom(second);
  expect(secondReport).toMatchObject({ status: "done", counts: { created: 30, otherCell: 1 } });
  expect(secondReport.items.filter(({ skipReason }) => skipReason === "other_cell")).toMatchObject([
    { bucket: { value: "one-7" } },
  ]);
  for (const each of [first, second])
    expect((await each.cell.verify(rebuild)).counts).toMatchObject({ created: 0, replaced: 0, destroyed: 0 });
  await parts(shards, (part) => operator.parts.finish(part, { reason }));

  expect(await first.owners(NAMES, ...mine.slice(1), "one-0", "never-saved")).toEqual([
    ...mine.slice(1).map((path) => `${path}: ACTIVE of 1`),
    "one-0: free",
    "never-saved: free",
  ]);
  expect(await second.owners(NAMES, ...theirs)).toEqual(theirs.map((path) => `${path}: ACTIVE of 2`));
  await expect(insert(first, "two-1")).rejects.toThrow(AlreadyClaimedError);
  await insert(first, "entirely-new");
  // Now the rows of the lost lease leave the queue, and the deferred deletion is carried out.
  expect((await first.cell.reconcile({ full: true })).deferred).toMatchObject({ postponed: 0, refused: 0 });
  await first.cell.verify(rebuild);
  expect(await first.database.verification.listQueue({ after: undefined, limit: 10 })).toEqual([]);
  for (const each of [first, second]) {
    expect(await each.outstanding()).toEqual([]);
    expect(await each.granted()).toEqual([]);
  }
});
