/** `leasehold doctor`: each check finds its fault, and the bundle gives nothing away. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { create, spoil, startCommandLine, type CommandLine, type RunOptions } from "./command-line.ts";

interface Found {
  name: string;
  state: string;
  detail: string;
  next?: string;
}

async function checksOf(line: CommandLine, options?: RunOptions): Promise<Map<string, Found>> {
  const { checks } = (await line.json(["doctor"], options)) as unknown as { checks: Found[] };
  return new Map(checks.map((check) => [check.name, check]));
}

async function startHealthy(): Promise<CommandLine> {
  const line = await startCommandLine();
  await line.coordinator.cron();
  return line;
}

test("nothing fails in a healthy deployment: 0", async () => {
  const line = await startHealthy();
  const { code, out, err } = await line.run(["doctor"]);
  expect(code).toBe(0);
  expect(out).not.toContain("FAIL");
  expect(err).toContain("No check failed.\n");
  expect(line.changes.filter(({ method }) => method !== "HEAD")).toEqual([]);
});

test("a probe of a cell does not get the key", async () => {
  const line = await startHealthy();
  await line.run(["doctor"]);
  const probes = line.sent.filter(({ method }) => method === "HEAD");
  expect(probes.map(({ authorization }) => authorization)).toEqual([undefined, undefined]);
  line.sent.length = 0;
  await line.run(["doctor", "--no-probe"]);
  expect(line.sent.filter(({ method }) => method === "HEAD")).toEqual([]);
});

describe("finds", () => {
  test.each([
    ["an expired key", "key", "it expired", () => Date.now() + 401 * 86_400_000],
    ["a key that expires soon", "key", "expires in 9d", () => Date.now() + 390 * 86_400_000],
  ])("%s", async (_, name, detail, now) => {
    const line = await startHealthy();
    expect((await checksOf(line, { now })).get(name)?.detail).toContain(detail);
  });

  test("a key of another deployment, and text that is no key", async () => {
    const line = await startHealthy();
    const other = await startCommandLine();
    const env = { LEASEHOLD_KEY: other.coordinator.keys.operator };
    expect((await checksOf(line, { env })).get("key")).toMatchObject({ state: "fail" });
    const text = await checksOf(line, { env: { LEASEHOLD_KEY: "hunter2" } });
    expect(text.get("key")?.detail).toBe("LEASEHOLD_KEY is not a key of Leasehold");
  });

  test("a clock that is wrong", async () => {
    const line = await startHealthy();
    const headers = { date: new Date(Date.now() - 120_000).toUTCString() };
    spoil(line, "/healthz", () => Response.json({ version: "1", placement: "p" }, { headers }));
    expect((await checksOf(line)).get("clock")).toMatchObject({
      state: "fail",
      detail: expect.stringMatching(/differs by (2m|1m 59s)/),
    });
  });

  test("a URL that does not answer, or belongs to something else", async () => {
    const line = await startHealthy();
    spoil(line, "/healthz", () => new Response("hello"));
    expect([...(await checksOf(line)).keys()]).toEqual(["tls", "url"]);
    await line.coordinator.close();
    expect((await line.run(["doctor"])).code).toBe(1);
  });

  test("parts and D1 that do not answer", async () => {
    const line = await startHealthy();
    spoil(line, "/readyz", () => Response.json({ failed: ["shard 2"] }, { status: 503 }));
    expect((await checksOf(line)).get("parts")).toMatchObject({ state: "fail", next: "leasehold status" });
    const failed = ["ledger of cell 2"];
    spoil(line, "/readyz", () => Response.json({ status: "ok", failed, d1: "up", last_cron_run: null }));
    expect((await checksOf(line)).get("parts")).toMatchObject({ state: "warn", next: "leasehold status" });
    spoil(line, "/readyz", () => Response.json({ status: "ok", d1: "down", last_cron_run: null }));
    expect((await checksOf(line)).get("d1")).toMatchObject({ state: "fail" });
  });

  test("a cron that is late, with copies that are old", async () => {
    const line = await startHealthy();
    await line.coordinator.advance(600_000);
    const checks = await checksOf(line, { now: () => Date.now() + 600_000 });
    expect(checks.get("cron")).toMatchObject({ state: "fail" });
    expect(checks.get("copies in d1")).toMatchObject({ state: "fail" });
  });

  test("stale leases", async () => {
    const line = await startHealthy();
    await line.client("2").leases.begin({ creates: [create("ada")] });
    await line.coordinator.advance(3_600_000);
    await line.coordinator.cron();
    expect((await checksOf(line)).get("stale leases")).toMatchObject({
      state: "fail",
      detail: "1 stale lease in 1 cell",
      next: "leasehold leases ls --stale",
    });
  });

  test("the shard with the most names on hold", async () => {
    const line = await startHealthy();
    await line.client("2").leases.begin({ creates: [create("ada")] });
    expect((await checksOf(line)).get("holds")).toMatchObject({
      state: "ok",
      detail: expect.stringMatching(
        /^shard \d+ holds 1 name, 1 for one cell; the limit is 100000, and half of it for a cell$/,
      ),
    });
  });

  test("addresses that routers refuse, frozen cells, and cells that do not answer", async () => {
    const line = await startHealthy();
    await line.client().cells.change("2", { address: "http://cell-2.test/app" });
    await line.client().cells.freeze("1");
    const real = line.coordinator.fetch;
    Object.assign(line.coordinator, {
      fetch: (url: string, init: RequestInit) =>
        init.method === "HEAD" ? Promise.reject(new TypeError("fetch failed")) : real(url, init),
    });
    const checks = await checksOf(line);
    expect(checks.get("addresses")).toMatchObject({
      state: "fail",
      detail: "cell 2: no bare https origin, so routers refuse it",
      next: "leasehold cells set 2 --address URL --reason TEXT",
    });
    expect(checks.get("cells")?.detail).toBe("cell 1 is frozen");
    expect(checks.get("cells' answers")?.detail).toBe("no answer from here: cells 1, 2");
  });
});

describe("finds in what cells report and in their addresses", () => {
  test("frozen and draining cells, both in one line", async () => {
    const line = await startHealthy();
    await line.client().cells.freeze("1");
    await line.client().cells.drain("2");
    expect((await checksOf(line)).get("cells")).toMatchObject({
      state: "warn",
      detail: "cell 1 is frozen; cell 2 is draining",
      next: "leasehold cells show 1",
    });
  });

  test("silent cells, and drift", async () => {
    const line = await startHealthy();
    const sdk = { name: "test", version: "1" };
    await line.client("1").cells.reportStatus({ sdk });
    expect((await checksOf(line)).get("reports")?.state).toBe("ok");
    await line.coordinator.advance(3_600_000);
    await line
      .client("2")
      .cells.reportStatus({ sdk, verification: { status: "done", counts: { missing: 3 } } });
    expect((await checksOf(line)).get("reports")).toMatchObject({
      state: "warn",
      detail: "cell 1 is silent; cell 2 found drift in its last verification",
      next: "leasehold verify status",
    });
  });

  test("cells with the same address", async () => {
    const line = await startHealthy();
    for (const cell of ["1", "2"]) await line.client().cells.change(cell, { address: "https://one.example" });
    expect((await checksOf(line)).get("addresses")).toMatchObject({
      state: "warn",
      detail: "cells 1, 2 have the same one",
      next: "leasehold cells set 2 --address URL --reason TEXT",
    });
  });
});

describe("says it in a person's words", () => {
  test("cells that do not answer are in the order of their ids", async () => {
    const line = await startHealthy();
    const real = line.coordinator.fetch;
    const second = Promise.withResolvers<Response>();
    Object.assign(line.coordinator, {
      fetch: (url: string, init: RequestInit) => {
        if (init.method !== "HEAD") return real(url, init);
        if (url.includes("cell-1")) return second.promise;
        second.reject(new TypeError("fetch failed"));
        return Promise.reject(new TypeError("fetch failed"));
      },
    });
    expect((await checksOf(line)).get("cells' answers")).toMatchObject({
      detail: "no answer from here: cells 1, 2",
      next: "leasehold cells show 1",
    });
  });

  test.each([
    [1, "1 cell failed"],
    [2, "2 cells failed"],
  ])("cells that the cron could not copy: %i", async (failed, text) => {
    const line = await startHealthy();
    const run = { finished_at: new Date().toISOString(), cells_failed: failed };
    spoil(line, "/readyz", () => Response.json({ status: "ok", d1: "up", last_cron_run: run }));
    expect((await checksOf(line)).get("cron")?.detail).toContain(text);
    expect((await line.run(["status"])).out).toContain(text);
  });
});

test("the bundle has no names, keys or addresses", async () => {
  const line = await startHealthy();
  await line.client("1").leases.begin({ creates: [create("secretname")] });
  await line.client().cells.change("1", { name: "secretcell", address: "https://secret-address.test" });
  const file = join(line.home, "bundle.json");
  expect((await line.run(["doctor", "-o", file])).code).toBe(0);
  const bundle = readFileSync(file, "utf8");
  expect(JSON.parse(bundle)).toMatchObject({
    checks: expect.arrayContaining([{ name: "tls", state: "ok", facts: {} }]),
  });
  for (const secret of ["secret", "lhk_", "leasehold.test", "http"]) expect(bundle).not.toContain(secret);
});
