/**
 * Scenarios that any cell must pass, whatever language it is written in. They see only its network, its
 * database and the coordinator. Rule numbers are those of docs/reference/protocol.md.
 */
import { eq, sql } from "drizzle-orm";
import { v7 as uuidv7 } from "uuid";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { fresh } from "../../../src/users/cell/conformance/world.ts";
import { postgresDialect } from "../../users/cell/scenarios/postgres-dialect.ts";
import type { BlackBox, BoxedCell, Step } from "./black-box.ts";

export interface BoxWorld {
  one: BoxedCell;
  two: BoxedCell;
}

const { users, organizations } = postgresDialect.tables;
const PATHS = "ORGANIZATION_PATH";
const SOURCE = "RAILS_TABLE_ORGANIZATIONS";
/** Everything at once, however recent. */
const atOnce = { full: true, commitGraceS: 0, staleS: 0, orphanS: 0 };

const add = (path: string): Step => ["insert", "organizations", { path }];
const withPath = (path: string) => eq(organizations.path, path);

/** Inserts a row through the cell and answers its id. */
async function inserted({ box }: BoxedCell, path: string): Promise<number> {
  const { results } = await box.transaction([add(path)]);
  return (results[0] as { id: number }).id;
}

const pathsOf = async ({ seen }: BoxedCell): Promise<unknown[]> =>
  (await seen.rows("organizations")).map(({ path }) => path);

/** The calls about leases in order, such as `begin commit`. Tests make other calls over the same network. */
const storyOf = ({ network }: BlackBox): string =>
  network.calls
    .map(({ operation }) => operation)
    .filter((operation) => ["begin", "commit", "rollback"].includes(operation))
    .join(" ");

const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "saved",
    (error: unknown) => (error as { code?: string }).code ?? String(error),
  );

/** Waits for work that a cell does after it has answered. */
const eventually = (check: () => Promise<unknown>) => expect.poll(check, { interval: 20 });

async function expectNothingLeft({ seen }: BoxedCell): Promise<void> {
  await eventually(() => seen.granted()).toEqual([]);
  expect(await seen.outstanding()).toEqual([]);
}

type Suite = (world: BoxWorld) => void;

/** @param suites all of them by default */
export function blackBoxSuite(
  name: string,
  start: () => Promise<BoxWorld>,
  suites: readonly Suite[] = [
    lifeSuite,
    collisionSuite,
    failureSuite,
    commitSuite,
    recoverySuite,
    verificationSuite,
  ],
): void {
  describe(name, () => {
    const world = {} as BoxWorld;

    beforeAll(async () => {
      Object.assign(world, await start());
    });
    beforeEach(() => {
      for (const { box } of [world.one, world.two]) box.network.forget();
    });

    for (const suite of suites) suite(world);
  });
}

