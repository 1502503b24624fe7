/**
 * A cell with any coordinator and any database: the life of a claim (S1), collisions (S2), recovery (S3),
 * bulk changes (S5), and every way in which a transaction and its lease can disagree. Rule numbers are those
 * of docs/reference/protocol.md.
 */
import { LocalCommitUnknownError, NotSavedError } from "../errors.ts";
import { toValidationErrors } from "../validation.ts";
import {
  AlreadyClaimedError,
  ClaimLeasedError,
  LeaseholdError,
  NotOwnerError,
  TimeoutError,
  UnavailableError,
} from "../../client/errors.ts";
import { bulkSuite } from "./bulk.ts";
import { recoverySuite } from "./recovery.ts";
import type { Suites } from "./runner.ts";
import { dialects, switches } from "./schema.ts";
import type { ConformanceCoordinator, ConformanceTarget } from "./target.ts";
import { ConformanceCell, fresh, quoted, type World } from "./world.ts";

export function scenarioSuite(
  suites: Suites,
  target: ConformanceTarget<unknown>,
  startCoordinator: () => Promise<ConformanceCoordinator>,
): void {
  const { afterAll, beforeAll, beforeEach } = suites;
  const world = { target } as World;
  const stops: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    world.coordinator = await startCoordinator();
    stops.push(() => world.coordinator.stop());
    for (const [key, id] of [
      ["one", "1"],
      ["two", "2"],
    ] as const) {
      const opened = await target.open();
      stops.push(() => opened.stop());
      world[key] = await new ConformanceCell(id, target, world.coordinator, opened).prepare();
    }
  });

  afterAll(async () => {
    for (const stop of stops.toReversed()) await stop();
  });

  beforeEach(async () => {
    switches.usernames = true;
    for (const each of [world.one, world.two]) {
      each.network.forget();
      each.events.length = 0;
    }
  });

  lifeSuite(suites, world);
  bodySuite(suites, world);
  collisionSuite(suites, world);
  failureSuite(suites, world);
  preflightSuite(suites, world);
  recoverySuite(suites, world);
  bulkSuite(suites, world);
}

const thrownBy = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

async function signUp(cell: ConformanceCell, username: string, email = `${username}@x.io`): Promise<number> {
  return cell.transaction(async (tx) => {
    const user = await tx.insert("users", { username });
    await tx.insert("emails", { owner: user.id, email });
    return user.id;
  });
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

    test("a change of case is a replace, and an unchanged value changes nothing", async () => {
      const { one } = world;
      const grace = fresh("grace");
      const id = await signUp(one, grace);
      one.network.forget();
      await one.transaction((tx) =>
        tx.update("users", { id }, { username: grace.toUpperCase(), bio: "admiral" }),
      );
      expect(one.network.of("begin")[0]?.body).toMatchObject({
        replaces: [{ bucket: { value: grace.toUpperCase() } }],
      });
      expect(one.network.of("begin")[0]?.body).not.toHaveProperty("creates");
      one.network.forget();
      await one.transaction((tx) => tx.update("users", { id }, { username: grace.toUpperCase() }));
      expect(one.network.calls).toEqual([]);
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

    test("only the difference between the start and the end of a transaction counts", async () => {
      const { one } = world;
      const [first, second, third] = [fresh("first"), fresh("second"), fresh("third")];
      const id = await signUp(one, first);
      one.network.forget();
      await one.transaction(async (tx) => {
        await tx.update("users", { id }, { username: second });
        await tx.update("users", { id }, { username: first });
        const gone = await tx.insert("users", { username: third });
        await tx.delete("users", { id: gone.id });
      });
      expect(one.network.calls).toEqual([]);
    });

    test("names that are swapped, or move to another row, are replaced", async () => {
      const { one } = world;
      const [a, b, between] = [fresh("a"), fresh("b"), fresh("between")];
      const [first, second] = [await signUp(one, a), await signUp(one, b)];
      one.network.forget();
      await one.transaction(async (tx) => {
        await tx.update("users", { id: first }, { username: between });
        await tx.update("users", { id: second }, { username: a });
        await tx.update("users", { id: first }, { username: b });
      });
      expect(one.network.of("begin")[0]?.body).toMatchObject({ replaces: [{}, {}] });
      const records = await one.client.records
        .list({ sourceType: "RAILS_TABLE_USERS", sourceIdGt: String(first - 1), bucketTypes: ["USERNAMES"] })
        .all();
      expect(records.map(({ bucket, source }) => `${source.id} ${bucket.value}`)).toEqual([
        `${first} ${b}`,
        `${second} ${a}`,
      ]);
    });

    test("a rename of a row without a claim claims the new name", async () => {
      const { one } = world;
      const [old, renamed] = [fresh("old"), fresh("renamed")];
      switches.usernames = false;
      const id = await signUp(one, old);
      switches.usernames = true;
      await one.transaction((tx) => tx.update("users", { id }, { username: old.toUpperCase() }));
      expect(await one.owners("USERNAMES", old)).toEqual([`${old}: ACTIVE of 1`]);
      await one.transaction((tx) => tx.update("users", { id }, { username: renamed }));
      expect(await one.owners("USERNAMES", old, renamed)).toEqual([
        `${old}: free`,
        `${renamed}: ACTIVE of 1`,
      ]);
    });
  });
}

