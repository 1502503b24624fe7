/**
 * What a cell does, whatever its database, driver and ORM are: what a transaction claims and releases (S1),
 * collisions (S2), recovery (S3), bulk changes (S5), and every way in which a transaction and its lease can
 * disagree. It runs on PGlite with the coordinator for tests. What can differ by adapter is in
 * src/users/cell/conformance, and runs with every adapter. Rule numbers are those of
 * docs/reference/protocol.md.
 */
import * as vitest from "vitest";
import { switches } from "../../../../src/users/cell/conformance/schema.ts";
import { suitesOf, type ConformanceCoordinator } from "../../../../src/users/cell/conformance/target.ts";
import { fresh, quoted, signUp, worldOf } from "../../../../src/users/cell/conformance/world.ts";
import { LocalCommitUnknownError } from "../../../../src/users/cell/errors.ts";
import { toValidationErrors } from "../../../../src/users/cell/validation.ts";
import {
  ClaimLeasedError,
  NotOwnerError,
  TimeoutError,
  UnavailableError,
} from "../../../../src/users/client/errors.ts";
import { bulkSuite } from "./bulk.ts";
import { recoverySuite } from "./recovery.ts";
import { pgliteTarget, testCoordinator } from "./starts.ts";

const { describe, expect, test } = vitest;

const world = worldOf(suitesOf(vitest), pgliteTarget, testCoordinator);

describe("S1: the life of a claim", () => {
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
    expect(await one.owners("USERNAMES", old, renamed)).toEqual([`${old}: free`, `${renamed}: ACTIVE of 1`]);
  });
});

describe("what a body does", () => {
  test("writes after the end of the body are refused", async () => {
    const { one } = world;
    const tx = await one.transaction(async (each) => each);
    await expect(tx.insert("organizations", { path: fresh("late") })).rejects.toThrow("is over");
  });

  test("rows that were locked or reported are read again, whatever `db` did to them", async () => {
    const { one } = world;
    const [old, now, gone, added] = [fresh("old"), fresh("now"), fresh("gone"), fresh("added")];
    const [row, other] = await one.transaction((tx) =>
      tx.insertMany("organizations", [{ path: old }, { path: gone }]),
    );
    await one.transaction(async (tx) => {
      expect(await tx.lock("organizations", { path: [old, gone] })).toEqual([row, other]);
      await one.write(tx.db, `UPDATE organizations SET path = ${quoted(now)} WHERE id = ${row?.id}`);
      await one.write(tx.db, `DELETE FROM organizations WHERE id = ${other?.id}`);
      await one.write(tx.db, `INSERT INTO organizations (id, path) VALUES (4000, ${quoted(added)})`);
      tx.inserted("organizations", { id: 4_000, path: "what is said here does not matter" });
    });
    expect(await one.owners("ORGANIZATION_PATH", old, gone, now, added)).toEqual([
      `${old}: free`,
      `${gone}: free`,
      `${now}: ACTIVE of 1`,
      `${added}: ACTIVE of 1`,
    ]);
    await one.transaction((tx) => tx.delete("organizations", { id: 4_000 }));
  });
});

describe("S2: collisions", () => {
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
  test("[L1] [L3] a lost answer to COMMIT is left to reconciliation (saved)", async () => {
    const { one } = world;
    const path = fresh("unsure");
    const run = one.database.run.bind(one.database);
    one.database.run = async (body) => {
      const ran = await run(body);
      return ran.kind === "committed" ? { kind: "unknown", error: new Error("connection lost") } : ran;
    };
    try {
      const error = await one
        .transaction((tx) => tx.insert("organizations", { path }))
        .catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(LocalCommitUnknownError);
      // Whoever sends the form again would be told that their own row has the name.
      expect(toValidationErrors(error)).toEqual([]);
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

/** Never answers a begin. The caller aborts it. */
const hangOnBegin =
  ({ fetch }: ConformanceCoordinator): ConformanceCoordinator["fetch"] =>
  (url, init) =>
    init.method !== "PUT"
      ? fetch(url, init)
      : new Promise((_, reject) => {
          init.signal.addEventListener("abort", () => reject(init.signal.reason as Error));
        });

describe("preflight: the begin comes first", () => {
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

recoverySuite(world);
bulkSuite(world);
