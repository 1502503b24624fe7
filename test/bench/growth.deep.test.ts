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
import { variantOf } from "../../bench/growth/variants.ts";
import { startCoordinator, type Coordinator } from "../../src/hosts/workerd/coordinator.ts";

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
      subject: { type: "NAMESPACE", id: "1" },
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

test("a wrong option is refused with an error that names it", () => {
  const program = join(import.meta.dirname, "../../bench/growth/main.ts");
  const { status, stderr } = spawnSync(process.execPath, [program, "--axis", "names"], { encoding: "utf8" });
  expect(status).toBe(2);
  expect(stderr).toContain("--axis takes claims, outstanding, decided, cells, shards");
  expect(stderr).not.toContain("    at ");
});
