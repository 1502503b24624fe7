import { v7 as uuidv7 } from "uuid";
import type { ReconcileOptions } from "../reconcile.ts";
import type { Suites } from "./runner.ts";
import { fresh, type ConformanceCell, type World } from "./world.ts";

/**
 * A thousandth of the times of S3 (300 s, and 1 h for an orphan), because leases at a real coordinator age in
 * real time.
 */
const thresholds = {
  commitGraceMs: 3_000,
  staleMs: 3_000,
  orphanMs: 36_000,
  windowMs: 7_200_000,
} satisfies Partial<ReconcileOptions>;
const AGE_MS = 3_100;

const sleep = (ms: number): Promise<void> => new Promise((resume) => setTimeout(resume, ms));

/** A lease on a name of its own, with or without its local row. */
async function leave(
  { client, database }: ConformanceCell,
  name: string,
  { local, remote }: { local: boolean; remote: boolean },
): Promise<string> {
  const uuid = uuidv7();
  const id = String(Date.now());
  const source = { type: "RAILS_TABLE_ORGANIZATIONS", id } as const;
  if (remote)
    await client.leases.begin(
      {
        creates: [
          {
            bucket: { type: "ORGANIZATION_PATH", value: name },
            subject: { type: "ORGANIZATION", id },
            source,
          },
        ],
      },
      { uuid },
    );
  if (local) await database.run((tx) => database.insertLease(tx, { uuid, sources: [source] }));
  return uuid;
}