export function lifeSuite(world: BoxWorld): void {
  describe("S1: the life of a claim", () => {
    test("a sign-up makes one begin and one commit, and leaves no lease row", async () => {
      const { box, seen } = world.one;
      const ada = fresh("ada");
      const { results } = await box.transaction([["insert", "users", { username: ada }]]);
      const { id } = results[0] as { id: number };
      await box.transaction([["insert", "emails", { owner: id, email: `${ada}@x.io`, confirmed: true }]]);
      expect(storyOf(box)).toBe("begin commit begin commit");
      const subject = { type: "USER", id: String(id) };
      const source = { type: "RAILS_TABLE_USERS", id: String(id) };
      expect(box.network.of("begin")[0]?.body).toEqual({
        creates: [
          { bucket: { type: "USER_IDS", value: String(id) }, subject, source },
          { bucket: { type: "USERNAMES", value: ada }, subject, source },
        ],
      });
      expect(await seen.owners("USERNAMES", ada)).toEqual([`${ada}: ACTIVE of 1`]);
      expect(await seen.owners("EMAILS", `${ada}@x.io`)).toEqual([`${ada}@x.io: ACTIVE of 1`]);
      await expectNothingLeft(world.one);
    });

    test("a rename releases the old name and claims the new one in one batch", async () => {
      const { box, seen } = world.one;
      const [old, now] = [fresh("old"), fresh("now")];
      const id = await inserted(world.one, old);
      box.network.forget();
      await box.transaction([["update", "organizations", id, { path: now }]]);
      expect(storyOf(box)).toBe("begin commit");
      const source = { type: SOURCE, id: String(id) };
      expect(box.network.of("begin")[0]?.body).toEqual({
        creates: [
          { bucket: { type: PATHS, value: now }, subject: { type: "ORGANIZATION", id: String(id) }, source },
        ],
        destroys: [{ bucket: { type: PATHS, value: old }, source }],
        allow_missing: true,
      });
      expect(await seen.owners(PATHS, old, now)).toEqual([`${old}: free`, `${now}: ACTIVE of 1`]);
    });

    test("another spelling of a name is a replace, so it is never free", async () => {
      const { box, seen } = world.one;
      const path = fresh("respelled");
      const id = await inserted(world.one, path);
      const before = await seen.client.records.find({ type: PATHS, value: path });
      await box.transaction([["update", "organizations", id, { path: path.toUpperCase() }]]);
      expect(box.network.of("begin").at(-1)?.body).toMatchObject({
        replaces: [{ bucket: { value: path.toUpperCase() } }],
      });
      const after = await seen.client.records.find({ type: PATHS, value: path });
      expect(after?.record).toMatchObject({ bucket: { value: path.toUpperCase() }, cell_id: "1" });
      expect(before?.record).toMatchObject({ bucket: { value: path } });
      await expectNothingLeft(world.one);
    });

    test("names that are swapped between rows are replaced, also in other spellings", async () => {
      const { box, seen } = world.one;
      const [a, b] = [fresh("a"), fresh("b")];
      const [first, second] = [await inserted(world.one, a), await inserted(world.one, b)];
      for (const [x, y] of [
        [b, a],
        [a.toUpperCase(), b.toUpperCase()],
      ]) {
        await box.transaction([
          ["update", "organizations", first, { path: x }],
          ["update", "organizations", second, { path: y }],
        ]);
        const records = await seen.client.records
          .list({ sourceType: SOURCE, sourceIdGt: String(first - 1), sourceIdLte: String(second) })
          .all();
        expect(records.map(({ bucket, source }) => `${source.id} ${bucket.value}`)).toEqual([
          `${first} ${x}`,
          `${second} ${y}`,
        ]);
      }
    });

    test("a deletion releases the name", async () => {
      const { box, seen } = world.one;
      const path = fresh("deleted");
      const id = await inserted(world.one, path);
      await box.transaction([["delete", "organizations", id]]);
      expect(await seen.owners(PATHS, path)).toEqual([`${path}: free`]);
    });

    test("a transaction that changes no claim calls no coordinator", async () => {
      const { box } = world.one;
      const path = fresh("same");
      const id = await inserted(world.one, path);
      box.network.forget();
      const spam = { owner: 1, email: fresh("spam"), confirmed: false };
      await box.transaction([["insert", "emails", spam]]);
      await box.transaction([["update", "organizations", id, { path }]]);
      await box.transaction([["update", "organizations", -1, { path: fresh("nobody") }]]);
      await box.transaction([["sql", "SELECT 1"]]);
      expect(box.network.calls).toEqual([]);
    });

    test("only the difference between the start and the end of a transaction counts", async () => {
      const { box } = world.one;
      const path = fresh("kept");
      const id = await inserted(world.one, path);
      box.network.forget();
      await box.transaction([
        ["update", "organizations", id, { path: fresh("between") }],
        ["update", "organizations", id, { path }],
      ]);
      expect(box.network.calls).toEqual([]);
    });

    test("[L1] rolling back to a savepoint also undoes its names", async () => {
      const { box, seen } = world.one;
      const [path, never] = [fresh("kept"), fresh("never")];
      const id = await inserted(world.one, path);
      box.network.forget();
      await box.transaction([
        ["undone", [["update", "organizations", id, { path: fresh("moved") }], add(never)]],
      ]);
      expect(box.network.calls).toEqual([]);
      expect(await seen.owners(PATHS, path, never)).toEqual([`${path}: ACTIVE of 1`, `${never}: free`]);
    });

    test("a row that is older than the column's claims can be respelled and renamed", async () => {
      const { box, seen } = world.one;
      const [old, now] = [fresh("older"), fresh("newer")];
      const [row] = await seen.orm.insert(organizations).values({ path: old }).returning();
      const id = row?.id ?? 0;
      await box.transaction([["update", "organizations", id, { path: old.toUpperCase() }]]);
      expect(await seen.owners(PATHS, old)).toEqual([`${old}: ACTIVE of 1`]);
      await box.transaction([["update", "organizations", id, { path: now }]]);
      expect(await seen.owners(PATHS, old, now)).toEqual([`${old}: free`, `${now}: ACTIVE of 1`]);
    });
  });
}