function bodySuite({ describe, test, expect }: Suites, world: World): void {
  describe("what a body does", () => {
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

    test("writes after the end of the body are refused", async () => {
      const { one } = world;
      const tx = await one.transaction(async (each) => each);
      await expect(tx.insert("organizations", { path: fresh("late") })).rejects.toThrow("is over");
    });

    test("rows changed with `db` are reported with `changed`, and read from the database", async () => {
      const { one } = world;
      const [old, now] = [fresh("old"), fresh("now")];
      const row = await one.transaction((tx) => tx.insert("organizations", { path: old }));
      await one.transaction(async (tx) => {
        await one.write(tx.db, `UPDATE organizations SET path = ${quoted(now)} WHERE id = ${row.id}`);
        tx.changed("organizations", row, { ...row, path: "what is said here does not matter" });
        const { path: _, ...partial } = row;
        expect(() => tx.changed("organizations", partial as typeof row, row)).toThrow(
          "`path` of a row of organizations is missing",
        );
      });
      expect(await one.owners("ORGANIZATION_PATH", old, now)).toEqual([
        `${old}: free`,
        `${now}: ACTIVE of 1`,
      ]);
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

    test("[R2] a leased name is a temporary error for each field", async () => {
      const { one, two } = world;
      const path = fresh("busy");
      const lease = await one.client.leases.begin({
        creates: [
          {
            bucket: { type: "ORGANIZATION_PATH", value: path },
            subject: { type: "ORGANIZATION", id: 1 },
            source: { type: "RAILS_TABLE_ORGANIZATIONS", id: 1 },
          },
        ],
      });
      const error = await two
        .transaction((tx) => tx.insert("organizations", { path }))
        .catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(ClaimLeasedError);
      expect(toValidationErrors(error)).toMatchObject([{ field: "path", problem: "try_again" }]);
      await one.client.leases.rollback(lease.uuid);
      await two.transaction((tx) => tx.insert("organizations", { path }));
      expect(await one.owners("ORGANIZATION_PATH", path)).toEqual([`${path}: ACTIVE of 2`]);
    });

    test("a value that cannot be a name is refused before the begin", async () => {
      const { one } = world;
      const error = await one
        .transaction((tx) => tx.insert("organizations", { path: "a//b" }))
        .catch((thrown: unknown) => thrown);
      expect(toValidationErrors(error)).toMatchObject([
        { table: "organizations", field: "path", problem: "invalid" },
      ]);
      expect(one.network.calls).toEqual([]);
    });

    test("exactly one of a hundred concurrent begins from two cells gets a name", async () => {
      const { one, two } = world;
      const path = fresh("wanted");
      const cells = Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? one : two));
      const ends = await Promise.allSettled(
        cells.map((each) => each.transaction((tx) => tx.insert("organizations", { path }))),
      );
      expect(ends.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      for (const end of ends)
        if (end.status === "rejected") expect(end.reason).toBeInstanceOf(LeaseholdError);
      const rows = [...(await one.rows("organizations")), ...(await two.rows("organizations"))];
      expect(rows.filter((row) => row["path"] === path)).toHaveLength(1);
    });

    test("a row with another cell's name can be renamed and deleted, but the claim stays", async () => {
      const { one, two } = world;
      const [path, other] = [fresh("mine"), fresh("other")];
      await one.transaction((tx) => tx.insert("organizations", { path }));
      const foreign = await two.client.leases
        .begin({ destroys: [{ bucket: { type: "ORGANIZATION_PATH", value: path } }] })
        .catch((thrown: unknown) => thrown);
      expect(foreign).toBeInstanceOf(NotOwnerError);

      // Written without the SDK, as after a restore.
      await two.opened.query(`INSERT INTO organizations (path) VALUES (${quoted(path)})`);
      await two.transaction((tx) => tx.update("organizations", { path }, { path: other }));
      expect(await one.owners("ORGANIZATION_PATH", path, other)).toEqual([
        `${path}: ACTIVE of 1`,
        `${other}: ACTIVE of 2`,
      ]);
      await two.opened.query(`INSERT INTO organizations (path) VALUES (${quoted(path)})`);
      two.network.forget();
      await two.transaction((tx) => tx.delete("organizations", { path }));
      expect(two.network.story).toBe("begin");
      expect(two.events.map(({ kind }) => kind)).toEqual(["not_owned", "not_owned"]);
      expect(await one.owners("ORGANIZATION_PATH", path)).toEqual([`${path}: ACTIVE of 1`]);
      expect(await two.outstanding()).toEqual([]);
      expect((await two.rows("organizations")).some((row) => row["path"] === path)).toBe(false);
    });

    test("[B2] a begin whose answer was lost is retried without conflicting with itself", async () => {
      const { one } = world;
      const path = fresh("lossy");
      let lost = 0;
      one.network.fate = ({ operation }) =>
        operation === "begin" && (lost += 1) === 1 ? "lose_answer" : "deliver";
      await one.transaction((tx) => tx.insert("organizations", { path }));
      expect(one.network.story).toBe("begin begin commit");
      expect(new Set(one.network.of("begin").map(({ uuid }) => uuid)).size).toBe(1);
    });
  });
}

function failureSuite({ describe, test, expect }: Suites, world: World): void {
  const changes = ["create", "update", "delete"] as const;
  /** A change of one organization, and the records that show whether it was made. */
  const prepared = async (kind: (typeof changes)[number]) => {
    const { one } = world;
    const [before, after] = [fresh("before"), fresh("after")];
    const row =
      kind === "create"
        ? undefined
        : await one.transaction((tx) => tx.insert("organizations", { path: before }));
    one.network.forget();
    const its = { id: row?.id ?? 0 };
    const change = (late?: () => void) =>
      one.transaction(async (tx) => {
        if (kind === "create") await tx.insert("organizations", { path: after });
        else if (kind === "update") await tx.update("organizations", its, { path: after });
        else await tx.delete("organizations", its);
        late?.();
        return tx;
      });
    const states = {
      undone:
        kind === "create"
          ? [`${before}: free`, `${after}: free`]
          : [`${before}: ACTIVE of 1`, `${after}: free`],
      held: {
        create: [`${before}: free`, `${after}: LEASE_CREATING of 1`],
        update: [`${before}: LEASE_DESTROYING of 1`, `${after}: LEASE_CREATING of 1`],
        delete: [`${before}: LEASE_DESTROYING of 1`, `${after}: free`],
      }[kind],
      done:
        kind === "delete"
          ? [`${before}: free`, `${after}: free`]
          : [`${before}: free`, `${after}: ACTIVE of 1`],
    };
    const owners = () => one.owners("ORGANIZATION_PATH", before, after);
    const local = async () =>
      (await one.rows("organizations"))
        .map(({ path }) => path)
        .filter((path) => path === before || path === after);
    return {
      change,
      states,
      owners,
      local,
      localUndone: kind === "create" ? [] : [before],
      localDone: kind === "delete" ? [] : [after],
    };
  };

  for (const kind of changes)
    describe(`S1: failures of a ${kind}`, () => {
      test("[C7] [L2] (a) a failed begin saves nothing, and its lease is rolled back", async () => {
        const { one } = world;
        const { change, states, owners, local, localUndone } = await prepared(kind);
        one.network.fate = ({ operation }) => (operation === "begin" ? "lose_answer" : "deliver");
        const error = await change().catch((thrown: unknown) => thrown);
        expect(error).toBeInstanceOf(UnavailableError);
        expect(toValidationErrors(error).map(({ problem }) => problem)).toEqual(
          kind === "delete" ? [] : ["try_again"],
        );
        await one.cell.flush();
        expect(one.network.story).toBe("begin begin rollback");
        expect(await local()).toEqual(localUndone);
        expect(await one.outstanding()).toEqual([]);
        expect(await owners()).toEqual(states.undone);
        expect(await one.granted()).toEqual([]);
      });

      test("(b) a local transaction that fails before the begin calls no coordinator", async () => {
        const { one } = world;
        const { change, local, localUndone } = await prepared(kind);
        const failed = change(() => {
          throw new RangeError("a bug");
        });
        await expect(failed).rejects.toThrow(new RangeError("a bug"));
        expect(one.network.calls).toEqual([]);
        expect(await local()).toEqual(localUndone);
      });

      test("[L4] (c) if the commit of the lease fails, reconciliation commits it", async () => {
        const { one } = world;
        const { change, states, owners, local, localDone } = await prepared(kind);
        one.network.fate = ({ operation }) => (operation === "commit" ? "lose" : "deliver");
        await change();
        expect(one.network.of("commit")).toHaveLength(2);
        expect(await local()).toEqual(localDone);
        const [left] = await one.outstanding();
        expect(one.events).toEqual([
          { kind: "commit_postponed", uuid: left?.uuid, error: expect.any(String) as string },
        ]);
        expect(await owners()).toEqual(states.held);
        one.network.forget();
        const { counters } = await one.cell.reconcile({ commitGraceMs: 0 });
        expect(counters).toMatchObject({ committed: 1, failed: 0, contradicted: 0 });
        expect(await owners()).toEqual(states.done);
        expect(await one.outstanding()).toEqual([]);
      });
    });

  test("[L2] after a begin without an answer, only `flush` waits for the rollback", async () => {
    const { one } = world;
    const path = fresh("unanswered");
    let unblock = (): void => {};
    const rollback = new Promise<void>((resolve) => {
      unblock = resolve;
    });
    one.network.fate = ({ operation }) => (operation === "begin" ? "lose_answer" : "deliver");
    one.network.before = async ({ operation }) => (operation === "rollback" ? rollback : undefined);
    const begun = one.transaction((tx) => tx.insert("organizations", { path }));
    await expect(begun).rejects.toThrow(UnavailableError);
    expect(await one.granted()).toHaveLength(1);
    const flushed = one.cell.flush();
    unblock();
    await flushed;
    expect(await one.granted()).toEqual([]);
    expect(await one.owners("ORGANIZATION_PATH", path)).toEqual([`${path}: free`]);
  });

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
        // Some drivers report that COMMIT was answered with ROLLBACK. Otherwise the cell finds no row.
        const error = await one
          .transaction((tx) => tx.insert("organizations", { path }))
          .catch((thrown: unknown) => thrown);
        expect(error).toBeInstanceOf(one.target.looksAtCommit ? Error : NotSavedError);
      } finally {
        one.database.insertLease = save;
      }
      expect(one.network.story).toBe("begin rollback");
      expect(await one.owners("ORGANIZATION_PATH", path)).toEqual([`${path}: free`]);
    });

    test("[L1] [L3] a lost answer to COMMIT is left to reconciliation (saved)", async () => {
      const { one } = world;
      const path = fresh("unsure");
      const run = one.database.run.bind(one.database);
      one.database.run = async (body) => {
        const ran = await run(body);
        return ran.kind === "committed" ? { kind: "unknown", error: new Error("connection lost") } : ran;
      };
      try {
        await expect(one.transaction((tx) => tx.insert("organizations", { path }))).rejects.toThrow(
          LocalCommitUnknownError,
        );
      } finally {
        one.database.run = run;
      }
      expect(one.network.story).toBe("begin");
      await one.cell.reconcile({ commitGraceMs: 0 });
      expect(await one.owners("ORGANIZATION_PATH", path)).toEqual([`${path}: ACTIVE of 1`]);
    });

    test("[L1] [L3] a lost answer to COMMIT is left to reconciliation (not saved)", async () => {
      const { one } = world;
      const path = fresh("unsure");
      const run = one.database.run.bind(one.database);
      one.database.run = async <T>(body: (tx: never) => Promise<T>) => {
        await run(async (tx) => {
          await body(tx as never);
          throw new Error("undone");
        });
        return { kind: "unknown", error: new Error("connection lost") } as const;
      };
      try {
        await expect(one.transaction((tx) => tx.insert("organizations", { path }))).rejects.toThrow(
          LocalCommitUnknownError,
        );
      } finally {
        one.database.run = run;
      }
      expect((await one.cell.reconcile({ staleMs: 600_000 })).counters).toMatchObject({
        pending: 1,
        rolledBack: 0,
      });
      expect((await one.cell.reconcile({ staleMs: 0 })).counters).toMatchObject({
        pending: 0,
        rolledBack: 1,
      });
      expect(await one.owners("ORGANIZATION_PATH", path)).toEqual([`${path}: free`]);
    });

    test("[C4] [L6] a commit answered with ROLLED_BACK is reported, and its rows are queued", async () => {
      const { one } = world;
      const path = fresh("contradicted");
      let uuid = "";
      one.network.fate = ({ operation, uuid: its }) => {
        if (operation === "begin") uuid = its ?? "";
        return operation === "commit" ? "lose" : "deliver";
      };
      const row = await one.transaction((tx) => tx.insert("organizations", { path }));
      one.network.forget();
      one.events.length = 0;
      await one.client.leases.rollback(uuid);
      // The lease is no longer outstanding, so only a full run finds it, by its local row.
      const { counters, findings } = await one.cell.reconcile({ full: true, orphanMs: 0, commitGraceMs: 0 });
      expect(counters).toMatchObject({ contradicted: 1, failed: 0 });
      expect(findings).toEqual([{ kind: "contradicted", uuid, coordinator: "ROLLED_BACK" }]);
      expect(one.events).toEqual([{ kind: "reconcile_finding", finding: findings[0] }]);
      const queued = await one.opened.query(
        `SELECT source_id AS id, source_type AS type FROM leasehold_verification_queue
          WHERE lease_uuid = ${quoted(uuid)}`,
      );
      expect(queued).toEqual([{ id: String(row.id), type: "RAILS_TABLE_ORGANIZATIONS" }]);
      expect(await one.outstanding()).toEqual([]);
    });

    test("a begin that exceeds its deadline fails the transaction", async () => {
      const { one } = world;
      const path = fresh("slow");
      const hanging = one.sibling(
        { ...world.coordinator, fetch: hangOnBegin(world.coordinator) },
        { beginDeadlineMs: 30 },
      );
      await expect(hanging.transaction((tx) => tx.insert("organizations", { path }))).rejects.toThrow(
        TimeoutError,
      );
      expect(hanging.network.story).toBe("begin rollback");
      expect(await one.outstanding()).toEqual([]);
      expect(await one.owners("ORGANIZATION_PATH", path)).toEqual([`${path}: free`]);
    });
  });
}

