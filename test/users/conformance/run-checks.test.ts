/** How checks are run: what a failure, an interrupt and a missing key do, and that nothing stays behind. */
import { describe, expect, onTestFinished, test } from "vitest";
import { Api, Slots } from "../../../src/users/conformance/api.ts";
import { SkipError, type Check } from "../../../src/users/conformance/check-context.ts";
import { linearizabilityChecks } from "../../../src/users/conformance/checks/linearizability.ts";
import { cleanUp } from "../../../src/users/conformance/clean-up.ts";
import { expectThat } from "../../../src/users/conformance/nonconformity.ts";
import { createClient, type Client } from "../../../src/users/client/index.ts";
import { startTestCoordinator, type TestCoordinator } from "../../../src/users/testing/index.ts";
import { run } from "./run.ts";

const TYPES = { bucket: "USERNAMES", subject: "USER", source: "RAILS_TABLE_USERS" } as const;

async function start(): Promise<TestCoordinator> {
  const coordinator = await startTestCoordinator();
  onTestFinished(() => coordinator.close());
  return coordinator;
}

const clientOf = ({ url, fetch, keys }: TestCoordinator, cell = "1"): Client =>
  createClient({ url, fetch, key: keys.cell(cell), cell });

/** The names and open leases of a cell. */
async function ownedBy(coordinator: TestCoordinator, cell = "1"): Promise<string[]> {
  const client = clientOf(coordinator, cell);
  const records = await client.records.list({ sourceType: TYPES.source }).all();
  const leases = await client.leases.list().all();
  return [...records.map(({ bucket }) => bucket.value), ...leases.map(({ uuid }) => uuid)];
}

const checkOf = (work: Check["run"], more: Partial<Check> = {}): Check => ({
  id: "a/check",
  rules: ["B1"],
  title: "It does what a test wants.",
  run: work,
  ...more,
});

/** Leaves claims, a hold of each kind, and a lease that gives up what nobody has. */
const untidy: Check["run"] = async (context) => {
  const [destroyed = "", replaced = "", made = "", ...kept] = context.names(6);
  await context.own([destroyed, replaced, ...kept]);
  await context.own([context.name()], "other");
  await context.granted({ destroys: [{ bucket: context.bucket(destroyed) }] });
  await context.granted({ replaces: [context.op(replaced)] });
  await context.granted({ creates: [context.op(made)] }, "other");
  await context.granted({ destroys: [{ bucket: context.bucket(context.name()) }], allow_missing: true });
};

describe("a check", () => {
  test("that fails has the message as its reason, and what it has left is given up", async () => {
    const coordinator = await start();
    const check = checkOf(async (context) => {
      await untidy(context);
      expectThat(false, "it did something else");
    });
    const { results, left, cleaned } = await run(coordinator, { checks: [check] });
    expect(results).toMatchObject([
      { id: "a/check", rules: ["B1"], result: "failed", reason: "it did something else" },
    ]);
    expect({ left, cleaned }).toEqual({ left: [], cleaned: { rolled_back: 4, released: 6 } });
    expect([await ownedBy(coordinator), await ownedBy(coordinator, "2")]).toEqual([[], []]);
  });

  test.each([
    ["other", "needs a key of another cell"],
    ["router", "needs a key of a router"],
    ["operator", "needs a key of an operator"],
    ["wire", "the protobuf wire is not tested"],
  ] as const)("that needs %s is skipped without it", async (need, reason) => {
    const coordinator = await start();
    const { results } = await run(coordinator, {
      checks: [checkOf(async () => expectThat(false, "it ran"), { needs: [need] })],
      keys: { cell: coordinator.keys.cell("1") },
      withWire: false,
    });
    expect(results).toMatchObject([{ result: "skipped", reason }]);
  });

  test("that can't tell is skipped, and one that breaks has failed", async () => {
    const coordinator = await start();
    const checks = [
      checkOf(() => Promise.reject(new SkipError("no time to tell"))),
      checkOf(() => Promise.reject(new TypeError("x is undefined"))),
    ];
    expect((await run(coordinator, { checks })).results).toMatchObject([
      { result: "skipped", reason: "no time to tell" },
      { result: "failed", reason: "could not be checked: x is undefined" },
    ]);
  });

  test("that takes too long has failed", async () => {
    const coordinator = await start();
    const check = checkOf(async (context) => {
      coordinator.faults.next({ kind: "hang", carriedOut: true }, { operation: "begin" });
      await context.begin({ creates: [context.op(context.name())] });
    });
    const { results, left } = await run(coordinator, { checks: [check], checkMs: 50 });
    expect(results).toMatchObject([{ result: "failed", reason: "took more than 0.05 s" }]);
    expect([left, await ownedBy(coordinator)]).toEqual([[], []]);
  });

  test("that is interrupted is skipped, as are all after it, and what it has left is given up", async () => {
    const coordinator = await start();
    const interrupt = new AbortController();
    const check = checkOf(async (context) => {
      await untidy(context);
      interrupt.abort(new Error("interrupted"));
      await context.lookUp(context.name());
    });
    const checks = [check, checkOf(async () => expectThat(false, "it ran"))];
    const { results, left } = await run(coordinator, { checks, concurrency: 1, signal: interrupt.signal });
    const skipped = { result: "skipped", reason: "the run was interrupted" };
    expect(results).toMatchObject([skipped, skipped]);
    expect([left, await ownedBy(coordinator), await ownedBy(coordinator, "2")]).toEqual([[], [], []]);
  });
});