export function recoverySuite({ describe, test, expect }: Suites, world: World): void {
  describe("S3: recovery", () => {
    test("every combination of saved or not, and fresh or stale", async () => {
      const { one } = world;
      const names = Object.fromEntries(["a", "b", "c", "d"].map((each) => [each, fresh(each)]));
      const c = await leave(one, names["c"] ?? "", { local: true, remote: true });
      const d = await leave(one, names["d"] ?? "", { local: false, remote: true });
      const e = await leave(one, fresh("e"), { local: true, remote: true });
      await one.client.leases.commit(e);
      await one.age(e, 60);
      await sleep(AGE_MS);
      const a = await leave(one, names["a"] ?? "", { local: true, remote: true });
      const b = await leave(one, names["b"] ?? "", { local: false, remote: true });
      const f = await leave(one, fresh("f"), { local: true, remote: true });
      await one.client.leases.commit(f);
      one.network.forget();

      const windowed = await one.cell.reconcile(thresholds);
      expect(windowed.counters).toEqual({
        processed: 4,
        committed: 1,
        rolledBack: 1,
        pending: 1,
        orphaned: 0,
        contradicted: 0,
        failed: 0,
      });
      expect(one.network.of("commit").map(({ uuid }) => uuid)).toEqual([c]);
      expect(one.network.of("rollback").map(({ uuid }) => uuid)).toEqual([d]);
      expect((await one.outstanding()).map(({ uuid }) => uuid).toSorted()).toEqual([a, e, f].toSorted());
      expect((await one.granted()).toSorted()).toEqual([a, b].toSorted());
      expect(await one.owners("ORGANIZATION_PATH", names["c"] ?? "", names["d"] ?? "")).toEqual([
        `${names["c"]}: ACTIVE of 1`,
        `${names["d"]}: free`,
      ]);

      one.network.forget();
      const full = await one.cell.reconcile({ ...thresholds, full: true });
      expect(full.counters).toMatchObject({
        orphaned: 1,
        committed: 0,
        rolledBack: 0,
        contradicted: 0,
        failed: 0,
      });
      expect(one.network.of("rollback")).toEqual([]);
      expect((await one.outstanding()).map(({ uuid }) => uuid).toSorted()).toEqual([a, f].toSorted());

      await one.cell.reconcile({ commitGraceMs: 0, staleMs: 0, orphanMs: 0, full: true });
      expect(await one.outstanding()).toEqual([]);
      expect(await one.granted()).toEqual([]);
    });

    test("three concurrent runs commit three pages of leases, each lease once", async () => {
      const { one } = world;
      const uuids = [];
      for (let index = 0; index < 25; index += 1)
        uuids.push(await leave(one, fresh("paged"), { local: true, remote: true }));
      one.network.forget();
      const single = await one.cell.reconcile({ commitGraceMs: 0, pageSize: 10 });
      expect(single.counters).toMatchObject({ processed: 25, committed: 25, failed: 0 });
      expect(one.network.of("list")).toHaveLength(3);
      expect(new Set(one.network.of("commit").map(({ uuid }) => uuid))).toEqual(new Set(uuids));
      expect(one.network.of("commit")).toHaveLength(25);

      for (let index = 0; index < 25; index += 1)
        await leave(one, fresh("raced"), { local: index % 2 === 0, remote: true });
      const runs = await Promise.all(
        [1, 2, 3].map(() => one.cell.reconcile({ commitGraceMs: 0, staleMs: 0, pageSize: 10 })),
      );
      for (const { counters } of runs) expect(counters).toMatchObject({ failed: 0, contradicted: 0 });
      expect(await one.outstanding()).toEqual([]);
      expect(await one.granted()).toEqual([]);
    });

    test("a lease that cannot be decided is reported, and the others are decided", async () => {
      const { one } = world;
      const uuids = [];
      for (let index = 0; index < 3; index += 1)
        uuids.push(await leave(one, fresh("stuck"), { local: true, remote: true }));
      const [, stuck] = uuids;
      one.network.fate = ({ operation, uuid }) =>
        operation === "commit" && uuid === stuck ? "lose" : "deliver";
      const { counters, findings } = await one.cell.reconcile({ commitGraceMs: 0 });
      expect(counters).toMatchObject({ processed: 3, committed: 2, failed: 1 });
      expect(findings).toMatchObject([{ kind: "failed", uuid: stuck, step: "commit" }]);
      expect((await one.outstanding()).map(({ uuid }) => uuid)).toEqual([stuck]);
      one.network.forget();
      await one.cell.reconcile({ commitGraceMs: 0 });
      expect(await one.outstanding()).toEqual([]);
    });

    test("[L5] after the fence, an open local transaction cannot save its stale lease", async () => {
      const { one } = world;
      const path = fresh("late");
      let uuid = "";
      const failed = one.transaction(async (tx) => tx.insert("organizations", { path }));
      await failed;
      const run = one.database.run.bind(one.database);
      // Between the begin and COMMIT the lease becomes stale. Its row is not committed, so the fence waits,
      // and times out.
      one.database.run = (body) =>
        run(async (tx) => {
          const value = await body(tx);
          if (one.target.isConcurrent) {
            const { counters } = await one.cell.reconcile({ staleMs: 0 });
            expect(counters).toMatchObject({ pending: 1, rolledBack: 0 });
          }
          return value;
        });
      const inFlight = fresh("in-flight");
      try {
        await one.transaction((tx) => tx.insert("organizations", { path: inFlight }));
      } finally {
        one.database.run = run;
      }
      expect(await one.owners("ORGANIZATION_PATH", inFlight)).toEqual([`${inFlight}: ACTIVE of 1`]);

      // The other way round: the fence is there before the row is.
      const insertLease = one.database.insertLease.bind(one.database);
      const overtaken = fresh("overtaken");
      one.database.insertLease = async (tx, lease) => {
        ({ uuid } = lease);
        if (one.target.isConcurrent) expect(await one.database.fence(uuid)).toBe("fenced");
        else
          await one.write(
            tx,
            `INSERT INTO leasehold_outstanding_leases (uuid, state, sources)
              VALUES ('${uuid}', 'fenced', '[]')`,
          );
        await insertLease(tx, lease);
      };
      try {
        await expect(
          one.transaction((tx) => tx.insert("organizations", { path: overtaken })),
        ).rejects.toThrow();
      } finally {
        one.database.insertLease = insertLease;
      }
      expect((await one.rows("organizations")).some((row) => row["path"] === overtaken)).toBe(false);
      expect(await one.owners("ORGANIZATION_PATH", overtaken)).toEqual([`${overtaken}: free`]);
      expect(await one.outstanding()).toEqual([]);
    });

    test("only old fences are removed", async () => {
      const { one } = world;
      const uuid = uuidv7();
      expect(await one.database.fence(uuid)).toBe("fenced");
      expect(await one.database.fence(uuid)).toBe("fenced");
      expect(await one.database.has([uuid])).toEqual([]);
      expect(await one.database.removeFences(60_000)).toBe(0);
      await one.age(uuid, 61);
      expect(await one.database.removeFences(60_000)).toBe(1);
      const saved = await leave(one, fresh("saved"), { local: true, remote: false });
      expect(await one.database.fence(saved)).toBe("saved");
      await one.database.remove(saved);
    });
  });
}