/** Never answers a begin. The caller aborts it. */
const hangOnBegin =
  ({ fetch }: ConformanceCoordinator): ConformanceCoordinator["fetch"] =>
  (url, init) =>
    init.method !== "PUT"
      ? fetch(url, init)
      : new Promise((_, reject) => {
          init.signal.addEventListener("abort", () => reject(init.signal.reason as Error));
        });

function preflightSuite({ describe, test, expect }: Suites, world: World): void {
  describe("preflight: the begin comes first", () => {
    test("claims the names, then writes the rows with the row of the lease", async () => {
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

    test("a later local failure rolls the lease back at once", async () => {
      const { one } = world;
      const [id, path] = [fresh("project"), fresh("path")];
      const failed = one.preflight(
        (plan) => plan.insert("projects", { id, path }),
        async () => {
          throw new RangeError("a bug");
        },
      );
      await expect(failed).rejects.toThrow("a bug");
      expect(one.network.story).toBe("begin rollback");
      expect(await one.owners("ROUTES", path)).toEqual([`${path}: free`]);
    });

    test("a row that has changed since it was read fails the transaction", async () => {
      const { one } = world;
      const [id, path] = [fresh("project"), fresh("path")];
      await one.preflight((plan) => plan.insert("projects", { id, path }));
      const stale = { id, path: fresh("never") };
      await expect(
        one.preflight((plan) => plan.update("projects", stale, { path: fresh("next") })),
      ).rejects.toThrow("read the rows again");
      expect(await one.owners("ROUTES", path)).toEqual([`${path}: ACTIVE of 1`]);
      expect(await one.granted()).toEqual([]);
    });

    test("an id made by the database is refused before the begin", async () => {
      const { one } = world;
      const failed = one.preflight((plan) => plan.insert("organizations", { path: fresh("auto") }));
      await expect(failed).rejects.toThrow("give the row an id");
      expect(one.network.calls).toEqual([]);
    });
  });
}
