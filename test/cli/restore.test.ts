/** `leasehold restore`. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { claim, create, startCommandLine, type CommandLine, type Ran } from "./command-line.ts";

const REASON = ["--reason", "a test"];

/** A backup of two cells, one of them frozen, with claims, an open lease and a revoked key. */
async function backedUp(shards = 2): Promise<{ line: CommandLine; path: string; revoked: string }> {
  const line = await startCommandLine({ shards });
  const reason = "a test";
  // Its epochs are above a million, as those of a deployment that is some days old.
  for (let shard = 0; shard < shards; shard += 1) {
    await line.client().parts.reconcile(`shard-${shard}`, { dry_run: false, declare_lost: true, reason });
    await line.client().parts.finish(`shard-${shard}`, { reason });
  }
  await claim(line, "1", ...Array.from({ length: 700 }, (_, at) => `ada-${at}`));
  await claim(line, "2", "Grace", "linus");
  const { leases } = line.client("1");
  const { uuid: scoped } = await leases.begin({ creates: [{ ...create("scoped"), scope: "9970" }] });
  await leases.commit(scoped);
  const client = line.client();
  await client.cells.freeze("2");
  await line.client("1").leases.begin({ creates: [create("open")] });
  const { id: revoked } = await client.keys.mint({ role: "cell", cell_id: "1" });
  await client.keys.revoke(revoked);
  const path = join(line.home, "backup.jsonl");
  expect((await line.run(["backup", path])).code).toBe(0);
  return { line, path, revoked };
}

const restoreInto = (line: CommandLine, path: string, signal?: AbortSignal): Promise<Ran> =>
  line.run(["restore", path, ...REASON, "--yes"], signal === undefined ? {} : { signal });

async function epochOf(line: CommandLine, value: string): Promise<number> {
  const found = await line.client().records.find({ type: "USERNAMES", value });
  return found !== undefined && "epoch" in found.record ? found.record.epoch : 0;
}

/** The same claims, cells and revocations, and protected shards. */
async function expectRestored(line: CommandLine, path: string, revoked: string): Promise<void> {
  const verified = await line.run(["backup", "verify", path, "--online"]);
  expect(verified.err).not.toContain("other claims");
  expect(verified.code).toBe(0);
  const client = line.client();
  expect((await client.cells.list().all()).map(({ cell_id: id, state }) => [id, state])).toEqual([
    ["1", "ACTIVE"],
    ["2", "FROZEN"],
  ]);
  const found = await client.records.find({ type: "USERNAMES", value: "scoped" });
  expect(found?.record).toMatchObject({ scope: "9970" });
  const key = (await client.keys.list().all()).find(({ id }) => id === revoked);
  expect(key).toMatchObject({ cell_id: "1", revoked_at: expect.any(String) });
  expect((await client.parts.get("shard-0")).state).toBe("reconciling");
}

test("[E1][H6] an empty deployment gets all claims, with larger epochs, and protects the names", async () => {
  const { line: old, path, revoked } = await backedUp();
  const line = await startCommandLine({ cells: [], shards: 3 });
  const { code, out, err } = await restoreInto(line, path);
  expect({ code, err }).toEqual({
    code: 0,
    err: expect.stringContaining("was open. Its names are not claimed"),
  });
  expect(out).toMatch(/^claims restored +703$/m);
  expect(err).toContain("leasehold keys mint --role cell --cell 1");
  await expectRestored(line, path, revoked);
  for (const name of ["ada-0", "ada-699", "grace"])
    expect(await epochOf(line, name)).toBeGreaterThan(await epochOf(old, name));
  // A name that is newer than the backup is safe: only a verification may take it.
  const key = await line.client().keys.mint({ role: "cell", cell_id: "1" });
  expect(key.key).not.toBe("");
  const { leases } = line.client().forCell("1");
  await expect(leases.begin({ creates: [create("newer")] }, { deadlineMs: 60_000 })).rejects.toMatchObject({
    code: "UNAVAILABLE",
    status: 503,
  });
  await leases.begin({ creates: [create("newer")], verification: true });
});

