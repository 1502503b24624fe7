import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Cell, type Change } from "../../demo/cell.ts";
import { claimsOf, type Entry } from "../../demo/entry.ts";
import { CellCrash } from "../../demo/cell-crash.ts";
import { LocalDatabase } from "../../demo/local-database.ts";
import { Random } from "../../demo/random.ts";
import { CellCounts } from "../../demo/cell-counts.ts";
import { ClientLeases } from "../../src/users/cell/remote-leases.ts";
import { createClient, type Fetch } from "../../src/users/client/index.ts";
import { leaseOf, problem, responseOf, unavailable, type Reply } from "../users/client/fake.ts";

const ada: Entry = { kind: "user", name: "Ada", routeId: 1, userId: 2 };
const insert: Change = { batch: { creates: claimsOf(ada) }, apply: (database) => database.insert(ada) };

let database: LocalDatabase;
let calls: string[];
let answers: Record<string, Reply[]>;
let cell: Cell;

beforeEach(() => {
  database = new LocalDatabase(":memory:");
  calls = [];
  answers = {};
  const fake: Fetch = async (url, { method }) => {
    const step = method === "PUT" ? "begin" : (url.split("/").at(-1) ?? "");
    calls.push(step);
    const states: Record<string, string> = { begin: "GRANTED", commit: "COMMITTED", rollback: "ROLLED_BACK" };
    const [answer, ...later] = answers[step] ?? [];
    // The last answer is repeated.
    if (later.length > 0) answers[step] = later;
    return responseOf(answer ?? { status: 200, json: { lease: leaseOf(states[step] ?? "") } });
  };
  const client = createClient({
    url: "http://x",
    key: "k",
    cell: "1",
    fetch: fake,
    deadlineMs: 60_000,
    backoffMs: 1,
    retries: 2,
  });
  const leases = new ClientLeases(client);
  cell = new Cell({ id: "1", leases, database, random: new Random(1), counts: new CellCounts() });
});

afterEach(() => database.close());

const taken = problem(409, "ALREADY_EXISTS", {
  conflicts: [
    { list: "creates", index: 0, bucket: { type: "ROUTES", value: "Ada" }, kind: "taken", owner: "other" },
  ],
});

const outstanding = async (): Promise<number> => (await database.list({ afterUuid: "", limit: 10 })).length;

describe("a cell's change", () => {
  it("begins and commits the lease, and deletes its UUID", async () => {
    expect(await cell.transact(insert)).toEqual({ kind: "done" });
    expect(calls).toEqual(["begin", "commit"]);
    expect(database.entries()).toEqual([ada]);
    expect(await outstanding()).toBe(0);
  });

  it("rolls the lease back and saves nothing when its own database refuses the change", async () => {
    const broken: Change = {
      ...insert,
      apply: (to) => {
        to.insert(ada);
        to.insert(ada);
      },
    };
    expect(await cell.transact(broken)).toEqual({ kind: "failed_here" });
    expect(calls).toEqual(["begin", "rollback"]);
    expect(database.entries()).toEqual([]);
    expect(await outstanding()).toBe(0);
  });

  it("saves nothing when the begin is refused", async () => {
    answers["begin"] = [taken];
    expect(await cell.transact(insert)).toMatchObject({
      kind: "refused",
      refusal: { code: "ALREADY_EXISTS" },
    });
    expect(calls).toEqual(["begin"]);
    expect(database.entries()).toEqual([]);
    expect(cell.counts.conflicts).toEqual(new Map([["taken", 1]]));
  });

  it("rolls back a refused begin whose earlier attempt got no answer", async () => {
    answers["begin"] = [unavailable, taken];
    expect(await cell.transact(insert)).toMatchObject({
      kind: "refused",
      refusal: { code: "ALREADY_EXISTS", outcomeKnown: false },
    });
    expect(calls).toEqual(["begin", "begin", "rollback"]);
    expect(database.entries()).toEqual([]);
    expect(cell.counts).toMatchObject({ refused: 1, rolledBack: 1, unknown: 0, problems: [] });
  });

  it("rolls back a begin whose outcome is unknown", async () => {
    answers["begin"] = [unavailable];
    expect(await cell.transact(insert)).toEqual({ kind: "unknown" });
    expect(calls.at(-1)).toBe("rollback");
    expect(database.entries()).toEqual([]);
  });

  it("throws when that rollback gets no answer either", async () => {
    answers["begin"] = [unavailable];
    answers["rollback"] = [unavailable];
    await expect(cell.transact(insert)).rejects.toThrow("the coordinator cannot be reached");
  });

  it("keeps the lease's row for the recovery when the outcome of the commit is unknown", async () => {
    answers["commit"] = [unavailable];
    expect(await cell.transact(insert)).toEqual({ kind: "done" });
    expect(database.entries()).toEqual([ada]);
    expect(await outstanding()).toBe(1);
    expect(cell.counts.problems).toEqual([]);
  });

  it("records a problem when the commit of saved rows is refused", async () => {
    answers["commit"] = [
      problem(409, "FAILED_PRECONDITION", { reason: "LEASE_ROLLED_BACK", detail: "final" }),
    ];
    await cell.transact(insert);
    expect(cell.counts.problems).toEqual([
      "cell 1: the commit of a granted lease was refused: FAILED_PRECONDITION (LEASE_ROLLED_BACK): final",
    ]);
    expect(await outstanding()).toBe(1);
  });
});

describe("a cell that dies", () => {
  it.each([
    { lane: 0, stage: "begun", steps: ["begin"], rows: 0, leases: 0 },
    { lane: 1, stage: "saved", steps: ["begin"], rows: 1, leases: 1 },
    { lane: 2, stage: "committed", steps: ["begin", "commit"], rows: 1, leases: 1 },
  ])("leaves a lease that is $stage", async ({ lane, stage, steps, rows, leases }) => {
    const crash = new CellCrash();
    crash.start();
    await expect(cell.transact(insert, crash.checkpointOf(lane))).rejects.toMatchObject({ stage });
    expect(calls).toEqual(steps);
    expect(database.entries()).toHaveLength(rows);
    expect(await outstanding()).toBe(leases);
    expect(crash.crashes[stage as "begun"]).toBe(1);
  });

  it("completes its changes before the crash starts", async () => {
    expect(await cell.transact(insert, new CellCrash().checkpointOf(0))).toEqual({ kind: "done" });
  });
});