export function collisionSuite(world: BoxWorld): void {
  describe("S2: collisions", () => {
    test("a name of another cell fails the whole transaction", async () => {
      const { one, two } = world;
      const [path, other] = [fresh("default"), fresh("other")];
      await inserted(one, path);
      const both = [add(path.toUpperCase()), add(other)];
      expect(await codeOf(two.box.transaction(both))).toBe("ALREADY_EXISTS");
      expect(await pathsOf(two)).not.toContain(other);
      expect(await two.seen.owners(PATHS, other)).toEqual([`${other}: free`]);
      expect(storyOf(two.box)).toBe("begin");
      await expectNothingLeft(two);
    });

    test("[R2] a leased name is a temporary refusal", async () => {
      const { one, two } = world;
      const path = fresh("busy");
      const lease = await one.seen.client.leases.begin({
        creates: [
          {
            bucket: { type: PATHS, value: path },
            subject: { type: "ORGANIZATION", id: 1 },
            source: { type: SOURCE, id: 1 },
          },
        ],
      });
      expect(await codeOf(two.box.transaction([add(path)]))).toBe("ABORTED");
      await one.seen.client.leases.rollback(lease.uuid);
      await inserted(two, path);
      expect(await one.seen.owners(PATHS, path)).toEqual([`${path}: ACTIVE of 2`]);
    });

    test("a value that cannot be a name is refused, and nothing is saved", async () => {
      const { one } = world;
      expect(await codeOf(one.box.transaction([add("a//b")]))).toBe("INVALID_ARGUMENT");
      expect(await pathsOf(one)).not.toContain("a//b");
      await expectNothingLeft(one);
    });

    test("exactly one of many concurrent transactions of two cells gets a name", async () => {
      const { one, two } = world;
      const path = fresh("wanted");
      const boxes = Array.from({ length: 24 }, (_, index) => (index % 2 === 0 ? one : two));
      const ends = await Promise.all(boxes.map(({ box }) => codeOf(box.transaction([add(path)]))));
      expect(ends.filter((end) => end === "saved")).toHaveLength(1);
      const rows = [...(await pathsOf(one)), ...(await pathsOf(two))];
      expect(rows.filter((each) => each === path)).toHaveLength(1);
      for (const each of [one, two]) await expectNothingLeft(each);
    });

    test("a row with another cell's name can be renamed and deleted, but the claim stays", async () => {
      const { one, two } = world;
      const [path, other] = [fresh("mine"), fresh("theirs")];
      await inserted(one, path);
      // Written past the cell, as after a restore.
      const rows = await two.seen.orm.insert(organizations).values([{ path }, { path }]).returning();
      const [renamed, deleted] = rows.map(({ id }) => id);
      await two.box.transaction([["update", "organizations", renamed ?? 0, { path: other }]]);
      await two.box.transaction([["delete", "organizations", deleted ?? 0]]);
      expect(await one.seen.owners(PATHS, path, other)).toEqual([
        `${path}: ACTIVE of 1`,
        `${other}: ACTIVE of 2`,
      ]);
      expect((await two.box.events()).filter((kind) => kind === "not_owned")).toHaveLength(2);
      await expectNothingLeft(two);
    });

    test("[B2] a begin whose answer was lost is repeated without conflicting with itself", async () => {
      const { box } = world.one;
      let lost = 0;
      box.network.fate = ({ operation }) =>
        operation === "begin" && (lost += 1) === 1 ? "lose_answer" : "deliver";
      await inserted(world.one, fresh("lossy"));
      expect(storyOf(box)).toBe("begin begin commit");
      expect(new Set(box.network.of("begin").map(({ uuid }) => uuid)).size).toBe(1);
    });
  });
}

