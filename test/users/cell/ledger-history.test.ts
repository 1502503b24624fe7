/** Tests of a cell whose ledger went back in time: the ledger lacks a point that the cell has stored (L7). */
import { afterEach, expect, test, vi } from "vitest";
import { ReconcileAborted } from "../../../src/users/cell/reconcile.ts";
import { UnavailableError } from "../../../src/users/client/errors.ts";
import type { LedgerPoint } from "../../../src/users/client/ledger-history.ts";
import { postgresDialect as dialect } from "./scenarios/postgres-dialect.ts";
import { pglite, testCoordinator } from "./scenarios/starts.ts";
import { TestedCell } from "./scenarios/drizzle.ts";

const { users } = dialect.tables;
const stops: (() => Promise<void>)[] = [];

async function start() {
  const coordinator = await testCoordinator();
  const database = await pglite();
  stops.push(
    () => coordinator.stop(),
    () => database.stop(),
  );
  const one = await new TestedCell("1", dialect, coordinator, database).prepare();
  return { coordinator, one };
}

/** Stores a later point than the ledger has, as another process would have before the ledger went back. */
async function seeMore({ database }: TestedCell): Promise<void> {
  const points = await database.ledgerHistory.load("1");
  expect(points).toHaveLength(1);
  const later = points.map((point) => ({ ...point, position: point.position + 1 }));
  await database.ledgerHistory.save("1", later);
}

afterEach(async () => {
  vi.useRealTimers();
  for (const stop of stops.splice(0)) await stop();
});

test("[L7] a cell stores what it has seen of its ledger, and a new process sends it", async () => {
  const { coordinator, one } = await start();
  expect(await one.database.ledgerHistory.load("1")).toEqual([]);
  await one.cell.transaction((tx) => tx.insert(users, { username: "ada" }));
  await one.cell.flush();
  expect(await one.database.ledgerHistory.load("1")).toEqual(one.client.history.points);
  const other = one.sibling(coordinator, {});
  await other.cell.transaction((tx) => tx.insert(users, { username: "bob" }));
  expect(other.client.history.points).toMatchObject([
    { incarnation: one.client.history.points[0]?.incarnation },
  ]);
});

/** Lets the process be idle for 5 s, and waits until its timer has saved. */
async function idle({ database, client }: TestedCell): Promise<void> {
  await vi.advanceTimersByTimeAsync(5_000);
  vi.useRealTimers();
  await expect.poll(() => database.ledgerHistory.load("1")).toEqual(client.history.points);
}

test("[L7] a process that makes a call and is then idle stores what that call saw", async () => {
  const { one } = await start();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  await one.cell.transaction((tx) => tx.insert(users, { username: "ada" }));
  const [first] = await one.database.ledgerHistory.load("1");
  await one.cell.transaction((tx) => tx.insert(users, { username: "bob" }));
  expect(await one.database.ledgerHistory.load("1")).toEqual([first]);
  expect(one.client.history.points).not.toEqual([first]);
  await idle(one);
});

test("[L7] the point is not stored in the application's transaction, which may be rolled back", async () => {
  const { one } = await start();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  await one.cell.transaction((tx) => tx.insert(users, { username: "ada" }));
  const lease = await one.client.leases.begin({
    creates: [
      {
        bucket: { type: "USERNAMES", value: "bob" },
        subject: { type: "USER", id: "77" },
        source: { type: "RAILS_TABLE_USERS", id: "77" },
      },
    ],
  });
  const before = await one.database.ledgerHistory.load("1");
  const failed = one.cell.transaction(async (tx) => {
    await tx.insert(users, { username: "eve" });
    await one.client.leases.rollback(lease.uuid);
    await vi.advanceTimersByTimeAsync(5_000);
    throw new Error("the application changes its mind");
  });
  await expect(failed).rejects.toThrow("changes its mind");
  expect(one.client.history.points).not.toEqual(before);
  await idle(one);
  expect(await one.rows("users")).toHaveLength(1);
});

test("[L7] a verification stores what its leases saw before it ends", async () => {
  const { one } = await start();
  await one.cell.transaction((tx) => tx.insert(users, { username: "ada" }));
  // Rows without claims, each of which the verification repairs with a lease of its own.
  const names = ["bob", "eve", "kim", "lea"];
  await one.orm.insert(users).values(names.map((username) => ({ username })));
  const before = await one.database.ledgerHistory.load("1");
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  const during: Promise<LedgerPoint[]>[] = [];
  const { status } = await one.cell.verify({
    apply: true,
    maxShare: 1,
    recentMs: 0,
    pageRows: 1,
    leaseOps: 1,
    onProgress: () => {
      during.push(one.database.ledgerHistory.load("1"));
      vi.advanceTimersByTime(5_000);
    },
  });
  expect(status).toBe("done");
  const stored = await Promise.all(during);
  expect(stored[0]).toEqual(before);
  expect(stored.at(-1)?.[0]?.position).toBeGreaterThan(before[0]?.position ?? Infinity);
});

test("[L7] a lost history is unavailable to transactions, and nothing is saved", async () => {
  const { coordinator, one } = await start();
  await one.cell.transaction((tx) => tx.insert(users, { username: "ada" }));
  await seeMore(one);
  const other = one.sibling(coordinator, {});
  const inserted = other.cell.transaction((tx) => tx.insert(users, { username: "bob" }));
  await expect(inserted).rejects.toBeInstanceOf(UnavailableError);
  await expect(inserted).rejects.toThrow(/lost a part of its history/);
  expect(await one.rows("users")).toHaveLength(1);
  // The ledger remembers it, so a process that knows less is refused as well.
  const refused = one.cell.transaction((tx) => tx.insert(users, { username: "eve" }));
  await expect(refused).rejects.toBeInstanceOf(UnavailableError);
});

test("[L7] reconciliation and verification decide nothing while the history is lost", async () => {
  const { coordinator, one } = await start();
  // A saved lease that is not committed yet.
  one.network.fate = ({ operation }) => (operation === "commit" ? "lose" : "deliver");
  await one.cell.transaction((tx) => tx.insert(users, { username: "ada" }));
  const outstanding = await one.outstanding();
  await seeMore(one);
  const other = one.sibling(coordinator, {});
  await expect(other.cell.reconcile({ full: true, commitGraceMs: 0, orphanMs: 0 })).rejects.toBeInstanceOf(
    ReconcileAborted,
  );
  await expect(other.cell.verify({ apply: true, maxShare: 1 })).rejects.toBeInstanceOf(Error);
  expect(other.events).toEqual([]);
  expect(outstanding).toHaveLength(1);
  expect(await one.outstanding()).toEqual(outstanding);
  expect(await one.rows("users")).toHaveLength(1);
});