test("[B2] a restore that was killed before any request goes on, and claims nothing twice", async () => {
  const { path, revoked } = await backedUp();
  const whole = await startCommandLine({ cells: [], shards: 2 });
  await restoreInto(whole, path);
  const requests = whole.sent.length;
  const line = await startCommandLine({ cells: [], shards: 2 });
  let runs = 0;
  for (let most = 4; ; most += 7) {
    runs += 1;
    const stop = new AbortController();
    const real = line.coordinator;
    let sent = 0;
    const fetch: typeof real.fetch = async (url, init) => {
      sent += 1;
      if (sent > most) stop.abort();
      return real.fetch(url, init);
    };
    Object.assign(line, { coordinator: { ...real, fetch } });
    const { code, err } = await restoreInto(line, path, stop.signal);
    Object.assign(line, { coordinator: real });
    if (code === 0) break;
    expect({ code, err }).toMatchObject({ code: 130 });
    expect(most).toBeLessThan(requests * 2);
  }
  expect(runs).toBeGreaterThan(3);
  await expectRestored(line, path, revoked);
});

test("[H6] a restore that was killed while it protected the names goes on; then cells do", async () => {
  const { path } = await backedUp();
  const line = await startCommandLine({ cells: [], shards: 2 });
  const reason = "a test";
  const real = line.coordinator;
  // The answer to the first declaration is lost.
  const stop = new AbortController();
  const fetch: typeof real.fetch = async (url, init) => {
    const answer = await real.fetch(url, init);
    if (String(url instanceof Request ? url.url : url).endsWith("/reconcile")) stop.abort();
    return answer;
  };
  Object.assign(line, { coordinator: { ...real, fetch } });
  expect((await restoreInto(line, path, stop.signal)).code).toBe(130);
  Object.assign(line, { coordinator: real });
  expect((await restoreInto(line, path)).code).toBe(0);
  const client = line.client();
  await client.parts.reconcile("ledger-1", { dry_run: false, declare_lost: true, reason });
  for (const shard of ["shard-0", "shard-1"]) await client.parts.finish(shard, { reason });
  await expect(client.forCell("1").leases.begin({ creates: [create("ada-5")] })).rejects.toMatchObject({
    name: "AlreadyClaimedError",
  });
  await client.forCell("1").leases.begin({ creates: [create("newer")] });
  expect(await epochOf(line, "ada-5")).toBeGreaterThan(1_000_000);
});

test("the deployment of the backup is refused, also while its shards are reconciled", async () => {
  const { line, path } = await backedUp();
  for (const shard of [0, 1])
    await line
      .client()
      .parts.reconcile(`shard-${shard}`, { dry_run: false, declare_lost: true, reason: "x" });
  line.sent.length = 0;
  const source = await restoreInto(line, path);
  expect(source).toMatchObject({ code: 3, err: expect.stringContaining("the backup is of this deployment") });
  expect(line.changes).toEqual([]);
});

test("a deployment that would refuse the batches is refused before anything is changed", async () => {
  const { path } = await backedUp();
  const small = await startCommandLine({ cells: [], variables: { LEASEHOLD_BATCH_OPS: "10" } });
  const refused = await restoreInto(small, path);
  expect(refused).toMatchObject({ code: 3, err: expect.stringContaining("LEASEHOLD_BATCH_OPS of at least") });
  expect(small.changes).toEqual([]);
});

test("a deployment that is in use, or has other cells, is refused, and nothing is changed", async () => {
  const { line, path } = await backedUp();
  line.sent.length = 0;
  const inUse = await restoreInto(line, path);
  expect(inUse).toMatchObject({ code: 3, err: expect.stringContaining("the deployment is in use") });
  const other = await startCommandLine({ cells: ["1", "3"] });
  const foreign = await restoreInto(other, path);
  expect(foreign).toMatchObject({ code: 3, err: expect.stringContaining("has cell 3 (cell-3)") });
  expect([...line.changes, ...other.changes]).toEqual([]);
});

test("a cell that begins a lease before it is frozen ends the restore, which claims nothing", async () => {
  const { path } = await backedUp();
  const line = await startCommandLine({ cells: [], shards: 2 });
  const real = line.coordinator;
  const quiet = Object.assign(Object.create(line) as CommandLine, { coordinator: real });
  const fetch: typeof real.fetch = async (url, init) => {
    if (String(url instanceof Request ? url.url : url).endsWith("/freeze"))
      await quiet
        .client()
        .forCell("1")
        .leases.begin({ creates: [create("ada")] });
    return real.fetch(url, init);
  };
  Object.assign(line, { coordinator: { ...real, fetch } });
  expect(await restoreInto(line, path)).toMatchObject({
    code: 3,
    err: expect.stringContaining("a cell has begun a lease before it was frozen"),
  });
  expect(await quiet.client().records.find({ type: "USERNAMES", value: "ada-8" })).toBeUndefined();
});

