import { v7 as uuidv7 } from "uuid";
import { describe, expect, test } from "vitest";
import { fresh, type ConformanceCell, type World } from "../../../../src/users/cell/conformance/world.ts";
import type { AdvancedCoordinator } from "./starts.ts";

/** The times of S3. */
const thresholds = { commitGraceMs: 300_000, staleMs: 300_000, orphanMs: 3_600_000 };
const STALE_SECONDS = 301;

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

export function recoverySuite(world: World<AdvancedCoordinator>): void {
  describe("S3: recovery", () => {
    test("every combination of saved or not, and fresh or stale", async () => {
      const { one } = world;
      const names = Object.fromEntries(["a", "b", "c", "d"].map((each) => [each, fresh(each)]));
      const c = await leave(one, names["c"] ?? "", { local: true, remote: true });
      const d = await leave(one, names["d"] ?? "", { local: false, remote: true });
      const e = await leave(one, fresh("e"), { local: true, remote: true });
      await one.client.leases.commit(e);
      await world.coordinator.advance(STALE_SECONDS * 1_000);
      await one.age(c, STALE_SECONDS);
      await one.age(e, 3_601);
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

    test("a run commits three pages of leases, each lease once", async () => {
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
  });
}