function failureSuite(world: BoxWorld): void {
  /** One change of an organization, with the owners after it was undone and done. */
  async function prepared(kind: "create" | "update" | "delete") {
    const { one } = world;
    const [before, after] = [fresh("before"), fresh("after")];
    const id = kind === "create" ? 0 : await inserted(one, before);
    one.box.network.forget();
    const step: Step =
      kind === "create"
        ? add(after)
        : kind === "update"
          ? ["update", "organizations", id, { path: after }]
          : ["delete", "organizations", id];
    const owns = (path: string, isOwned: boolean): string => `${path}: ${isOwned ? "ACTIVE of 1" : "free"}`;
    return {
      step,
      owners: () => one.seen.owners(PATHS, before, after),
      undone: [owns(before, kind !== "create"), owns(after, false)],
      done: [owns(before, false), owns(after, kind !== "delete")],
    };
  }

  describe.each(["create", "update", "delete"] as const)("S1: failures of a %s", (kind) => {
    test("[C7] [L2] a begin without an answer saves nothing, and its lease is rolled back", async () => {
      const { one } = world;
      const { step, owners, undone } = await prepared(kind);
      one.box.network.fate = ({ operation }) => (operation === "begin" ? "lose_answer" : "deliver");
      expect(await codeOf(one.box.transaction([step]))).toBe("UNAVAILABLE");
      await expectNothingLeft(one);
      expect(storyOf(one.box)).toBe("begin begin rollback");
      expect(await owners()).toEqual(undone);
    });

    test("[L2] a begin that is answered with 503 may be granted, so its lease is rolled back", async () => {
      const { one } = world;
      const { step, owners, undone } = await prepared(kind);
      one.box.network.fate = ({ operation }) => (operation === "begin" ? "unavailable" : "deliver");
      expect(await codeOf(one.box.transaction([step]))).toBe("UNAVAILABLE");
      await expectNothingLeft(one);
      expect(await owners()).toEqual(undone);
    });

    test("an error of the application calls no coordinator", async () => {
      const { one } = world;
      const { step, owners, undone } = await prepared(kind);
      expect(await codeOf(one.box.transaction([step, ["fail"]]))).not.toBe("saved");
      expect(one.box.network.calls).toEqual([]);
      expect(await owners()).toEqual(undone);
    });

    test("[L4] if the commit of the lease is lost, reconciliation commits it", async () => {
      const { one } = world;
      const { step, owners, done } = await prepared(kind);
      one.box.network.fate = ({ operation }) => (operation === "commit" ? "lose" : "deliver");
      await one.box.transaction([step]);
      expect(await one.seen.outstanding()).toHaveLength(1);
      one.box.network.forget();
      expect(await one.box.reconcile({ commitGraceS: 0 })).toMatchObject({ committed: 1, contradicted: 0 });
      expect(await owners()).toEqual(done);
      await expectNothingLeft(one);
    });
  });
}