test("a dry run, and a missing confirmation, change nothing", async () => {
  const { path } = await backedUp();
  const line = await startCommandLine({ cells: [] });
  const { code, out } = await line.run(["restore", path, "--dry-run"]);
  expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/^claims +703$/m) });
  expect((await line.run(["restore", path, ...REASON], { answers: ["yes"] })).code).toBe(2);
  expect((await line.run(["restore", path, "--yes"])).code).toBe(2);
  expect(line.changes).toEqual([]);
  expect((await line.run(["restore", path, ...REASON], { answers: ["restore"] })).code).toBe(0);
});

test("names that were taken before they are restored stay with their cells", async () => {
  const { path } = await backedUp();
  const line = await startCommandLine({ cells: [], shards: 2 });
  const real = line.coordinator;
  let isFirst = true;
  const fetch: typeof real.fetch = async (url, init) => {
    if (isFirst && String(url instanceof Request ? url.url : url).includes("/leases/")) {
      isFirst = false;
      for (const [cell, name] of [
        ["1", "ada-8"],
        ["2", "ada-7"],
      ] as const) {
        const { leases } = quiet.client().forCell(cell);
        const { uuid } = await leases.begin({ creates: [create(name)], verification: true });
        await leases.commit(uuid, { reason: "a test" });
      }
    }
    return real.fetch(url, init);
  };
  const quiet = Object.assign(Object.create(line) as CommandLine, { coordinator: real });
  Object.assign(line, { coordinator: { ...real, fetch } });
  const { code, out } = await restoreInto(line, path);
  expect(code).toBe(10);
  expect(out).toMatch(/^claims restored +701$/m);
  expect(out).toMatch(/^there before +1$/m);
  expect(out).toMatch(/^of other cells +1$/m);
  const found = await quiet.client().records.find({ type: "USERNAMES", value: "ada-7" });
  expect(found?.record.cell_id).toBe("2");
});

test("types and identities are those of the backup", async () => {
  const shape = { bucket_types: { HANDLES: { number: 1 } }, subject_types: { PERSON: { number: 1 } } };
  const line = await startCommandLine({ types: { ...shape, source_types: { PEOPLE: { number: 1 } } } });
  const issuer = {
    name: "ci",
    issuer: "https://ci.example",
    audience: "leasehold",
    jwks_url: "https://ci.example/jwks",
    algorithms: ["RS256" as const],
    rules: [{ claims: { sub: "job" }, role: "viewer" as const }],
  };
  const { version } = await line.client().identities.get();
  await line.client().identities.change({ version, issuers: [issuer], authorities: [], reason: "a test" });
  const path = join(line.home, "backup.jsonl");
  expect((await line.run(["backup", path])).code).toBe(0);
  const empty = await startCommandLine({ cells: [] });
  const { code, err } = await restoreInto(empty, path);
  expect({ code, err }).toMatchObject({ code: 0 });
  const [before, after] = [line.client(), empty.client()];
  expect((await after.types.get()).types).toEqual((await before.types.get()).types);
  expect((await after.identities.get()).issuers).toEqual((await before.identities.get()).issuers);
});

test("a deployment without cells has no backup", async () => {
  const line = await startCommandLine({ cells: [] });
  const { code, err } = await line.run(["backup", join(line.home, "backup.jsonl")]);
  expect({ code, err }).toEqual({ code: 3, err: expect.stringContaining("has no cells") });
});

test("a damaged file is not restored", async () => {
  const { path } = await backedUp();
  const line = await startCommandLine({ cells: [] });
  const bad = `${path}.bad`;
  writeFileSync(bad, readFileSync(path, "utf8").replace("ada-5", "ada-x"));
  expect((await restoreInto(line, bad)).code).toBe(1);
  expect(line.sent).toEqual([]);
});

const REVOKED_KEY = "0b0e8a52-5c0f-4b5e-9a35-2f0c8a1d7e11";

