/** `leasehold status`: green, or a sentence for each reason why not. */
import { describe, expect, test } from "vitest";
import { create, spoil, startCommandLine, type CommandLine, type RunOptions } from "./command-line.ts";

const DAY_MS = 86_400_000;

interface Status {
  green: boolean;
  reasons: { problem: string; next?: string }[];
  cells: Record<string, unknown>[];
  next_steps: string[];
}

/** The clock of the test coordinator runs ahead of this machine's after `advance`. */
async function statusOf(line: CommandLine, options?: RunOptions): Promise<Status> {
  return (await line.json(["status"], options)) as unknown as Status;
}

async function startGreen(variables: Record<string, string> = {}): Promise<CommandLine> {
  const line = await startCommandLine({ variables });
  await line.coordinator.cron();
  return line;
}

const problem = (body: object): Response =>
  new Response(JSON.stringify(body), {
    status: 503,
    headers: { "content-type": "application/problem+json" },
  });

test("a healthy deployment is green: 0, with its cells", async () => {
  const line = await startGreen();
  const { code, out, err } = await line.run(["status"]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toContain("GREEN  Everything that was asked works.");
  expect(out).toMatch(/^1 +cell-1 +ACTIVE +0 +0 +- +0/m);
  expect(await statusOf(line)).toMatchObject({ green: true, reasons: [], next_steps: [] });
});

describe("is not green, and says why", () => {
  test("a frozen cell", async () => {
    const line = await startGreen();
    await line.client().cells.freeze("2");
    const { code, out, err } = await line.run(["status"]);
    expect(code).toBe(1);
    expect(out).toContain("NOT GREEN\n\n- Cell 2 is frozen, so its begins are refused.\n");
    expect(err).toBe("Next: leasehold cells thaw 2 --reason TEXT\n");
  });

  test("a growth that copies for days, and no younger one", async () => {
    const line = await startGreen();
    const data = JSON.stringify({ shards: 5, reason: "a test" });
    await line.run(["api", "POST", "/v1/admin/growth", "--data", data, "--yes", "--reason", "a test"]);
    expect(await statusOf(line)).toMatchObject({
      green: true,
      shards: 4,
      growth: { to: 5, phase: "copying" },
    });
    expect((await line.run(["status"])).out).toMatch(/^shards +4, growing to 5 \(copying\)$/m);
    const { reasons } = await statusOf(line, { now: () => Date.now() + 2 * DAY_MS });
    expect(reasons).toContainEqual({
      problem: "The growth to 5 shards has been copying for 2d, and is not ready for its cut.",
      next: "leasehold shards grow --to 5 --reason TEXT",
    });
  });

  test("a shard that is being reconciled, and a backup that is being restored", async () => {
    const line = await startGreen();
    const post = async (path: string, fields: object): Promise<void> => {
      const data = JSON.stringify({ ...fields, reason: "a test" });
      const done = await line.run(["api", "POST", path, "--data", data, "--yes", "--reason", "a test"]);
      expect(done).toMatchObject({ code: 0 });
    };
    await post("/v1/admin/parts/shard-3/reconcile", { dry_run: false, declare_lost: true });
    await post("/v1/admin/operations", { id: "01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42", kind: "restore" });
    const { green, reasons } = await statusOf(line, { now: () => Date.now() + 2 * DAY_MS });
    expect(green).toBe(false);
    expect(reasons).toEqual(
      expect.arrayContaining([
        { problem: "The reconciliation of shard-3 has run for 2d.", next: "leasehold operations" },
        { problem: "The restore of a backup has run for 2d.", next: "leasehold operations" },
      ]),
    );
  });

  test("stale leases, with their cell and age", async () => {
    const line = await startGreen();
    await line.client("1").leases.begin({ creates: [create("ada")] });
    await line.client("1").leases.begin({ creates: [create("grace")] });
    await line.coordinator.advance(3_600_000);
    await line.coordinator.cron();
    const { reasons, cells, next_steps: steps } = await statusOf(line, { now: () => Date.now() + 3_600_000 });
    expect(reasons).toEqual([
      {
        problem: "Cell 1 has 2 stale leases; the oldest was granted 1h ago.",
        next: "leasehold leases ls --stale --cell 1",
      },
    ]);
    expect(cells[0]).toMatchObject({ cell: "1", outstanding_leases: 2, stale_leases: 2 });
    expect(steps).toEqual(["leasehold leases ls --stale --cell 1"]);
  });

  test("a cron that never ran, or is late", async () => {
    const line = await startCommandLine();
    expect((await statusOf(line)).reasons[0]?.problem).toContain("The cron has not finished a run yet.");
    await line.coordinator.cron();
    await line.coordinator.advance(600_000);
    const { reasons } = await statusOf(line, { now: () => Date.now() + 600_000 });
    expect(reasons[0]?.problem).toMatch(/^The cron last finished (10m|9m 59s)/);
  });

  test("no cells", async () => {
    const line = await startCommandLine({ cells: [] });
    await line.coordinator.cron();
    expect((await statusOf(line)).reasons).toMatchObject([
      { problem: expect.stringContaining("No cell is") },
    ]);
  });

  test.each([
    [10, 9, "Cell 1 has 9 outstanding leases, near the limit of 10 (outstanding_leases)."],
    [
      1,
      1,
      "Cell 1 has 1 outstanding lease, which is the limit (outstanding_leases), so its begins are refused.",
    ],
  ])("with a limit of %i, %i leases", async (limit, count, text) => {
    const line = await startGreen({ LEASEHOLD_OUTSTANDING_LEASES: String(limit) });
    for (let n = 0; n < count; n += 1) await line.client("1").leases.begin({ creates: [create(`name${n}`)] });
    expect((await statusOf(line)).reasons).toEqual([{ problem: text, next: "leasehold cells show 1" }]);
  });

  test("a limit that was lowered, so that a cell is over it", async () => {
    const line = await startGreen();
    for (const name of ["ada", "grace"]) await line.client("1").leases.begin({ creates: [create(name)] });
    const limits = (await line.client().limits()).map((limit) =>
      limit.name === "outstanding_leases" ? { ...limit, value: 1 } : limit,
    );
    spoil(line, "/v1/limits", () => Response.json({ limits }));
    expect((await statusOf(line)).reasons).toEqual([
      {
        problem:
          "Cell 1 has 2 outstanding leases, more than the limit of 1 (outstanding_leases), so its begins " +
          "are refused.",
        next: "leasehold cells show 1",
      },
    ]);
  });

  test("a cell that has reported and is silent, and drift that a verification found", async () => {
    const line = await startGreen();
    await line.client("1").cells.reportStatus({ sdk: { name: "my-cell", version: "1" } });
    await line.coordinator.advance(16 * 60_000);
    await line.client("2").cells.reportStatus({
      sdk: { name: "my-cell", version: "1" },
      verification: { status: "done", counts: { missing: 3, duplicates: 1, other_cell: 3, recent: 9 } },
    });
    await line.coordinator.cron();
    const { reasons, cells } = await statusOf(line, { now: () => Date.now() + 16 * 60_000 });
    expect(reasons).toEqual([
      {
        problem: expect.stringMatching(/^Cell 1 is silent: it last reported 16m(?: \d+s)? ago\.$/),
        next: "leasehold verify report --cell 1",
      },
      {
        problem: "The last verification of cell 2 found drift: 3 missing, 1 duplicates.",
        next: "leasehold verify report --cell 2",
      },
    ]);
    expect(cells[1]).toMatchObject({ drift: { missing: 3, different: 0, duplicates: 1 } });
  });

  test("a cell that is silent, and has no valid key any more", async () => {
    const line = await startGreen();
    const { id } = await line.client().keys.mint({ role: "cell", cell_id: "1" });
    await line.client("1").cells.reportStatus({ sdk: { name: "my-cell", version: "1" } });
    await line.coordinator.advance(16 * 60_000);
    await line.coordinator.cron();
    const options = { now: () => Date.now() + 16 * 60_000 };
    expect((await statusOf(line, options)).cells[0]).toMatchObject({ has_valid_key: true });
    await line.client().keys.revoke(id);
    const { reasons, cells } = await statusOf(line, options);
    expect(reasons).toEqual([
      {
        problem: expect.stringMatching(
          /^Cell 1 is silent: it last reported 16m(?: \d+s)? ago\. No key that is listed for it is valid\.$/,
        ),
        next: "leasehold keys mint --role cell --cell 1",
      },
    ]);
    expect(cells).toMatchObject([{ has_valid_key: false }, { has_valid_key: null }]);
  });

  test("cells with the same address", async () => {
    const line = await startGreen();
    await line.client().cells.change("1", { address: "https://one.example" });
    await line.client().cells.change("2", { address: "https://ONE.example/" });
    expect((await statusOf(line)).reasons).toEqual([
      {
        problem: "Cells 1, 2 have the same address, so routers can't tell them apart.",
        next: "leasehold cells set 2 --address URL --reason TEXT",
      },
    ]);
  });

  test("a reconciliation that was aborted", async () => {
    const line = await startGreen();
    await line.client("1").cells.reportStatus({
      sdk: { name: "my-cell", version: "1" },
      reconciliation: { outcome: "aborted" },
    });
    expect((await statusOf(line)).reasons).toEqual([
      {
        problem: "The last reconciliation of cell 1 was aborted, so its leases may stay open.",
        next: "leasehold verify report --cell 1",
      },
    ]);
  });

  test("a cell that the cron could not copy, and why", async () => {
    const line = await startGreen();
    const copies = [{ cell_id: "1", error: "it did not answer", last_pulled_at: null }];
    spoil(line, "/v1/admin/copies/failed", () => Response.json({ copies, next_page_token: "" }));
    expect((await statusOf(line)).reasons).toEqual([
      {
        problem: "The cron could not copy the leases of cell 1: it did not answer.",
        next: "leasehold parts show ledger-1",
      },
    ]);
  });

  test("many cells that the cron could not copy: 20 of them, and how many more", async () => {
    const line = await startGreen();
    const copies = Array.from({ length: 1_001 }, (_, n) => ({
      cell_id: String(n + 1),
      error: "it did not answer",
      last_pulled_at: null,
    }));
    const pages = [copies.slice(0, 900), copies.slice(900)];
    spoil(line, "/v1/admin/copies/failed", () => {
      const page = pages.shift() ?? [];
      return Response.json({ copies: page, next_page_token: pages.length === 0 ? "" : "next" });
    });
    const { code, out, err } = await line.run(["status"]);
    expect(code).toBe(1);
    const problems = out.split("\n").filter((each) => each.startsWith("- "));
    expect(problems).toHaveLength(21);
    expect(problems[0]).toBe("- The cron could not copy the leases of cell 1: it did not answer.");
    expect(problems.at(-1)).toBe("- The cron could not copy the leases of 980 more cells.");
    expect(err).toContain("There are more cells, stale leases or failed copies than were read");
    expect(err).toContain("Next: leasehold api GET /v1/admin/copies/failed\n");
  });

  test("the last key of a cell that expires soon, but no key that has a successor", async () => {
    const line = await startGreen();
    const keys = line.client().keys;
    const key = { role: "cell", cell_id: "1", expires_in_s: 3_600 } as const;
    const { id } = await keys.mint(key);
    const { reasons } = await statusOf(line);
    expect(reasons).toEqual([
      {
        problem: expect.stringMatching(/^The last key of cell 1 expires in (59m|1h)/),
        next: `leasehold keys rotate ${id} --reason TEXT`,
      },
    ]);
    await keys.mint({ ...key, expires_in_s: 30 * 86_400 });
    expect((await statusOf(line)).green).toBe(true);
  });

  test("an authority of client certificates that expires soon, or has expired", async () => {
    const line = await startGreen();
    const at = (ms: number): string => new Date(Date.now() + ms).toISOString();
    spoil(line, "/v1/admin/identities", () =>
      Response.json({
        version: 1,
        issuers: [],
        authorities: [],
        authority_expiries: [
          { name: "later", expires_at: at(30 * DAY_MS) },
          { name: "soon", expires_at: at(2.5 * DAY_MS) },
          { name: "old", expires_at: at(-DAY_MS) },
        ],
      }),
    );
    const next = "leasehold identities apply --help";
    expect((await statusOf(line)).reasons).toEqual([
      { problem: expect.stringMatching(/^The certificate of the authority soon expires in 2d/), next },
      { problem: expect.stringMatching(/^The certificate of the authority old has expired/), next },
    ]);
  });

  test("parts that do not answer, each with a command", async () => {
    const line = await startGreen();
    spoil(line, "/readyz", () => problem({ detail: "2 parts", failed: ["shard 3", "ledger of cell 2"] }));
    expect((await statusOf(line)).reasons).toEqual([
      {
        problem: "This part does not answer, or has lost history: shard 3.",
        next: "leasehold parts show shard-3",
      },
      {
        problem: "This part does not answer, or has lost history: ledger of cell 2.",
        next: "leasehold parts show ledger-2",
      },
    ]);
  });

  test("a ledger that fails in a deployment that is ready", async () => {
    const line = await startGreen();
    const failed = ["ledger of cell 2"];
    spoil(line, "/readyz", () => Response.json({ status: "ok", failed, d1: "down", last_cron_run: null }));
    expect((await statusOf(line)).reasons).toMatchObject([
      { next: "leasehold parts show ledger-2" },
      { problem: expect.stringMatching(/^D1 does not answer/) },
    ]);
  });

  test("migrations that D1 lacks, with the command that applies them", async () => {
    const line = await startGreen();
    const missing = ["0001_later.sql", "0002_last.sql"];
    const ready = { status: "ok", failed: [], d1: "outdated", missing_migrations: missing };
    const run = { finished_at: new Date().toISOString(), cells_failed: 0 };
    spoil(line, "/readyz", () => Response.json({ ...ready, last_cron_run: run }));
    expect((await statusOf(line)).reasons).toEqual([
      {
        problem: "D1 lacks migrations: 0001_later.sql, 0002_last.sql.",
        next: "npx wrangler d1 migrations apply leasehold --remote",
      },
    ]);
  });

  test("a listing that can't be read does not hide the rest", async () => {
    const line = await startGreen();
    spoil(line, "/v1/leases/stale", () => problem({ code: "UNAVAILABLE", detail: "D1 is down" }));
    const { reasons, cells } = await statusOf(line);
    expect(reasons).toMatchObject([
      { problem: expect.stringContaining("The list of stale leases can't be read") },
    ]);
    expect(cells).toHaveLength(2);
  });

  test("a deployment that does not answer: 1, too", async () => {
    const line = await startGreen();
    await line.coordinator.close();
    const { code, out } = await line.run(["status"]);
    expect(code).toBe(1);
    expect(out).toContain(`The version can't be read: ${line.coordinator.url} does not answer`);
  });
});

test("a key of a cell may not see it: 5", async () => {
  const line = await startGreen();
  const { code } = await line.run(["status"], { env: { LEASEHOLD_KEY: line.coordinator.keys.cell("1") } });
  expect(code).toBe(5);
});

test("--watch looks again until Ctrl-C, and ends with 130", async () => {
  const line = await startGreen();
  const interrupt = new AbortController();
  const waits: number[] = [];
  const wait = async (ms: number): Promise<void> => {
    waits.push(ms);
    if (waits.length === 3) interrupt.abort(new Error("the terminal sent an interrupt"));
  };
  const { code, out, err } = await line.run(["status", "--watch", "--interval", "7s", "--jsonl"], {
    signal: interrupt.signal,
    wait,
    isTerminal: true,
  });
  expect({ code, err }).toEqual({ code: 130, err: "leasehold: interrupted\n" });
  expect(waits).toEqual([7_000, 7_000, 7_000]);
  const lines = out.trimEnd().split("\n");
  expect(lines.map((each) => (JSON.parse(each) as Status).green)).toEqual([true, true, true]);
  expect((await line.run(["status", "--watch", "--json"])).code).toBe(2);
});
