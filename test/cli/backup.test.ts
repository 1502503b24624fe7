/** `leasehold backup`. */
import { existsSync, readFileSync, renameSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Bucket } from "../../src/users/client/index.ts";
import { readBackup } from "../../src/cli/backup/read-backup.ts";
import { claim, create, startCommandLine, type CommandLine } from "./command-line.ts";

const bucket = (value: string): Bucket => ({ type: "USERNAMES", value });

const ROUTE = { type: "ROUTES", value: "Group/Näme" } as const;

async function oneLease(
  line: CommandLine,
  cell: string,
  batch: Parameters<ReturnType<CommandLine["client"]>["leases"]["begin"]>[0],
): Promise<void> {
  const { leases } = line.client(cell);
  await leases.commit((await leases.begin(batch)).uuid);
}

const rename = (line: CommandLine, cell: string, from: string, to: string): Promise<void> =>
  oneLease(line, cell, { destroys: [{ bucket: bucket(from) }], creates: [create(to)] });

/** Two cells with claims of two source types, and an open lease. */
async function deployment(names = 6): Promise<CommandLine> {
  const line = await startCommandLine({ shards: 2 });
  await claim(line, "1", ...Array.from({ length: names }, (_, at) => `ada-${at}`));
  await claim(line, "2", "Grace", "linus");
  const route = {
    subject: { type: "NAMESPACE", id: "7" },
    source: { type: "RAILS_TABLE_ROUTES", id: "x" },
  } as const;
  await oneLease(line, "2", { creates: [{ bucket: ROUTE, ...route }] });
  await line.client("2").leases.begin({ creates: [create("open")] });
  return line;
}

const fileOf = (line: CommandLine): string => join(line.home, "backup.jsonl");

/** The names of a backup, by cell. */
async function namesIn(path: string): Promise<string[]> {
  const backup = await readBackup(path);
  await backup.check();
  const names: string[] = [];
  for await (const each of backup.claims()) names.push(`${each.cell} ${each.bucket.value}`);
  return names.toSorted();
}

const linesOf = (path: string): string[] => readFileSync(path, "utf8").split("\n").slice(0, -1);

test("a backup has all claims, is private, and is the same in the deployment", async () => {
  const line = await deployment();
  const path = fileOf(line);
  const { code, out, err } = await line.run(["backup", path]);
  expect(err).toContain("ranges of claims are the same in the deployment.");
  expect(code).toBe(0);
  expect(out).toMatch(/^claims +9$/m);
  expect(out).toMatch(/^open leases +1$/m);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(existsSync(`${path}.partial`)).toBe(false);
  const ada = Array.from({ length: 6 }, (_, at) => `1 ada-${at}`);
  expect(await namesIn(path)).toEqual([...ada, "2 Grace", "2 Group/Näme", "2 linus"]);
});

/** Calls a function before the answer to each request whose path has this part. */
function before(line: CommandLine, part: string, work: () => Promise<void>): void {
  const real = line.coordinator;
  const fetch: typeof real.fetch = async (url, init) => {
    if (String(url instanceof Request ? url.url : url).includes(part)) await work();
    return real.fetch(url, init);
  };
  Object.assign(line, { coordinator: { ...real, fetch } });
}

test("[F6] what changes during a backup is in it as it is at the last checkpoint", async () => {
  const line = await deployment();
  const path = fileOf(line);
  const real = line.coordinator;
  const quiet = Object.assign(Object.create(line) as CommandLine, { coordinator: real });
  let step = 0;
  before(line, "/records/export", async () => {
    step += 1;
    // Claims are released, taken, moved to other rows and other cells, before and after their export.
    if (step === 1) await rename(quiet, "1", "ada-0", "ada-new");
    if (step === 2) await rename(quiet, "1", "ada-1", "ada-0");
    if (step === 3)
      await oneLease(quiet, "1", {
        replaces: [{ ...create("ADA-2"), source: { type: "RAILS_TABLE_USERS", id: "zz" } }],
      });
    if (step === 4) await oneLease(quiet, "1", { destroys: [{ bucket: bucket("ada-3") }] });
    if (step === 5) await claim(quiet, "2", "ada-3", "ada-1");
  });
  const { code, err } = await line.run(["backup", path]);
  expect(err).toContain("are the same in the deployment.");
  expect({ code, isEnough: step > 5 }).toEqual({ code: 0, isEnough: true });
  const first = ["1 ADA-2", "1 ada-0", "1 ada-4", "1 ada-5", "1 ada-new"];
  const second = ["2 Grace", "2 Group/Näme", "2 ada-1", "2 ada-3", "2 linus"];
  expect(await namesIn(path)).toEqual([...first, ...second]);
});

test("[F6] a backup that was killed behind any line, or within one, continues", async () => {
  const line = await deployment();
  const path = fileOf(line);
  expect((await line.run(["backup", path, "--no-verify"])).code).toBe(0);
  const complete = linesOf(path);
  const names = await namesIn(path);
  const partial = `${path}.partial`;
  for (let lines = 0; lines <= complete.length; lines += 1) {
    const half = (complete[lines] ?? "").slice(0, 9);
    writeFileSync(
      partial,
      `${complete
        .slice(0, lines)
        .map((each) => `${each}\n`)
        .join("")}${half}`,
    );
    const { code, err } = await line.run(["backup", path, "--resume", "--force", "--no-verify"]);
    expect({ lines, code, err }).toMatchObject({ lines, code: 0 });
    expect({ lines, names: await namesIn(path) }).toEqual({ lines, names });
  }
});