describe("a call", () => {
  const granted = checkOf(async (context) => {
    const { received } = await context.granted({ creates: [context.op(context.name())] });
    expectThat(received.isRepeated, "the call was not repeated");
  });

  test("that is answered with `try again` is repeated, and so is a begin under its UUID", async () => {
    const coordinator = await start();
    coordinator.faults.next({ kind: "unavailable", carriedOut: true }, { operation: "begin" });
    expect((await run(coordinator, { checks: [granted] })).results).toMatchObject([{ result: "passed" }]);
  });

  test("without an answer fails its check, and its lease is rolled back", async () => {
    const coordinator = await start();
    coordinator.faults.next({ kind: "lose_answer" }, { operation: "begin" });
    const { results, left } = await run(coordinator, { checks: [granted] });
    expect(results[0]?.reason).toContain("got no answer: fetch failed (the answer was lost)");
    expect([left, await ownedBy(coordinator)]).toEqual([[], []]);
  });

  test("shows no key in what fails", async () => {
    const coordinator = await start();
    const check = checkOf(async (context) => void (await context.granted({ creates: [] })));
    const report = await run(coordinator, { checks: [check] });
    expect(report.results[0]?.reason).toMatch(/^PUT \/v1\/cells\/1\/leases\/.* answered 400 /);
    expect(JSON.stringify(report)).not.toContain("lhk_");
  });
});

test("what a killed run has left is given up later, and nothing else is", async () => {
  const coordinator = await start();
  const { leases } = clientOf(coordinator);
  const create = (value: string) => ({
    bucket: { type: TYPES.bucket, value },
    subject: { type: TYPES.subject, id: "1" },
    source: { type: TYPES.source, id: value },
  });
  const own = async (...values: string[]): Promise<void> => {
    const { uuid } = await leases.begin({ creates: values.map(create) });
    await leases.commit(uuid);
  };
  await own(...Array.from({ length: 150 }, (_, index) => `conformance-a-${index}`), "ada");
  await own("conformance-b-1");
  await leases.begin({ destroys: [{ bucket: { type: TYPES.bucket, value: "conformance-a-7" } }] });
  await leases.begin({ replaces: [create("conformance-a-8")] });
  await leases.begin({ creates: [create("conformance-a-x")] });
  const nobodys = (value: string) => ({
    destroys: [{ bucket: { type: TYPES.bucket, value } }],
    allow_missing: true,
  });
  await leases.begin(nobodys("CONFORMANCE-A-Y"));
  const { uuid: kept } = await leases.begin(nobodys("grace"));
  const { signal } = new AbortController();
  const api = new Api({
    url: coordinator.url,
    fetch: coordinator.fetch,
    keys: { cell: coordinator.keys.cell("1") },
    signal,
    calls: new Slots(1),
  });
  const options = { api, who: "cell", cell: "1", types: TYPES, prefix: "conformance-a-", signal } as const;
  expect(await cleanUp(options)).toEqual({ rolled_back: 4, released: 150 });
  expect((await ownedBy(coordinator)).toSorted()).toEqual(["ada", "conformance-b-1", kept].toSorted());
});

test("a lease that can't be rolled back keeps no other lease or name from being given up", async () => {
  const coordinator = await start();
  const leases = clientOf(coordinator).leases;
  const create = (value: string) => ({
    bucket: { type: TYPES.bucket, value },
    subject: { type: TYPES.subject, id: "1" },
    source: { type: TYPES.source, id: value },
  });
  const claimed = await leases.begin({ creates: [create("conformance-a-1")] });
  await leases.commit(claimed.uuid);
  const stuck = await leases.begin({ creates: [create("ada")] });
  const { uuid } = await leases.begin({ creates: [create("grace")] });
  const { signal } = new AbortController();
  const api = new Api({
    url: coordinator.url,
    fetch: async (url, init) =>
      url.endsWith(`${stuck.uuid}/rollback`)
        ? new Response("{}", { status: 400 })
        : coordinator.fetch(url, init),
    keys: { cell: coordinator.keys.cell("1") },
    signal,
    calls: new Slots(1),
  });
  const open = [stuck.uuid, uuid];
  const options = {
    api,
    who: "cell",
    cell: "1",
    types: TYPES,
    prefix: "conformance-a-",
    open,
    signal,
  } as const;
  await expect(cleanUp(options)).rejects.toThrow(`${stuck.uuid}/rollback answered 400`);
  expect((await ownedBy(coordinator)).toSorted()).toEqual(["ada", stuck.uuid].toSorted());
});

test("a history that fails has no call under way when its result is known", async () => {
  const coordinator = await start();
  let underWay = 0;
  let lookups = 0;
  let left: number | undefined;
  await run(coordinator, {
    checks: linearizabilityChecks,
    histories: 1,
    fetch: async (url, init) => {
      underWay += 1;
      try {
        if (url.endsWith("/v1/records/lookup") && (lookups += 1) === 3) return Response.json({ results: [] });
        return await coordinator.fetch(url, init);
      } finally {
        underWay -= 1;
      }
    },
    onResult: ({ result }) => {
      expect(result).toBe("failed");
      left = underWay;
    },
  });
  expect(left).toBe(0);
});
