/**
 * What a database adapter can change about a cell's transactions: the rows that it stores and answers, the
 * end of the local transaction, savepoints, and fences. Rule numbers are those of
 * docs/reference/protocol.md.
 */
import { toValidationErrors } from "../validation.ts";
import { AlreadyClaimedError, LeaseholdError } from "../../client/errors.ts";
import type { ConformanceCoordinator, ConformanceTarget, Suites } from "./target.ts";
import { dialects, switches } from "./schema.ts";
import { fresh, quoted, signUp, worldOf, type TestedTransaction, type World } from "./world.ts";

export function transactionSuite(
  suites: Suites,
  target: ConformanceTarget<unknown>,
  startCoordinator: () => Promise<ConformanceCoordinator>,
): void {
  suites.describe("a cell", () => {
    const world = worldOf(suites, target, startCoordinator);
    lifeSuite(suites, world);
    collisionSuite(suites, world);
    endSuite(suites, world);
  });
}

const thrownBy = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

/** Six at a time. */
async function inGroups<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  for (let at = 0; at < items.length; at += 6) await Promise.all(items.slice(at, at + 6).map(work));
}

function lifeSuite({ describe, test, expect }: Suites, world: World): void {
  describe("S1: the life of a claim", () => {
    test("a sign-up makes one begin after the inserts and one commit, and leaves no row", async () => {
      const { one } = world;
      const ada = fresh("ada");
      const id = await signUp(one, ada);
      expect(one.network.story).toBe("begin commit");
      const subject = { type: "USER", id: String(id) };
      expect(one.network.of("begin")[0]?.body).toEqual({
        creates: [
          {
            bucket: { type: "USER_IDS", value: String(id) },
            subject,
            source: { type: "RAILS_TABLE_USERS", id: String(id) },
          },
          {
            bucket: { type: "USERNAMES", value: ada },
            subject,
            source: { type: "RAILS_TABLE_USERS", id: String(id) },
          },
          {
            bucket: { type: "EMAILS", value: `${ada}@x.io` },
            subject,
            source: { type: "RAILS_TABLE_EMAILS", id: expect.any(String) as string },
          },
        ],
      });
      expect(await one.outstanding()).toEqual([]);
      expect(await one.owners("USERNAMES", ada)).toEqual([`${ada}: ACTIVE of 1`]);
      expect(await one.owners("EMAILS", `${ada}@x.io`)).toEqual([`${ada}@x.io: ACTIVE of 1`]);
      expect(await one.owners("USER_IDS", String(id))).toEqual([`${id}: ACTIVE of 1`]);
    });

    test("a rename releases the old name and claims the new one in one batch", async () => {
      const { one } = world;
      const [ada, lovelace] = [fresh("ada"), fresh("lovelace")];
      const id = await signUp(one, ada);
      one.network.forget();
      await one.transaction((tx) => tx.update("users", { id }, { username: lovelace }));
      expect(one.network.of("begin")[0]?.body).toEqual({
        creates: [
          {
            bucket: { type: "USERNAMES", value: lovelace },
            subject: { type: "USER", id: String(id) },
            source: { type: "RAILS_TABLE_USERS", id: String(id) },
          },
        ],
        destroys: [
          {
            bucket: { type: "USERNAMES", value: ada },
            source: { type: "RAILS_TABLE_USERS", id: String(id) },
          },
        ],
        allow_missing: true,
      });
      expect(await one.owners("USERNAMES", ada, lovelace)).toEqual([
        `${ada}: free`,
        `${lovelace}: ACTIVE of 1`,
      ]);
    });

    test("a deletion releases every name", async () => {
      const { one } = world;
      const ada = fresh("ada");
      const id = await signUp(one, ada);
      one.network.forget();
      await one.transaction(async (tx) => {
        await tx.delete("emails", { owner: id });
        await tx.delete("users", { id });
      });
      expect(one.network.of("begin")[0]?.body).toMatchObject({ destroys: [{}, {}, {}] });
      expect(await one.owners("USERNAMES", ada)).toEqual([`${ada}: free`]);
      expect(await one.owners("EMAILS", `${ada}@x.io`)).toEqual([`${ada}@x.io: free`]);
      expect(await one.owners("USER_IDS", String(id))).toEqual([`${id}: free`]);
    });

    test("a transaction without changed claims calls no coordinator", async () => {
      const { one } = world;
      const id = await signUp(one, fresh("ada"));
      one.network.forget();
      await one.transaction((tx) => tx.update("users", { id }, { bio: "countess" }));
      await one.transaction((tx) => tx.update("users", { id: -1 }, { username: fresh("nobody") }));
      await one.transaction((tx) => tx.insert("emails", { owner: id, email: null }));
      await one.transaction((tx) =>
        tx.insert("emails", { owner: id, email: fresh("spam"), confirmed: false }),
      );
      await one.transaction((tx) => one.write(tx.db, "SELECT * FROM users"));
      switches.usernames = false;
      await one.transaction((tx) => tx.update("users", { id }, { username: fresh("quiet") }));
      expect(one.network.calls).toEqual([]);
    });

    test("a preflight claims the names, then writes the rows with the row of the lease", async () => {
      const { one } = world;
      const [id, path] = [fresh("project"), fresh("path")];
      let rowsAtBegin = -1;
      one.network.fate = ({ operation }) => {
        if (operation === "begin") rowsAtBegin = 0;
        return "deliver";
      };
      await one.preflight((plan) => plan.insert("projects", { id, path }));
      expect(rowsAtBegin).toBe(0);
      expect(one.network.story).toBe("begin commit");
      expect(await one.owners("ROUTES", path)).toEqual([`${path}: ACTIVE of 1`]);
      const [before] = await one.rows("projects", "id", id);
      if (before === undefined) throw new Error("the row is not there");
      const moved = fresh("moved");
      await one.preflight((plan) => plan.update("projects", before, { path: moved }));
      expect(await one.owners("ROUTES", path, moved)).toEqual([`${path}: free`, `${moved}: ACTIVE of 1`]);
      await one.preflight((plan) => plan.delete("projects", { ...before, path: moved }));
      expect(await one.owners("ROUTES", moved)).toEqual([`${moved}: free`]);
    });

    test("[L1] rolling back to a savepoint also undoes its names", async () => {
      const { one } = world;
      const [kept, never, moved] = [fresh("kept"), fresh("never"), fresh("moved")];
      const id = await signUp(one, kept);
      one.network.forget();
      await one.transaction(async (tx) => {
        await one.write(tx.db, "SAVEPOINT before_names");
        await tx.insert("organizations", { path: never });
        await tx.update("users", { id }, { username: moved });
        await tx.delete("emails", { owner: id });
        await one.write(tx.db, "ROLLBACK TO SAVEPOINT before_names");
      });
      expect(one.network.calls).toEqual([]);
      expect(await one.owners("USERNAMES", kept, moved)).toEqual([`${kept}: ACTIVE of 1`, `${moved}: free`]);
      expect(await one.owners("EMAILS", `${kept}@x.io`)).toEqual([`${kept}@x.io: ACTIVE of 1`]);
    });

    test("concurrent upserts leave each row with its claim, and no claim without its row", async () => {
      const { one } = world;
      const tried = Array.from({ length: 48 }, (_, index) => ({
        id: `upserted-${index % 8}`,
        path: fresh("upserted"),
      }));
      await inGroups(tried, (row) => one.transaction((tx) => tx.upsert("projects", ["id"], row)));
      const stored = (await one.rows("projects")).filter(({ id }) => id.startsWith("upserted-"));
      expect(stored).toHaveLength(8);
      const paths = new Set(stored.map(({ path }) => path));
      expect(await one.owners("ROUTES", ...tried.map(({ path }) => path))).toEqual(
        tried.map(({ path }) => `${path}: ${paths.has(path) ? "ACTIVE of 1" : "free"}`),
      );
    });

    test("concurrent upserts by a claimed key all succeed", async () => {
      const { one } = world;
      const paths = [fresh("key"), fresh("key"), fresh("key")];
      const tried = Array.from({ length: 24 }, (_, index) => paths[index % 3] ?? "");
      const ids = new Map<string, string>();
      await inGroups(tried, async (path) => {
        const row = { id: fresh("keyed"), path };
        const { id } = await one.transaction((tx) => tx.upsert("projects", ["path"], row));
        expect(ids.get(path) ?? id).toBe(id);
        ids.set(path, id);
      });
      expect(await one.owners("ROUTES", ...paths)).toEqual(paths.map((path) => `${path}: ACTIVE of 1`));
    });

    test("an upsert fails for another unique key, and names a missing column of its own", async () => {
      const { one } = world;
      const [taken, free] = [fresh("taken"), fresh("free")];
      await one.transaction((tx) => tx.upsert("projects", ["id"], { id: taken, path: taken }));
      const other = one.transaction((tx) => tx.upsert("projects", ["id"], { id: free, path: taken }));
      expect(toValidationErrors(await thrownBy(other))).toMatchObject([{ field: "path", problem: "taken" }]);
      const keyless = one.transaction((tx) => tx.upsert("projects", ["id"], { path: free }));
      await expect(keyless).rejects.toThrow("`id` has no value in the row");
      const none = one.transaction((tx) => tx.upsert("projects", [], { id: free, path: free }));
      await expect(none).rejects.toThrow("`key` must name exactly the columns of a unique key of projects");
      const both = one.transaction((tx) => tx.upsert("projects", ["path", "id"], { id: free, path: free }));
      await expect(both).rejects.toThrow("of a unique key of projects, not [path, id]");
      expect(await one.owners("ROUTES", taken, free)).toEqual([`${taken}: ACTIVE of 1`, `${free}: free`]);
    });

    test("an upsert by a key that is deferrable updates its row", async () => {
      const { one } = world;
      const [username, bio] = [fresh("deferrable"), "new"];
      const first = await one.transaction((tx) => tx.upsert("users", ["username"], { username }));
      const second = await one.transaction((tx) => tx.upsert("users", ["username"], { username, bio }));
      expect(second).toEqual({ ...first, bio });
      expect(await one.owners("USERNAMES", username)).toEqual([`${username}: ACTIVE of 1`]);
    });

    // On PostgreSQL, the first error ends the transaction.
    const testOfMysql = world.target.dialect === "mysql" ? test : (): void => {};
    testOfMysql("a write that fails beside another undoes nothing of it", async () => {
      const { one } = world;
      const [taken, good, single] = [fresh("taken"), fresh("good"), fresh("single")];
      await signUp(one, taken);
      await one.transaction(async (tx) => {
        const many = tx.insertMany("users", [{ username: good }, { username: taken }]);
        const [failed, stored] = await Promise.allSettled([many, tx.insert("users", { username: single })]);
        expect([failed.status, stored.status]).toEqual(["rejected", "fulfilled"]);
      });
      expect((await one.rows("users", "username", single)).map(({ username }) => username)).toEqual([single]);
      expect(await one.rows("users", "username", good)).toEqual([]);
      expect(await one.owners("USERNAMES", single, good)).toEqual([
        `${single}: ACTIVE of 1`,
        `${good}: free`,
      ]);
    });

    test("a write that is not awaited fails the transaction", async () => {
      const { one } = world;
      const path = fresh("forgotten");
      let late: Promise<unknown> = Promise.resolve();
      const failed = one.transaction(async (tx) => {
        late = tx.insert("organizations", { path }).catch(() => {});
        late = Promise.all([late, tx.insert("organizations", { path: fresh("forgotten") }).catch(() => {})]);
      });
      await expect(failed).rejects.toThrow("await every call of tx");
      await late;
      expect((await one.rows("organizations")).some((row) => row["path"] === path)).toBe(false);
      expect(one.network.calls).toEqual([]);
    });

    test("insertMany inserts and claims several rows, and insert takes exactly one", async () => {
      const { one } = world;
      const [first, second] = [fresh("first"), fresh("second")];
      const rows = [{ path: first }, { path: second }];
      const stored = await one.transaction((tx) => tx.insertMany("organizations", rows));
      expect(stored.map(({ path }) => path)).toEqual([first, second]);
      expect(await one.owners("ORGANIZATION_PATH", first, second)).toEqual([
        `${first}: ACTIVE of 1`,
        `${second}: ACTIVE of 1`,
      ]);
      const many = one.transaction((tx) => tx.insert("organizations", rows as never));
      await expect(many).rejects.toThrow("`row` must be one row: use insertMany for several");
      const row = one.transaction((tx) => tx.insertMany("organizations", rows[0] as never));
      await expect(row).rejects.toThrow("`rows` must be an array: use insert for one row");
    });
  });
}