function commitSuite(world: BoxWorld): void {
  describe("the end of a local transaction", () => {
    test("[L2] if the database refuses COMMIT, the lease is rolled back at once", async () => {
      const { one } = world;
      const path = fresh("refused");
      await one.seen.orm.execute(
        sql`CREATE TABLE IF NOT EXISTS once (name text UNIQUE DEFERRABLE INITIALLY DEFERRED)`,
      );
      const twice: Step = ["sql", "INSERT INTO once VALUES ('x'), ('x')"];
      expect(await codeOf(one.box.transaction([add(path), twice]))).not.toBe("saved");
      expect(storyOf(one.box)).toBe("begin rollback");
      expect(await one.seen.owners(PATHS, path)).toEqual([`${path}: free`]);
      await expectNothingLeft(one);
    });

    test("[L4] an SQL error that the body ignores saves nothing", async () => {
      const { one } = world;
      const path = fresh("swallowed");
      expect(await codeOf(one.box.transaction([add(path), ["spoil"]]))).not.toBe("saved");
      expect(await pathsOf(one)).not.toContain(path);
      expect(await one.seen.owners(PATHS, path)).toEqual([`${path}: free`]);
      await expectNothingLeft(one);
    });

    test.each(["lost_saved", "lost_undone"] as const)(
      "[L1] [L3] a lost answer to COMMIT is left to reconciliation (%s)",
      async (commit) => {
        const { one } = world;
        const path = fresh("unsure");
        expect(await codeOf(one.box.transaction([add(path)], { commit }))).toBe("UNKNOWN_COMMIT");
        expect(storyOf(one.box)).toBe("begin");
        expect(await one.box.reconcile()).toMatchObject({ committed: 0, rolledBack: 0 });
        const isSaved = commit === "lost_saved";
        expect(await one.box.reconcile({ commitGraceS: 0, staleS: 0 })).toMatchObject(
          isSaved ? { committed: 1 } : { rolledBack: 1 },
        );
        expect(await one.seen.owners(PATHS, path)).toEqual([`${path}: ${isSaved ? "ACTIVE of 1" : "free"}`]);
        expect((await pathsOf(one)).includes(path)).toBe(isSaved);
        await expectNothingLeft(one);
      },
    );

    test("[C4] [L6] rows whose lease was rolled back are queued for verification", async () => {
      const { one } = world;
      let uuid = "";
      one.box.network.fate = ({ operation, uuid: its }) => {
        if (operation === "begin") uuid = its ?? "";
        return operation === "commit" ? "lose" : "deliver";
      };
      const id = await inserted(one, fresh("contradicted"));
      one.box.network.forget();
      await one.seen.client.leases.rollback(uuid);
      // The lease is no longer open, so only a full run finds it, by its row.
      expect(await one.box.reconcile(atOnce)).toMatchObject({ contradicted: 1, failed: 0 });
      expect(await one.box.events()).toContain("contradicted");
      expect(await one.seen.database.verification.listQueue({ after: undefined, limit: 10 })).toEqual([
        { type: SOURCE, id: String(id), leaseUuid: uuid },
      ]);
      await expectNothingLeft(one);
    });
  });
}