test("[F6] it continues within a section, with what changed since", async () => {
  const line = await deployment(900);
  const path = fileOf(line);
  expect((await line.run(["backup", path, "--no-verify"])).code).toBe(0);
  const complete = linesOf(path);
  await rename(line, "1", "ada-3", "ada-new");
  await rename(line, "1", "ada-880", "ada-3");
  for (const lines of [2, 150, 201, 202, 203, 500, 800, 910]) {
    writeFileSync(
      `${path}.partial`,
      complete
        .slice(0, lines)
        .map((each) => `${each}\n`)
        .join(""),
    );
    const { code, err } = await line.run(["backup", path, "--resume", "--force"]);
    expect(err).toContain("are the same in the deployment.");
    expect({ lines, code }).toEqual({ lines, code: 0 });
    const names = await namesIn(path);
    expect({ lines, count: names.length, isUnique: new Set(names).size === names.length }).toEqual({
      lines,
      count: 903,
      isUnique: true,
    });
  }
});

test("Ctrl-C leaves a file that can be continued, and an outage is waited for", async () => {
  const line = await deployment();
  const path = fileOf(line);
  const stop = new AbortController();
  let asked = 0;
  before(line, "/records/export", async () => {
    asked += 1;
    if (asked === 4) stop.abort();
  });
  const { code, err } = await line.run(["backup", path], { signal: stop.signal });
  expect(code).toBe(130);
  expect(err).toContain(`leasehold backup create ${path} --resume`);
  expect((await line.run(["backup", path])).code).toBe(2);
  let lost = 0;
  before(line, "/v1/changes", async () => {
    lost += 1;
    if (lost <= 5) throw new TypeError("fetch failed");
  });
  const resumed = await line.run(["backup", path, "--resume", "--no-verify"]);
  expect(resumed.err).toContain("Trying again in");
  expect(resumed.code).toBe(0);
  expect(await namesIn(path)).toHaveLength(9);
});

test("it does not continue when changes are gone, or with another deployment", async () => {
  const line = await deployment();
  const path = fileOf(line);
  await line.run(["backup", path, "--no-verify"]);
  renameSync(path, `${path}.partial`);
  const other = await deployment();
  const mixed = await other.run(["backup", path, "--resume"]);
  expect(mixed).toMatchObject({ code: 3, err: expect.stringContaining("this is another deployment") });
  await line.client().parts.reconcile("shard-0", { dry_run: false, declare_lost: true, reason: "a test" });
  const pruned = await line.run(["backup", path, "--resume"]);
  expect(pruned.code).toBe(3);
  expect(pruned.err).toContain("begin a new one");
  expect(pruned.err).toContain(`leasehold backup create ${path} --force`);
});

describe("a file", () => {
  test("is not overwritten without --force", async () => {
    const line = await deployment();
    const path = fileOf(line);
    writeFileSync(path, "mine");
    expect((await line.run(["backup", path])).code).toBe(2);
    expect(readFileSync(path, "utf8")).toBe("mine");
    expect((await line.run(["backup", path, "--force"])).code).toBe(0);
  });

  test("with one wrong byte, or cut at any line, does not verify", async () => {
    const line = await deployment();
    const path = fileOf(line);
    await line.run(["backup", path, "--no-verify"]);
    expect((await line.run(["backup", "verify", path])).code).toBe(0);
    const good = readFileSync(path);
    for (let at = 0; at < good.length; at += 97) {
      const bad = Buffer.from(good);
      bad[at] = (bad[at] ?? 0) ^ 1;
      writeFileSync(path, bad);
      expect({ at, code: (await line.run(["backup", "verify", path])).code }).toEqual({ at, code: 1 });
    }
    writeFileSync(path, good);
    truncateSync(path, good.length - 1);
    expect(await line.run(["backup", "verify", path])).toMatchObject({ code: 1 });
    const lines = linesOf(path);
    for (let count = 0; count < lines.length; count += 1) {
      writeFileSync(
        path,
        lines
          .slice(0, count)
          .map((each) => `${each}\n`)
          .join(""),
      );
      expect({ count, code: (await line.run(["backup", "verify", path])).code }).toEqual({ count, code: 1 });
    }
  });

  test("of another version is refused, and one that is missing", async () => {
    const line = await deployment();
    const path = fileOf(line);
    await line.run(["backup", path, "--no-verify"]);
    writeFileSync(path, readFileSync(path, "utf8").replace('"leasehold_backup":1', '"leasehold_backup":2'));
    const { code, err } = await line.run(["backup", "verify", path]);
    expect(code).toBe(1);
    expect(err).toContain("version 2 of the format, and this program reads version 1");
    expect((await line.run(["backup", "verify", `${path}.missing`])).code).toBe(2);
  });
});

test("verify --online catches up with later changes, and tells what differs", async () => {
  const line = await deployment();
  const path = fileOf(line);
  await line.run(["backup", path, "--no-verify"]);
  await rename(line, "1", "ada-0", "ada-new");
  const later = await line.run(["backup", "verify", path, "--online"]);
  // A range that a lease is on can't be compared, so nobody knows whether it is right.
  expect(later).toMatchObject({ code: 1, err: expect.stringContaining("1 range changed meanwhile") });
  expect(later.err).toContain("1 range could not be compared: open leases touch them.");
  const other = await startCommandLine();
  await claim(other, "1", "ada-0");
  const different = await other.run(["backup", "verify", path, "--online", "--json"]);
  expect(different.code).toBe(10);
});