function collisionSuite({ describe, test, expect }: Suites, world: World): void {
  describe("S2: collisions", () => {
    test("a name of another cell fails the whole transaction, with an error for each field", async () => {
      const { one, two } = world;
      const path = fresh("default");
      await one.transaction((tx) => tx.insert("organizations", { path }));
      const email = `${fresh("new")}@x.io`;
      const failed = two.transaction(async (tx) => {
        await tx.insert("organizations", { path });
        await tx.insert("emails", { owner: 1, email });
      });
      const error = await failed.catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(AlreadyClaimedError);
      expect(error).toBeInstanceOf(LeaseholdError);
      expect(toValidationErrors(error)).toEqual([
        { table: "organizations", field: "path", id: expect.any(String) as string, problem: "taken" },
      ]);
      expect(await two.rows("organizations")).toEqual([]);
      expect(await two.owners("EMAILS", email)).toEqual([`${email}: free`]);
      expect(await two.outstanding()).toEqual([]);
      expect(two.network.story).toBe("begin lookup");
    });

    test("the error of a begin names the column, and its stack shows the caller", async () => {
      const { one, two } = world;
      const path = fresh("named");
      const organizations = two.opened.tables.organizations as never;
      const { id } = await one.transaction((tx) => tx.insert("organizations", { path }));
      async function signUpTwice(): Promise<void> {
        await two.cell.transaction((tx) => tx.insert(organizations, { path } as never));
      }
      async function bulkSignUp(): Promise<void> {
        await two.cell.bulkInsert(organizations, [{ path }] as never);
      }
      const error = (await thrownBy(signUpTwice())) as AlreadyClaimedError;
      expect(error).toBeInstanceOf(AlreadyClaimedError);
      expect(error).toMatchObject({ code: "ALREADY_EXISTS", status: 409, outcomeKnown: true, field: "path" });
      expect(error.conflicts).toMatchObject([{ list: "creates", index: 0, kind: "taken" }]);
      expect(error.message).toMatch(/^`path` of organizations \d+ is already claimed$/);
      const [header, first] = error.stack?.split("\n") ?? [];
      expect(header).toBe(`AlreadyClaimedError: ${error.message}`);
      expect(first).toMatch(/^ +at (async )?signUpTwice /);
      expect(((await thrownBy(bulkSignUp())) as Error).stack?.split("\n")[1]).toMatch(
        / at (async )?bulkSignUp /,
      );
      // An error that is not about fields keeps its own frames.
      const odd = two.transaction((tx) => tx.update("organizations", { id }, { id: 7 }));
      await expect(odd).resolves.toEqual([]);
      async function endEarly(): Promise<void> {
        await two.cell.transaction(
          async (tx) => void tx.insert(organizations, { path } as never).catch(() => {}),
        );
      }
      const early = ((await thrownBy(endEarly())) as Error).stack ?? "";
      // Bun shows no classes.
      expect(early).toMatch(/ at (async )?(ClaimTransaction\.)?run /);
      expect(early).toMatch(/ at (async )?endEarly /);
      await expect(
        two.transaction(async () =>
          one.transaction(async () => {
            throw error;
          }),
        ),
      ).rejects.toBe(error);
    });

    test("exactly one of forty concurrent begins from two cells gets a name", async () => {
      const { one, two } = world;
      const path = fresh("wanted");
      const cells = Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? one : two));
      const ends = await Promise.allSettled(
        cells.map((each) => each.transaction((tx) => tx.insert("organizations", { path }))),
      );
      expect(ends.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      for (const end of ends)
        if (end.status === "rejected") expect(end.reason).toBeInstanceOf(LeaseholdError);
      const rows = [...(await one.rows("organizations")), ...(await two.rows("organizations"))];
      expect(rows.filter((row) => row["path"] === path)).toHaveLength(1);
    });
  });
}

