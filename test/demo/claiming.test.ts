import { afterEach, beforeEach, expect, it } from "vitest";
import { Cell } from "../../demo/cell.ts";
import { claimAll } from "../../demo/claiming.ts";
import { CellCrash } from "../../demo/cell-crash.ts";
import { LocalDatabase } from "../../demo/local-database.ts";
import type { NameRequest } from "../../demo/names.ts";
import { Queue } from "../../demo/queue.ts";
import { Random } from "../../demo/random.ts";
import { CellCounts } from "../../demo/cell-counts.ts";
import { Witness } from "../../demo/witness.ts";
import { ClientLeases } from "../../src/users/cell/remote-leases.ts";
import { createClient, type Batch, type Fetch } from "../../src/users/client/index.ts";
import { leaseOf, problem, responseOf, type Reply } from "../users/client/fake.ts";

const names: NameRequest[] = Array.from({ length: 60 }, (_, index) => ({
  name: `name-${index}`,
  kind: index % 4 === 0 ? "user" : "group",
}));

let database: LocalDatabase;
let cell: Cell;
let refused: number;

/** A coordinator where `name-3` is taken, and `name-4` is leased at the first begin. */
beforeEach(() => {
  database = new LocalDatabase(":memory:");
  refused = 0;
  let leased = true;
  const fake: Fetch = async (url, { method, body }) => {
    const state = method === "PUT" ? "GRANTED" : url.endsWith("commit") ? "COMMITTED" : "ROLLED_BACK";
    const refusal = method === "PUT" ? refusalOf(body ?? "") : undefined;
    return responseOf(refusal ?? { status: 200, json: { lease: leaseOf(state) } });
  };
  const refusalOf = (body: string): Reply | undefined => {
    const { creates = [] } = JSON.parse(body) as Batch;
    const conflicts = creates.flatMap(({ bucket }, index) => {
      const { value } = bucket;
      if (value === "name-3") return [{ list: "creates", index, bucket, kind: "taken", owner: "other" }];
      if (value === "name-4" && leased)
        return [{ list: "creates", index, bucket, kind: "leased", owner: "other" }];
      return [];
    });
    if (conflicts.length === 0) return undefined;
    refused += 1;
    leased = false;
    const code = conflicts.some(({ kind }) => kind === "taken") ? "ALREADY_EXISTS" : "ABORTED";
    return problem(409, code, { conflicts }, { "retry-after": "0" });
  };
  const leases = new ClientLeases(createClient({ url: "http://x", key: "k", cell: "1", fetch: fake }));
  cell = new Cell({ id: "1", leases, database, random: new Random(1), counts: new CellCounts() });
});

afterEach(() => database.close());

it("wins free names, loses taken names, and tries leased names again", async () => {
  const won: NameRequest[] = [];
  const lost: NameRequest[] = [];
  const unanswered = await claimAll({
    cell,
    queue: new Queue(names),
    witness: new Witness(),
    won: (wanted) => won.push(wanted),
    lost: (wanted) => lost.push(wanted),
  });
  expect(unanswered).toEqual([]);
  expect(lost.map(({ name }) => name)).toEqual(["name-3"]);
  expect(won).toHaveLength(59);
  expect(new Set(database.entries().map(({ name }) => name))).toEqual(new Set(won.map(({ name }) => name)));
  expect(database.entries().every(({ kind, userId }) => (kind === "user") === (userId !== undefined))).toBe(
    true,
  );
  expect(refused).toBeGreaterThan(0);
  expect(cell.counts.problems).toEqual([]);
});

it("returns the names of unfinished batches when it dies, and keeps the others in the queue", async () => {
  const crash = new CellCrash();
  crash.start();
  const queue = new Queue(names);
  const won: NameRequest[] = [];
  const lost: NameRequest[] = [];
  const unanswered = await claimAll({
    cell,
    queue,
    witness: new Witness(),
    crash,
    won: (wanted) => won.push(wanted),
    lost: (wanted) => lost.push(wanted),
  });
  expect(crash.crashes.begun + crash.crashes.saved + crash.crashes.committed).toBeGreaterThan(0);
  expect(unanswered.length).toBeGreaterThan(0);
  expect(won.length + lost.length + unanswered.length + queue.length).toBe(60);
  expect(cell.counts.problems).toEqual([]);
});