function recoverySuite(world: BoxWorld): void {
  /** A lease on a name of its own, with or without its row. */
  async function leave({ seen }: BoxedCell, hasRow: boolean): Promise<string> {
    const uuid = uuidv7();
    const source = { type: SOURCE, id: String(Date.now()) } as const;
    const bucket = { type: PATHS, value: fresh("left") } as const;
    await seen.client.leases.begin(
      { creates: [{ bucket, subject: { type: "ORGANIZATION", id: 1 }, source }] },
      { uuid },
    );
    if (hasRow) await seen.database.run((tx) => seen.database.insertLease(tx, { uuid, sources: [source] }));
    return uuid;
  }

  describe("S3: recovery", () => {
    test("a lease is committed with its row, rolled back without it, and left while young", async () => {
      const { one } = world;
      const [saved, lost] = [await leave(one, true), await leave(one, false)];
      const young = await one.box.reconcile({ full: true });
      expect(young).toMatchObject({ committed: 0, rolledBack: 0, pending: 1, failed: 0 });
      const old = await one.box.reconcile({ commitGraceS: 0, staleS: 0 });
      expect(old).toMatchObject({ committed: 1, rolledBack: 1, pending: 0, contradicted: 0, failed: 0 });
      expect(one.box.network.of("commit").map(({ uuid }) => uuid)).toEqual([saved]);
      expect(one.box.network.of("rollback").map(({ uuid }) => uuid)).toEqual([lost]);
      await expectNothingLeft(one);
    });

    test("a row that remained after its lease was committed is removed by a full run", async () => {
      const { one } = world;
      const uuid = await leave(one, true);
      await one.seen.client.leases.commit(uuid);
      expect(await one.box.reconcile({ full: true })).toMatchObject({ orphaned: 0 });
      expect(await one.box.reconcile({ full: true, orphanS: 0 })).toMatchObject({ orphaned: 1, failed: 0 });
      await expectNothingLeft(one);
    });

    test("three concurrent runs decide every lease, and none fails", async () => {
      const { one } = world;
      for (let index = 0; index < 16; index += 1) await leave(one, index % 2 === 0);
      const runs = await Promise.all([1, 2, 3].map(() => one.box.reconcile(atOnce)));
      for (const counts of runs) expect(counts).toMatchObject({ failed: 0, contradicted: 0 });
      await expectNothingLeft(one);
    });

    test("a lease that cannot be decided does not stop the others", async () => {
      const { one } = world;
      const [first, stuck, last] = [await leave(one, true), await leave(one, true), await leave(one, true)];
      one.box.network.fate = ({ operation, uuid }) =>
        operation === "commit" && uuid === stuck ? "lose" : "deliver";
      expect(await one.box.reconcile({ commitGraceS: 0 })).toMatchObject({ committed: 2, failed: 1 });
      expect((await one.seen.outstanding()).map(({ uuid }) => uuid)).toEqual([stuck]);
      expect(first).not.toBe(last);
      one.box.network.forget();
      await one.box.reconcile({ commitGraceS: 0 });
      await expectNothingLeft(one);
    });

    test("[L5] a fence waits for a transaction that is saving its lease, and gives up", async () => {
      const { one } = world;
      const path = fresh("in-flight");
      const { noted } = await one.box.transaction([add(path)], { reconcileBeforeCommit: { staleS: 0 } });
      expect(noted).toHaveLength(1);
      expect(noted[0]).toMatchObject({ pending: 1 });
      expect(storyOf(one.box)).toBe("begin commit");
      expect(await one.seen.owners(PATHS, path)).toEqual([`${path}: ACTIVE of 1`]);
    });

    test("[L5] after the fence, no local transaction can save the lease", async () => {
      const { one } = world;
      const path = fresh("overtaken");
      expect(await codeOf(one.box.transaction([add(path)], { fenceFirst: true }))).not.toBe("saved");
      expect(await pathsOf(one)).not.toContain(path);
      await expectNothingLeft(one);
      expect(await one.seen.owners(PATHS, path)).toEqual([`${path}: free`]);
    });

    test("a fence stays until it is old", async () => {
      const { one } = world;
      const uuid = uuidv7();
      const fences = sql`SELECT state FROM leasehold_outstanding_leases WHERE uuid = ${uuid}`;
      expect(await one.box.fence(uuid)).toBe("fenced");
      await one.box.reconcile({ full: true });
      expect(await one.seen.orm.execute(fences)).toMatchObject({ rows: [{ state: "fenced" }] });
      // A second fence is no obstacle, and a fence is not taken for a saved lease.
      expect(await one.box.fence(uuid)).toBe("fenced");
      expect(await one.seen.database.has([uuid])).toEqual([]);
      await one.seen.age(uuid, 90_000);
      await one.box.reconcile({ full: true });
      expect(await one.seen.orm.execute(fences)).toMatchObject({ rows: [] });
    });
  });
}

