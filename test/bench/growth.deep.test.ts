/**
 * Tests the growth benchmark: a coordinator accepts the states that it fills, and its figures are correct.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { fill } from "../../bench/growth/fill.ts";
import { LeasePages } from "../../bench/growth/lease-pages.ts";
import { NumberedNames, outstandingNames, storedNames } from "../../bench/growth/numbered-names.ts";
import { Results, type Result } from "../../bench/growth/results.ts";
import { rowsOf } from "../../bench/growth/table.ts";
import { axes, isBase, variantOf, variantsOf } from "../../bench/growth/variants.ts";
import { startCoordinator, type Coordinator } from "../../scripts/coordinator.ts";

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-growth-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

async function start(stateFolder: string): Promise<Coordinator> {
  const coordinator = await startCoordinator({
    port: 0,
    stateFolder,
    variables: { LEASEHOLD_SWEEP_AFTER_MS: "100" },
  });
  onTestFinished(() => coordinator.stop());
  return coordinator;
}

interface Body {
  code?: string;
  record?: { cell_id: string; status: string };
  lease?: { state: string };
  cells?: { cell_id: string; outstanding_leases: number; unapplied_decisions: number }[];
}

interface Answered {
  status: number;
  body: Body;
}

async function call(
  url: string,
  key: string,
  method: "GET" | "PUT" | "POST",
  path: string,
  body?: unknown,
): Promise<Answered> {
  const headers = {
    authorization: `Bearer ${key}`,
    ...(body === undefined ? {} : { "content-type": "application/json" }),
  };
  const answer = await fetch(`${url}/v1/${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: (await answer.json()) as Body };
}

const claiming = (value: string) => ({
  creates: [
    {
      bucket: { type: "ROUTES", value },
      subject: { type: "GROUP", id: "1" },
      source: { type: "RAILS_TABLE_ROUTES", id: "1" },
    },
  ],
});

test("a coordinator works with a filled state as with its own", async () => {
  const stateFolder = newFolder();
  // This has more claims than real names, so that some share a stem, more leases than one page, and more
  // cells than a new state.
  const variant = variantOf({ claims: 12_000, outstanding: 150, decided: 2_000, cells: 5, shards: 3 });
  const { cells, router } = await fill(stateFolder, variant);
  const coordinator = await start(stateFolder);
  const { url } = coordinator;
  const asCell = (cell: string, method: "GET" | "PUT" | "POST", path: string, body?: unknown) =>
    call(url, cells[cell] ?? "", method, `cells/${cell}/leases${path}`, body);
  const lookUp = (value: string) => call(url, router, "GET", `records/ROUTES/${value}`);

  const owners = new Set<string | undefined>();
  for (const index of [0, 1, 2_345, 7_000, 9_999, 10_000, 11_999]) {
    const { value } = storedNames().at(index);
    const found = await lookUp(value);
    expect(found).toMatchObject({ status: 200, body: { record: { status: "ACTIVE" } } });
    owners.add(found.body.record?.cell_id);
    expect(await asCell("5", "PUT", `/${crypto.randomUUID()}`, claiming(value))).toMatchObject({
      status: 409,
      body: { code: "ALREADY_EXISTS" },
    });
  }
  expect(owners.size).toBeGreaterThan(1);
  expect((await lookUp(storedNames().at(12_000).value)).status).toBe(404);

  const pages = new LeasePages({ url, keys: cells, router }, "1");
  const [first, second] = [await pages.next(), await pages.next()];
  expect(first?.leases.length).toBe(100);
  expect(second?.leases.length).toBe(50);
  expect(pages.isAtStart).toBe(true);

  // The shards inquire about holds as old as these, and must be told that they stand. The cron copies the
  // leases.
  await coordinator.cron();
  const lease = first?.leases[0]?.uuid ?? "";
  const { value: held } = outstandingNames().at(0);
  expect((await lookUp(held)).body.record).toMatchObject({ cell_id: "1", status: "LEASE_CREATING" });
  expect(await asCell("2", "PUT", `/${crypto.randomUUID()}`, claiming(held))).toMatchObject({
    status: 409,
    body: { code: "ABORTED" },
  });
  expect(await asCell("1", "POST", `/${lease}/commit`)).toMatchObject({
    status: 200,
    body: { lease: { state: "COMMITTED" } },
  });
  expect((await lookUp(held)).body.record).toMatchObject({ cell_id: "1", status: "ACTIVE" });
  const listedCells = async (): Promise<NonNullable<Body["cells"]>> =>
    (await call(url, coordinator.keys.operator, "GET", "admin/cells")).body.cells ?? [];
  const outstanding = (await listedCells()).map(({ outstanding_leases }) => outstanding_leases);
  expect(outstanding).toEqual([149, 0, 0, 0, 0]);
  // A commit on a busy machine can return before its shard has applied it.
  await expect
    .poll(async () => (await listedCells()).map(({ unapplied_decisions }) => unapplied_decisions))
    .toEqual([0, 0, 0, 0, 0]);

  // New work succeeds too, here in a cell that a new state does not have.
  const { value: fresh } = new NumberedNames("fresh").scattered(3);
  const id = crypto.randomUUID();
  expect((await asCell("5", "PUT", `/${id}`, claiming(fresh))).status).toBe(201);
  expect((await asCell("5", "POST", `/${id}/commit`)).status).toBe(200);
  expect((await lookUp(fresh)).body.record).toMatchObject({ cell_id: "5", status: "ACTIVE" });
});

test("names are unique in every order", () => {
  const names = storedNames();
  const count = 25_000;
  const inOrder = [...names.inNameOrder(count)];
  expect(inOrder.toSorted((a, b) => a - b)).toEqual([...Array(count).keys()]);
  const canonicals = new Set(inOrder.map((index) => names.at(index).canonical));
  expect(canonicals.size).toBe(count);
  expect(new Set(inOrder.map((index) => names.scattered(index).canonical))).toHaveLength(count);
});

test.each(axes)("the variants of %s have one base, and differ in nothing else", (axis) => {
  for (const extent of ["full", "small"] as const) {
    const variants = variantsOf(axis, extent);
    const bases = variants.filter((variant) => isBase(axis, variant));
    expect(bases).toEqual([variantOf({})]);
    for (const variant of variants) expect({ ...variant, [axis]: bases[0]?.[axis] }).toEqual(bases[0]);
  }
});

const result = (claims: number, round: number, turns: number, errors = 0): Result => ({
  commit: "abc",
  axis: "claims",
  variant: variantOf({ claims }),
  work: "cycles",
  round,
  turns,
  errors,
  seconds: 1,
  p50Ms: round,
  cpuMs: 100,
});

test("ratios are medians of each round's ratio to the base", () => {
  const bases = [result(1_000, 0, 100), result(1_000, 1, 50), result(1_000, 2, 10)];
  const others = [result(5_000, 0, 50), result(5_000, 1, 40), result(5_000, 2, 10)];
  expect(rowsOf("claims", [...bases, ...others])).toMatchObject([
    { value: 1_000, perSecond: 50, rateRatio: 1, cpuRatio: 1 },
    { value: 5_000, perSecond: 40, cpuMs: 3, rateRatio: 0.8, cpuRatio: 1.25, errors: 0 },
  ]);
});

test("a result of the same code and variant without errors is not measured again", () => {
  const path = join(newFolder(), "growth.jsonl");
  const before = new Results(path);
  before.add(result(1_000, 0, 100));
  before.add(result(5_000, 0, 100, 1));
  const after = new Results(path);
  expect(after.has(result(1_000, 0, 0))).toBe(true);
  expect(after.has(result(5_000, 0, 0))).toBe(false);
  expect(after.has({ ...result(1_000, 0, 0), commit: "def" })).toBe(false);
  expect(after.has({ ...result(1_000, 0, 0), axis: "shards" })).toBe(false);
  after.add(result(5_000, 0, 90));
  expect(after.of("abc", "claims")).toEqual([result(1_000, 0, 100), result(5_000, 0, 90)]);
  expect(after.of("def", "claims")).toEqual([]);
});

test("a wrong option is refused with an error that names it", () => {
  const program = join(import.meta.dirname, "../../bench/growth/main.ts");
  const { status, stderr } = spawnSync(process.execPath, [program, "--axis", "names"], { encoding: "utf8" });
  expect(status).toBe(2);
  expect(stderr).toContain("--axis takes claims, outstanding, decided, cells, shards");
  expect(stderr).not.toContain("    at ");
});