test("[X5] a cell that was removed is removed again, and its id is never used", async () => {
  const old = await startCommandLine({ cells: ["1", "2", "3"] });
  await claim(old, "1", "ada");
  await old.client().keys.revoke(REVOKED_KEY, { cell_id: "3", reason: "a test" });
  await old.client().cells.drain("3", { reason: "a test" });
  const file = join(old.home, "export.jsonl");
  const removed = await old.run(["cells", "remove", "3", "--export", file, ...REASON, "--yes"]);
  expect(removed.code).toBe(0);
  await old.client().cells.drain("2", { reason: "a test" });
  const path = join(old.home, "backup.jsonl");
  expect((await old.run(["backup", path])).code).toBe(0);

  const line = await startCommandLine({ cells: [] });
  for (let run = 1; run <= 2; run += 1) {
    const { code, err } = await restoreInto(line, path);
    expect({ code, err }).toMatchObject({ code: 0, err: expect.stringContaining("Cells 3 are removed") });
    const cells = await line.client().cells.list({ includeRemoved: true }).all();
    expect(cells.map(({ cell_id: id, state, removed_at: at }) => [id, state, at !== null])).toEqual([
      ["1", "ACTIVE", false],
      ["2", "DRAINING", false],
      ["3", "REMOVED", true],
    ]);
  }
  // It comes after the claims of the others, and is frozen at once, with its keys revoked.
  const paths = line.sent.filter(({ method }) => method !== "GET").map((each) => each.path);
  const added = paths.lastIndexOf("/v1/admin/cells");
  expect(added).toBeGreaterThan(paths.findIndex((each) => each.endsWith("/commit")));
  expect(paths.slice(added + 1, added + 4)).toEqual([
    "/v1/admin/cells/3/freeze",
    expect.stringContaining(REVOKED_KEY),
    "/v1/admin/cells/3/drain",
  ]);
  await expect(
    line.client().cells.add({ cell_id: "3", name: "new", address: "https://new.test" }),
  ).rejects.toMatchObject({ reason: "CELL_REMOVED" });
});

test("[H9] no cell begins anything before its state is restored", async () => {
  const { path } = await backedUp();
  const line = await startCommandLine({ cells: [], shards: 2 });
  const real = line.coordinator;
  const states: (string | null)[] = [];
  let isLooking = false;
  const fetch: typeof real.fetch = async (url, init) => {
    // Looks whenever a lease is committed.
    if (!isLooking && String(url instanceof Request ? url.url : url).endsWith("/commit")) {
      isLooking = true;
      states.push(...(await line.client().cells.list().all()).map(({ state }) => state));
      isLooking = false;
    }
    return real.fetch(url, init);
  };
  Object.assign(line, { coordinator: { ...real, fetch } });
  expect((await restoreInto(line, path)).code).toBe(0);
  expect(new Set(states)).toEqual(new Set(["FROZEN"]));
});

test("a deployment that is unavailable for a quarter of an hour ends the restore", async () => {
  const { path } = await backedUp();
  const line = await startCommandLine({ cells: [] });
  // A later time than a call may take, so the client doesn't repeat it.
  const down: typeof line.coordinator.fetch = async () =>
    new Response(null, { status: 503, headers: { "retry-after": "60" } });
  Object.assign(line, { coordinator: { ...line.coordinator, fetch: down } });
  const { code, err } = await restoreInto(line, path);
  expect(code).toBe(6);
  expect(err.match(/Trying again in/g)?.length).toBeLessThan(40);
});

test("a restore goes on after calls that got no answer", async () => {
  const { path, revoked } = await backedUp();
  const line = await startCommandLine({ cells: [], shards: 2 });
  const real = line.coordinator;
  let isDown = false;
  let waits = 0;
  const fetch: typeof real.fetch = async (url, init) => {
    isDown ||= waits === 0 && String(url instanceof Request ? url.url : url).endsWith("/commit");
    if (isDown) throw new TypeError("fetch failed");
    return real.fetch(url, init);
  };
  Object.assign(line, { coordinator: { ...real, fetch } });
  const { code, err } = await line.run(["restore", path, ...REASON, "--yes"], {
    // The restore waits once the client has given up.
    wait: async () => {
      waits += 1;
      isDown = false;
    },
  });
  expect(code).toBe(0);
  expect([waits, err]).toEqual([1, expect.stringMatching(/^Not now: .*Trying again in 1s\.$/m)]);
  Object.assign(line, { coordinator: real });
  await expectRestored(line, path, revoked);
});