function verificationSuite(world: BoxWorld): void {
  describe("verification", () => {
    test("[V2] [V3] a verification repairs what was written past the cell", async () => {
      const { one, two } = world;
      const { orm } = one.seen;
      const names = Object.fromEntries(
        ["missing", "gone", "respelled", "renamed", "moved", "theirs", "queued"].map((each) => [
          each,
          fresh(each),
        ]),
      );
      const of = (name: string): string => names[name] ?? "";
      for (const each of ["gone", "respelled", "renamed", "moved"]) await inserted(one, of(each));
      await inserted(two, of("theirs"));
      const set = (from: string, to: string) =>
        orm.update(organizations).set({ path: to }).where(withPath(from));
      await orm.insert(organizations).values([{ path: of("missing") }, { path: of("theirs") }]);
      await orm.delete(organizations).where(withPath(of("gone")));
      await set(of("respelled"), of("respelled").toUpperCase());
      await set(of("renamed"), `${of("renamed")}-2`);
      await set(of("moved"), `${of("moved")}-2`);
      // Another row has the name in another spelling now, so the claim must move and never be free.
      await orm.insert(organizations).values({ path: of("moved").toUpperCase() });
      const [user] = await orm
        .insert(users)
        .values({ username: fresh("unclaimed") })
        .returning();

      const preview = await one.box.verify({ apply: false, maxChanges: 1_000 });
      expect(preview.status).toBe("done");
      expect(await one.seen.owners(PATHS, of("missing"))).toEqual([`${of("missing")}: free`]);
      expect((await one.box.verify({ apply: true, maxChanges: 2 })).status).toBe("needs_approval");
      expect((await one.box.verify({ apply: true, maxChanges: 1_000 })).status).toBe("done");

      expect(
        await one.seen.owners(
          PATHS,
          of("missing"),
          of("gone"),
          of("respelled").toUpperCase(),
          of("renamed"),
          `${of("renamed")}-2`,
          of("moved"),
          `${of("moved")}-2`,
          of("theirs"),
        ),
      ).toEqual([
        `${of("missing")}: ACTIVE of 1`,
        `${of("gone")}: free`,
        `${of("respelled").toUpperCase()}: ACTIVE of 1`,
        `${of("renamed")}: free`,
        `${of("renamed")}-2: ACTIVE of 1`,
        `${of("moved")}: ACTIVE of 1`,
        `${of("moved")}-2: ACTIVE of 1`,
        `${of("theirs")}: ACTIVE of 2`,
      ]);
      expect(await one.seen.owners("USERNAMES", user?.username ?? "")).toEqual([
        `${user?.username}: ACTIVE of 1`,
      ]);
      // The SDK, which compares canonical forms and all records, finds nothing more to do.
      const { counts } = await one.seen.cell.verify({ digests: false, recentMs: 0 });
      expect(counts).toMatchObject({ different: 0, extra: 0, otherCell: 1, duplicates: 0 });
      expect(counts.missing).toBe(1);
      expect(await one.seen.database.verification.listQueue({ after: undefined, limit: 10 })).toEqual([]);
      await expectNothingLeft(one);
    });

    test("two rows with one name are left to a person, and the claim stays with one of them", async () => {
      const { one } = world;
      const path = fresh("duplicate");
      const id = await inserted(one, path);
      await one.seen.orm.insert(organizations).values({ path: path.toUpperCase() });
      const report = await one.box.verify({ apply: true, maxChanges: 1_000 });
      expect(report.status).toBe("done");
      const found = await one.seen.client.records.find({ type: PATHS, value: path });
      expect(found?.record).toMatchObject({ source: { id: String(id) }, bucket: { value: path } });
      expect(report.duplicates).toBe(1);
    });

    test("[V2] [B10] a claim that changes after it was read is left to the next verification", async () => {
      const { one } = world;
      const path = fresh("changing");
      const [id, between] = [String(await inserted(one, path)), path.replace("c", "C")];
      await one.seen.orm.update(organizations).set({ path: path.toUpperCase() }).where(withPath(path));
      let isChanged = false;
      one.box.network.before = async ({ body }) => {
        if (isChanged || (body as { replaces?: unknown } | undefined)?.replaces === undefined) return;
        isChanged = true;
        const { leases } = one.seen.client;
        const lease = await leases.begin({
          replaces: [
            {
              bucket: { type: PATHS, value: between },
              subject: { type: "ORGANIZATION", id },
              source: { type: SOURCE, id },
            },
          ],
        });
        await leases.commit(lease.uuid);
      };
      const spelling = async (): Promise<string | undefined> =>
        (await one.seen.client.records.find({ type: PATHS, value: path }))?.record.bucket.value;
      expect((await one.box.verify({ apply: true, maxChanges: 1_000 })).status).toBe("done");
      expect(isChanged).toBe(true);
      expect(await spelling()).toBe(between);
      expect((await one.box.verify({ apply: true, maxChanges: 1_000 })).status).toBe("done");
      expect(await spelling()).toBe(path.toUpperCase());
    });

    test("[V3] a claim stays with a row that has its name in another spelling", async () => {
      const { one } = world;
      const [before, path] = [fresh("before"), fresh("shared")];
      await inserted(one, before);
      const id = await inserted(one, path);
      const { orm } = one.seen;
      await orm.update(organizations).set({ path: path.toUpperCase() }).where(withPath(path));
      // The row with the smaller id is compared first, and has exactly the claim's spelling.
      await orm.update(organizations).set({ path }).where(withPath(before));
      expect((await one.box.verify({ apply: true, maxChanges: 1_000 })).status).toBe("done");
      const found = await one.seen.client.records.find({ type: PATHS, value: path });
      expect(found?.record).toMatchObject({ source: { id: String(id) } });
    });
  });
}
