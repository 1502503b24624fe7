import { describe, expect, test } from "vitest";
import { fresh, type World } from "../../../../src/users/cell/conformance/world.ts";
import type { BulkProgress } from "../../../../src/users/cell/bulk-changes.ts";
import { BulkError } from "../../../../src/users/cell/errors.ts";

export function bulkSuite(world: World): void {
  describe("S5: bulk changes", () => {
    test("1,001 inserts, and their deletion, take leases of 1,000 and 1", async () => {
      const { one } = world;
      const prefix = fresh("bulk");
      const rows = Array.from({ length: 1_001 }, (_, index) => ({ path: `${prefix}-${index}` }));
      expect(await one.bulkInsert("redirects", rows)).toEqual({ records: 1_001, chunks: 2, refused: [] });
      expect(one.network.batchSizes).toEqual([1_000, 1]);
      expect(await one.owners("REDIRECT_ROUTES", `${prefix}-0`, `${prefix}-1000`)).toEqual([
        `${prefix}-0: ACTIVE of 1`,
        `${prefix}-1000: ACTIVE of 1`,
      ]);
      one.network.forget();
      expect(await one.bulkDelete("redirects", { path: rows.map(({ path }) => path) })).toEqual({
        records: 1_001,
        chunks: 2,
        refused: [],
      });
      expect(one.network.batchSizes).toEqual([1_000, 1]);
      expect(await one.owners("REDIRECT_ROUTES", `${prefix}-0`, `${prefix}-1000`)).toEqual([
        `${prefix}-0: free`,
        `${prefix}-1000: free`,
      ]);
      expect(await one.outstanding()).toEqual([]);
    });

    test("a chunk stays within the limit of bytes", async () => {
      const { one } = world;
      const small = one.sibling(world.coordinator, { chunk: { bytes: 1_500 } });
      const values = [1, 2, 3].map(() => fresh("x").padEnd(1_000, "y"));
      expect(
        await small.bulkInsert(
          "redirects",
          values.map((path) => ({ path })),
        ),
      ).toEqual({ records: 3, chunks: 3, refused: [] });
    });

    test("deleteLater releases the names of 1,201 rows in leases of 500, and can be repeated", async () => {
      const { one } = world;
      const prefix = fresh("later");
      const rows = Array.from({ length: 1_201 }, (_, index) => ({ path: `${prefix}-${index}` }));
      await one.bulkInsert("redirects", rows);
      one.network.forget();
      one.network.fate = ({ operation }) => (operation === "begin" ? "refuse" : "deliver");
      expect(
        await one.transaction((tx) => tx.deleteLater("redirects", { path: rows.map(({ path }) => path) })),
      ).toBe(1_201);
      expect(one.events.map(({ kind }) => kind)).toEqual(["release_postponed"]);
      expect(await one.owners("REDIRECT_ROUTES", `${prefix}-7`)).toEqual([`${prefix}-7: ACTIVE of 1`]);

      one.network.forget();
      const [first] = await one.database.listDeferred({ afterUuid: "", limit: 1 });
      // As if a process had died between the commit and the removal of the row.
      await one.client.leases.begin(first?.batch ?? {}, { uuid: first?.uuid });
      await one.client.leases.commit(first?.uuid ?? "");
      one.network.forget();
      const { deferred } = await one.cell.reconcile();
      expect(deferred).toEqual({ done: 3, postponed: 0, refused: 0, dropped: 0 });
      expect(one.network.batchSizes).toEqual([500, 500, 201]);
      expect(await one.owners("REDIRECT_ROUTES", `${prefix}-7`, `${prefix}-1200`)).toEqual([
        `${prefix}-7: free`,
        `${prefix}-1200: free`,
      ]);
      expect((await one.cell.reconcile()).deferred).toEqual({
        done: 0,
        postponed: 0,
        refused: 0,
        dropped: 0,
      });
      expect(await one.database.listDeferred({ afterUuid: "", limit: 1 })).toEqual([]);
      expect(await one.granted()).toEqual([]);
    });

    test("chunks stay within the limits of claims and bytes, for inserts and deletes", async () => {
      const { one } = world;
      const prefix = fresh("wide");
      const small = one.sibling(world.coordinator, { chunk: { ops: 3, bytes: 2_500 } });
      const rows = Array.from({ length: 5 }, (_, index) => ({
        path: `${prefix}-${index}`.padEnd(1_000, "y"),
      }));
      await small.bulkInsert("redirects", rows);
      small.network.forget();
      expect(await small.bulkDelete("redirects", { path: rows.map(({ path }) => path) })).toEqual({
        records: 5,
        chunks: 3,
        refused: [],
      });
      expect(small.network.batchSizes).toEqual([2, 2, 1]);
      await small.bulkInsert("redirects", rows);
      small.network.forget();
      await small.transaction((tx) => tx.deleteLater("redirects", { path: rows.map(({ path }) => path) }));
      expect(small.network.batchSizes).toEqual([2, 2, 1]);
      expect(await one.granted()).toEqual([]);
    });

    test("a deletion that is rolled back releases nothing", async () => {
      const { one } = world;
      const path = fresh("kept");
      await one.transaction((tx) => tx.insert("redirects", { path }));
      one.network.forget();
      const failed = one.transaction(async (tx) => {
        await tx.deleteLater("redirects", { path });
        throw new RangeError("changed my mind");
      });
      await expect(failed).rejects.toThrow("changed my mind");
      expect(one.network.calls).toEqual([]);
      expect(await one.database.listDeferred({ afterUuid: "", limit: 1 })).toEqual([]);
      expect(await one.owners("REDIRECT_ROUTES", path)).toEqual([`${path}: ACTIVE of 1`]);
    });

    test("a name that another row has claimed by then is kept", async () => {
      const { one } = world;
      const [kept, path] = [fresh("kept"), fresh("moved")];
      await one.bulkInsert("redirects", [{ path }, { path: kept }]);
      one.network.fate = ({ operation }) => (operation === "begin" ? "refuse" : "deliver");
      await one.transaction((tx) => tx.deleteLater("redirects", { path: [path, kept] }));
      one.network.forget();
      // A verification would do the same: the name now belongs to another row of this cell.
      const source = { type: "RAILS_TABLE_REDIRECT_ROUTES", id: "999999" } as const;
      const lease = await one.client.leases.begin({
        replaces: [
          { bucket: { type: "REDIRECT_ROUTES", value: path }, subject: { type: "NAMESPACE", id: 1 }, source },
        ],
      });
      await one.client.leases.commit(lease.uuid);
      expect((await one.cell.reconcile()).deferred).toEqual({
        done: 1,
        postponed: 0,
        refused: 0,
        dropped: 1,
      });
      expect(await one.owners("REDIRECT_ROUTES", path, kept)).toEqual([
        `${path}: ACTIVE of 1`,
        `${kept}: free`,
      ]);
    });

    test("a failed chunk reports what is done, and a retry completes the rest", async () => {
      const { one, two } = world;
      const prefix = fresh("partly");
      const rows = Array.from({ length: 30 }, (_, index) => ({
        path: `${prefix}-${String(index).padStart(2, "0")}`,
      }));
      await two.transaction((tx) => tx.insert("redirects", { path: `${prefix}-15` }));
      const chunky = one.sibling(world.coordinator, { chunk: { records: 10 } });
      const error = await chunky.bulkInsert("redirects", rows).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(BulkError);
      expect(error).toMatchObject({
        recordsDone: 10,
        chunksDone: 1,
        code: "ALREADY_EXISTS",
        refused: [{ index: 15, field: "path", value: `${prefix}-15`, problem: "taken" }],
      });
      const paths = async (): Promise<string[]> =>
        (await one.rows("redirects"))
          .map(({ path }) => path)
          .filter((path) => path.startsWith(`${prefix}-`))
          .toSorted();
      expect(await paths()).toEqual(rows.slice(0, 10).map(({ path }) => path));

      // As if a process had died after the begin of its second chunk: a lease without a local row remains.
      const [orphan] = rows.slice(10, 11);
      const source = { type: "RAILS_TABLE_REDIRECT_ROUTES", id: "888888" } as const;
      await one.client.leases.begin({
        creates: [
          {
            bucket: { type: "REDIRECT_ROUTES", value: orphan?.path ?? "" },
            subject: { type: "NAMESPACE", id: 1 },
            source,
          },
        ],
      });
      await one.cell.reconcile({ staleMs: 0 });
      await two.transaction((tx) => tx.delete("redirects", { path: `${prefix}-15` }));
      await chunky.bulkInsert("redirects", rows.slice(10));
      expect(await paths()).toEqual(rows.map(({ path }) => path));
    });

    test("skipRefused saves the others, and lists each refused row by index, name and reason", async () => {
      const { one, two } = world;
      const prefix = fresh("refused");
      const paths = Array.from({ length: 12 }, (_, index) => `${prefix}-${index}`);
      await two.transaction((tx) => tx.insert("projects", { id: `${prefix}-two`, path: `${prefix}-1` }));
      await one.transaction((tx) => tx.insert("projects", { id: `${prefix}-one`, path: `${prefix}-4` }));
      const busy = await two.client.leases.begin({
        creates: [
          {
            bucket: { type: "ROUTES", value: `${prefix}-9` },
            subject: { type: "PROJECT", id: 1 },
            source: { type: "RAILS_TABLE_PROJECTS", id: 1 },
          },
        ],
      });
      const rows = paths.map((path, index) => ({ id: `${prefix}-${index}`, path }));
      const given = [
        ...rows,
        { id: `${prefix}-12`, path: " " },
        { id: `${prefix}-13`, path: `${prefix}-2`.toUpperCase() },
        { id: `${prefix}-14`, path: "a\u202Eb" },
      ];
      const chunky = one.sibling(world.coordinator, { chunk: { records: 5 } });
      const seen: BulkProgress[] = [];
      const done = await chunky.bulkInsert("projects", given, {
        skipRefused: true,
        onProgress: (progress) => seen.push(progress),
      });
      const refused = [
        { index: 1, field: "path", value: `${prefix}-1`, problem: "taken" },
        { index: 4, field: undefined, value: undefined, problem: "taken" },
        { index: 9, field: "path", value: `${prefix}-9`, problem: "try_again" },
        { index: 12, field: "path", value: " ", problem: "invalid" },
        { index: 13, field: "path", value: `${prefix}-2`.toUpperCase(), problem: "taken" },
        { index: 14, field: "path", value: "a\u202Eb", problem: "invalid" },
      ];
      const byIndex = done.refused.toSorted((a, b) => a.index - b.index);
      expect(byIndex).toEqual(refused);
      expect(done).toMatchObject({ records: given.length - refused.length, chunks: 3 });
      expect(seen.map(({ records, chunks }) => [records, chunks])).toEqual([
        [3, 1],
        [7, 2],
        [9, 3],
      ]);
      expect(seen.at(-1)).toEqual(done);
      const left = new Set(refused.map(({ index }) => index));
      const stored = (await one.rows("projects")).filter(({ id }) => id.startsWith(`${prefix}-`));
      const expected = given.filter((_, index) => !left.has(index)).map(({ id }) => id);
      expect(stored.map(({ id }) => id).toSorted()).toEqual([...expected, `${prefix}-one`].toSorted());
      expect(await one.owners("ROUTES", `${prefix}-0`, `${prefix}-1`)).toEqual([
        `${prefix}-0: ACTIVE of 1`,
        `${prefix}-1: ACTIVE of 2`,
      ]);
      await two.client.leases.rollback(busy.uuid);
    });

    test("skipRefused says exactly which rows were refused, and saves all others", async () => {
      const { one, two } = world;
      const address = (name: string): string => `${fresh(name)}@x.io`;
      const taken = address("taken");
      await two.transaction((tx) => tx.insert("emails", { owner: 1, email: taken }));
      await one.opened.query("CREATE UNIQUE INDEX emails_owner ON emails (owner)");
      await one.transaction((tx) => tx.insert("emails", { owner: 70_001, email: address("known") }));
      const twice = address("twice");
      const rows = [
        { owner: 70_001, email: address("other") },
        { owner: 70_002, email: address("fine") },
        // A unique key refuses the second only as long as the first may be stored.
        { owner: 70_003, email: taken },
        { owner: 70_003, email: address("free") },
        { owner: 70_004, email: twice },
        { owner: 70_005, email: twice.toUpperCase() },
      ];
      const done = await one.bulkInsert("emails", rows, { skipRefused: true });
      await one.opened.query("DROP INDEX emails_owner");
      expect(done.refused.toSorted((a, b) => a.index - b.index)).toEqual([
        { index: 0, field: undefined, value: undefined, problem: "taken" },
        { index: 2, field: "email", value: taken, problem: "taken" },
        { index: 5, field: "email", value: twice.toUpperCase(), problem: "taken" },
      ]);
      expect(done.records).toBe(3);
      for (const index of [1, 3, 4]) {
        const email = rows[index]?.email ?? "";
        expect(await one.rows("emails", "email", email)).toHaveLength(1);
        expect(await one.owners("EMAILS", email)).toEqual([`${email}: ACTIVE of 1`]);
      }
    });

    test("without skipRefused, a chunk fails, and lists all values that are not names", async () => {
      const { one } = world;
      const rows = [{ path: fresh("good") }, { path: " " }, { path: "" }];
      const failed = await one.bulkInsert("redirects", rows).catch((thrown: unknown) => thrown);
      expect(failed).toMatchObject({
        code: "INVALID_ARGUMENT",
        refused: [
          { index: 1, field: "path", value: " ", problem: "invalid" },
          { index: 2, field: "path", value: "", problem: "invalid" },
        ],
      });
      expect(one.network.calls).toEqual([]);
    });

    test("more claims than the limit of a lease are refused before the begin", async () => {
      const { one } = world;
      const rows = Array.from({ length: 1_001 }, () => ({ path: fresh("many") }));
      await expect(one.transaction((tx) => tx.insertMany("organizations", rows))).rejects.toThrow(
        "bulkInsert",
      );
      expect(one.network.calls).toEqual([]);
      expect((await one.rows("organizations")).filter(({ path }) => path.startsWith("many-"))).toEqual([]);
    });
  });
}