function endSuite({ describe, test, expect }: Suites, world: World): void {
  describe("the end of a local transaction", () => {
    // MySQL has no deferred constraints.
    const testOfDeferred = dialects[world.target.dialect].hasDeferredConstraints ? test : (): void => {};
    testOfDeferred(
      "[L2] (b) if the database refuses COMMIT, the lease is rolled back at once, and only once",
      async () => {
        const { one } = world;
        const [ada, other] = [fresh("ada"), fresh("other")];
        await signUp(one, ada);
        one.network.forget();
        // The name is already used in this cell, which the database checks only at COMMIT, after the last
        // read.
        const save = one.database.insertLease.bind(one.database);
        one.database.insertLease = async (tx, lease) => {
          await save(tx, lease);
          await one.write(tx, "SET CONSTRAINTS ALL DEFERRED");
          await one.write(tx, `UPDATE users SET username = ${quoted(ada)} WHERE username = ${quoted(other)}`);
        };
        try {
          await expect(one.transaction((tx) => tx.insert("users", { username: other }))).rejects.toThrow();
        } finally {
          one.database.insertLease = save;
        }
        expect(one.network.story).toBe("begin rollback");
        expect(one.network.of("rollback")[0]?.uuid).toBe(one.network.of("begin")[0]?.uuid);
        expect(await one.granted()).toEqual([]);
        expect(await one.outstanding()).toEqual([]);
      },
    );

    test("[L4] an ignored error in the body: the database reports COMMIT but saves nothing", async () => {
      const { one } = world;
      const path = fresh("swallowed");
      // The lease is granted first. Then the transaction is rolled back without an error.
      const save = one.database.insertLease.bind(one.database);
      one.database.insertLease = async (tx, lease) => {
        await save(tx, lease);
        await one.spoil(tx);
      };
      try {
        await expect(one.transaction((tx) => tx.insert("organizations", { path }))).rejects.toMatchObject({
          code: dialects[one.target.dialect].spoil.code,
        });
      } finally {
        one.database.insertLease = save;
      }
      expect(one.network.story).toBe("begin rollback");
      expect(await one.owners("ORGANIZATION_PATH", path)).toEqual([`${path}: free`]);
    });

    test("[L4] a body that ends its transaction fails, and an event names the rows", async () => {
      const { one } = world;
      const stop = (): never => {
        throw new RangeError("changed my mind");
      };
      const insert = (path: string) => (tx: TestedTransaction) => tx.insert("organizations", { path });
      const late = fresh("late");
      const cases: readonly { ends: string; next: (tx: TestedTransaction) => unknown; isSaved: boolean }[] = [
        { ends: "COMMIT", next: insert(late), isSaved: true },
        { ends: "ROLLBACK", next: () => {}, isSaved: false },
        { ends: "COMMIT AND CHAIN", next: () => {}, isSaved: true },
        { ends: "COMMIT", next: stop, isSaved: true },
      ];
      for (const { ends, next, isSaved } of cases) {
        const path = fresh("ended");
        one.events.length = 0;
        let id = "";
        const ended = one.transaction(async (tx) => {
          id = String((await insert(path)(tx)).id);
          await one.write(tx.db, ends);
          await next(tx);
        });
        await expect(ended).rejects.toMatchObject({ code: "TRANSACTION_ENDED" });
        expect(one.events).toMatchObject([{ kind: "transaction_ended" }]);
        const sources = one.events.flatMap((each) => ("sources" in each ? each.sources : []));
        expect(sources.map((source) => `${source.type} ${source.id}`)).toContain(
          `RAILS_TABLE_ORGANIZATIONS ${id}`,
        );
        expect((await one.rows("organizations")).some((row) => row.path === path)).toBe(isSaved);
        expect(await one.owners("ORGANIZATION_PATH", path)).toEqual([`${path}: free`]);
      }
      // On MySQL, no write of the cell starts any more.
      const hasLate = (await one.rows("organizations")).some((row) => row.path === late);
      expect(hasLate).toBe(one.target.dialect === "postgres");
      expect(await one.outstanding()).toEqual([]);
      await one.opened.query("DELETE FROM organizations");
    });

    test("[L3] if the body of a preflight ends the transaction, reconciliation decides", async () => {
      const { one } = world;
      for (const [ends, owner] of [
        ["COMMIT", "ACTIVE of 1"],
        ["ROLLBACK", "free"],
      ] as const) {
        one.network.forget();
        one.events.length = 0;
        const path = fresh("planned");
        const ended = one.preflight(
          (plan) => plan.insert("projects", { id: path, path }),
          (tx) => one.write(tx.db, ends),
        );
        const error = (await thrownBy(ended)) as LeaseholdError;
        expect(error).toMatchObject({ code: "TRANSACTION_ENDED", outcomeKnown: false });
        expect(error.leaseUuid).toBe(one.network.of("begin")[0]?.uuid);
        expect(one.network.story).toBe("begin");
        expect(one.events).toMatchObject([{ kind: "transaction_ended" }]);
        await one.cell.reconcile({ commitGraceMs: 0, staleMs: 0 });
        expect(await one.rows("projects", "id", path)).toHaveLength(ends === "COMMIT" ? 1 : 0);
        expect(await one.owners("ROUTES", path)).toEqual([`${path}: ${owner}`]);
        expect(await one.outstanding()).toEqual([]);
      }
    });

    test("the end of another cell's transaction is not reported for the one around it", async () => {
      const { one, two } = world;
      const path = fresh("around");
      const failed = one.transaction(async (tx) => {
        await tx.insert("organizations", { path });
        await two.transaction((inner) => two.write(inner.db, "ROLLBACK"));
      });
      await expect(failed).rejects.toMatchObject({ code: "TRANSACTION_ENDED" });
      expect(one.events).toEqual([]);
      expect((await one.rows("organizations")).some((row) => row.path === path)).toBe(false);
    });

    // MySQL undoes only the statement, and the transaction goes on.
    const testOfFailed = world.target.dialect === "postgres" ? test : (): void => {};
    testOfFailed("a caught error is the cause of the NotSavedError, whatever else was written", async () => {
      const { one } = world;
      const [taken, other] = [fresh("taken"), fresh("other")];
      await one.transaction((tx) => tx.insert("projects", { id: taken, path: taken }));
      const duplicate = { id: fresh("twice"), path: taken };
      let caught: unknown;
      for (const first of [[], [{ id: other, path: other }]]) {
        const failed = one.transaction(async (tx) => {
          for (const row of first) await tx.insert("projects", row);
          await tx.insert("projects", duplicate).catch((error: unknown) => {
            caught = error;
          });
        });
        const error = (await thrownBy(failed)) as Error;
        expect(error).toMatchObject({ code: "NOT_SAVED" });
        expect(error.cause).toBe(caught);
      }
      // The application's own error stays.
      const changed = new RangeError("try another name");
      const failed = one.transaction(async (tx) => {
        await tx.insert("projects", duplicate).catch(() => {});
        throw changed;
      });
      await expect(failed).rejects.toBe(changed);
      expect(one.events).toEqual([]);
      expect(await one.owners("ROUTES", other)).toEqual([`${other}: free`]);
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

    test("three concurrent runs of reconciliation decide every lease, and none fails", async () => {
      const { one } = world;
      const paths = Array.from({ length: 12 }, () => fresh("raced"));
      one.network.fate = ({ operation }) => (operation === "commit" ? "lose" : "deliver");
      for (const [index, path] of paths.entries())
        if (index % 2 === 0) await one.transaction((tx) => tx.insert("organizations", { path }));
        else
          await one.client.leases.begin({
            creates: [
              {
                bucket: { type: "ORGANIZATION_PATH", value: path },
                subject: { type: "ORGANIZATION", id: 1 },
                source: { type: "RAILS_TABLE_ORGANIZATIONS", id: 1 },
              },
            ],
          });
      one.network.forget();
      const options = { commitGraceMs: 0, staleMs: 0, pageSize: 5 };
      const runs = await Promise.all([1, 2, 3].map(() => one.cell.reconcile(options)));
      for (const { counters } of runs) expect(counters).toMatchObject({ failed: 0, contradicted: 0 });
      expect(await one.outstanding()).toEqual([]);
      expect(await one.granted()).toEqual([]);
      const owners = paths.map((path, index) => `${path}: ${index % 2 === 0 ? "ACTIVE of 1" : "free"}`);
      expect(await one.owners("ORGANIZATION_PATH", ...paths)).toEqual(owners);
    });

    test("a deletion that was undone releases nothing, even if COMMIT reported success", async () => {
      const { one } = world;
      const path = fresh("undone");
      await one.transaction((tx) => tx.insert("redirects", { path }));
      one.network.forget();
      const deleted = one.transaction(async (tx) => {
        await tx.deleteLater("redirects", { path });
        await one.spoil(tx.db);
      });
      // It is an error only if the driver notices that COMMIT was answered with ROLLBACK.
      await Promise.allSettled([deleted]);
      expect(one.network.calls).toEqual([]);
      expect(await one.owners("REDIRECT_ROUTES", path)).toEqual([`${path}: ACTIVE of 1`]);
    });
  });
}
