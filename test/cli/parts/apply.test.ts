/** `leasehold parts apply`: plans that are out of date, were edited, or are refused in part. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { claim, create, startCommandLine, type CommandLine } from "../command-line.ts";

const because = ["--yes", "--reason", "an older file"];

/** A shard that is being reconciled. Cell 1 has `ada` and `bob`, cell 2 has `eve`. */
async function reconciling(): Promise<CommandLine> {
  const line = await startCommandLine({ shards: 1 });
  await claim(line, "1", "ada", "bob");
  await claim(line, "2", "eve");
  await line.coordinator.advance(1_000);
  const declared = await line.run(["parts", "reconcile", "shard-0", "--declare-lost", ...because]);
  expect(declared.code).toBe(0);
  return line;
}

type Line = Record<string, unknown>;

const bucket = (value: string) => ({ type: "USERNAMES" as const, value });

/** The claim of a name, as a plan has it. */
async function claimOf(line: CommandLine, cell: string, value: string): Promise<Line> {
  const records = await line.client(cell).records.list({ sourceType: "RAILS_TABLE_USERS" }).all();
  const { epoch, subject, source } = records.find((record) => record.bucket.value === value) ?? {};
  return { cell_id: cell, epoch, subject, source };
}

const planned = (cell: string, id = "77"): Line => ({
  cell_id: cell,
  epoch: 5,
  subject: { type: "USER", id },
  source: { type: "RAILS_TABLE_USERS", id },
});

const lineOf = (value: string, proposal: string, now: Line | null, known: Line | null): Line => ({
  name: bucket(value),
  do: proposal,
  proposal,
  certain: true,
  because: "",
  now,
  known,
});

async function write(line: CommandLine, lines: readonly Line[], more: Line = {}): Promise<string> {
  const { id = "plan" } = more as { id?: string };
  const path = join(line.home, `${id}.jsonl`);
  const { part } = (await line.json(["parts", "show", "shard-0"])) as { part: { loss: Line } };
  const { checkpoint } = await line.client().changes.page();
  const header = {
    leasehold_plan: 1,
    id,
    part: "shard-0",
    created_at: "2026-11-28T12:00:00.000Z",
    loss_noticed_at: part.loss["noticed_at"],
    through: 9,
    newest_seen: 9,
    read_through: Number(/^0:(\d+)/.exec(checkpoint)?.[1] ?? 0),
    ...more,
  };
  writeFileSync(path, [header, ...lines].map((each) => `${JSON.stringify(each)}\n`).join(""));
  return path;
}

const apply = (line: CommandLine, path: string) => line.json(["parts", "apply", "shard-0", path, ...because]);

async function owners(line: CommandLine): Promise<string[]> {
  const lists = ["1", "2"].map((cell) =>
    line.client(cell).records.list({ sourceType: "RAILS_TABLE_USERS" }).all(),
  );
  const records = (await Promise.all(lists)).flat();
  return records.map((record) => `${record.bucket.value} ${record.cell_id}`).toSorted();
}

async function verify(line: CommandLine, cell: string, batch: object): Promise<void> {
  const { leases } = line.client(cell);
  const { uuid } = await leases.begin({ ...batch, verification: true });
  await leases.commit(uuid);
  await line.coordinator.advance(1_000);
}

describe("[J3] what has changed since the plan was made", () => {
  test("is left: a name that was released is not claimed again", async () => {
    const line = await reconciling();
    const path = await write(line, [lineOf("zoe", "claim", null, planned("2"))]);
    await verify(line, "2", { creates: [create("zoe")] });
    await verify(line, "2", { destroys: [{ bucket: bucket("zoe") }] });
    const changed = { name: "USERNAMES zoe", because: "it has changed since the plan was made" };
    expect(await apply(line, path)).toMatchObject({ claimed: 0, left: [changed] });
    expect(await owners(line)).toEqual(["ada 1", "bob 1", "eve 2"]);
  });

  test("counts as done only if the claim is for the planned row", async () => {
    const line = await reconciling();
    const op = create("zoe");
    const { subject, source } = op;
    const right = { ...planned("2"), subject, source };
    const path = await write(line, [
      lineOf("zoe", "claim", null, right),
      lineOf("mia", "claim", null, planned("2")),
    ]);
    await verify(line, "2", { creates: [op, create("mia")] });
    expect(await apply(line, path)).toMatchObject({ present: 1, left: [{ name: "USERNAMES mia" }] });
  });

  test("is not what the plan itself has done", async () => {
    const line = await reconciling();
    const path = await write(line, [
      lineOf("ada", "move", await claimOf(line, "1", "ada"), planned("2")),
      lineOf("bob", "replace", await claimOf(line, "1", "bob"), planned("1", "78")),
      lineOf("eve", "release", await claimOf(line, "2", "eve"), null),
      lineOf("zoe", "claim", null, planned("2", "79")),
    ]);
    const done = { claimed: 2, released: 2, replaced: 1, left: [] };
    expect(await apply(line, path)).toMatchObject(done);
    // With fewer lines, the leases are others than before.
    const [header = "", , ...rest] = readFileSync(path, "utf8").trimEnd().split("\n");
    writeFileSync(path, `${[header, ...rest].join("\n")}\n`);
    await line.coordinator.advance(1_000);
    expect(await apply(line, path)).toMatchObject({ left: [] });
    expect(await owners(line)).toEqual(["ada 2", "bob 1", "zoe 2"]);
  });
});

test("[J2] [J3] a plan works although the log no longer has all changes since the loss", async () => {
  const line = await startCommandLine({ shards: 1 });
  await claim(line, "1", "ada");
  await line.coordinator.advance(1_000);
  const backup = join(line.home, "backup.jsonl");
  expect((await line.run(["backup", backup])).code).toBe(0);
  await verify(line, "1", { destroys: [{ bucket: bucket("ada") }] });
  await line.run(["parts", "reconcile", "shard-0", "--declare-lost", ...because]);
  await verify(line, "2", { creates: [create("eve")] });
  const { coordinator } = line;
  const { checkpoint } = await line.client().changes.page();
  const newest = Number(/^0:(\d+)/.exec(checkpoint)?.[1]);
  const pruned = { type: "about:blank", status: 410, code: "OUT_OF_RANGE", reason: "CHANGES_PRUNED" };
  const fetch: typeof coordinator.fetch = async (url, init) => {
    const { searchParams } = new URL(url instanceof Request ? url.url : url);
    const after = /^0:(\d+)/.exec(searchParams.get("after") ?? "")?.[1];
    return after !== undefined && Number(after) < newest
      ? Response.json(pruned, { status: 410, headers: { "content-type": "application/problem+json" } })
      : coordinator.fetch(url, init);
  };
  Object.assign(line, { coordinator: { ...coordinator, fetch } });
  const path = join(line.home, "plan.jsonl");
  expect(await line.run(["parts", "plan", "shard-0", path, "--backup", backup])).toMatchObject({ code: 0 });
  const [header = "{}"] = readFileSync(path, "utf8").split("\n");
  const { read_through: readThrough } = JSON.parse(header) as { read_through: number };
  expect(readThrough).toBeGreaterThanOrEqual(newest);
  expect(await apply(line, path)).toMatchObject({ left: [] });
});

describe("[J3] two plans for one loss", () => {
  test("a later plan claims a name again that the cell has released since the earlier one", async () => {
    const line = await reconciling();
    const lines = [lineOf("zoe", "claim", null, planned("2"))];
    expect(await apply(line, await write(line, lines, { id: "first" }))).toMatchObject({ claimed: 1 });
    await line.coordinator.advance(1_000);
    await verify(line, "2", { destroys: [{ bucket: bucket("zoe") }] });
    expect(await apply(line, await write(line, lines, { id: "second" }))).toMatchObject({ claimed: 1 });
    expect(await owners(line)).toContain("zoe 2");
  });

  test("an earlier plan leaves what a later one has done", async () => {
    const line = await reconciling();
    const ada = await claimOf(line, "1", "ada");
    const first = await write(line, [lineOf("ada", "move", ada, planned("2"))], { id: "first" });
    const second = await write(line, [lineOf("ada", "release", ada, null)], { id: "second" });
    expect(await apply(line, second)).toMatchObject({ released: 1 });
    await line.coordinator.advance(1_000);
    const left = [{ name: "USERNAMES ada", because: "it has changed since the plan was made" }];
    expect(await apply(line, first)).toMatchObject({ claimed: 0, released: 0, left });
    expect(await owners(line)).toEqual(["bob 1", "eve 2"]);
  });
});

describe("[J3] a cell that refuses", () => {
  test("stops only its own names", async () => {
    const line = await reconciling();
    const wrong = { ...planned("1"), source: { type: "NO_SUCH_TABLE", id: "1" } };
    const path = await write(line, [
      lineOf("zoe", "claim", null, wrong),
      lineOf("mia", "claim", null, planned("2")),
    ]);
    expect(await apply(line, path)).toMatchObject({ claimed: 1, left: [{ name: "USERNAMES zoe" }] });
    expect(await owners(line)).toContain("mia 2");
  });

  test("a name does not move to a cell that is no longer there", async () => {
    const line = await reconciling();
    const path = await write(line, [lineOf("ada", "move", await claimOf(line, "1", "ada"), planned("9"))]);
    const left = [{ name: "USERNAMES ada", because: "cell 9 is removed, or is being removed" }];
    expect(await apply(line, path)).toMatchObject({ released: 0, left });
    expect(await owners(line)).toContain("ada 1");
  });

  test("a name is claimed only if it could be released", async () => {
    const line = await reconciling();
    const old = { ...(await claimOf(line, "1", "ada")), epoch: 1_000_000_000 };
    const path = await write(line, [lineOf("ada", "move", old, planned("2"))]);
    expect(await apply(line, path)).toMatchObject({ claimed: 0, left: [{ cell_id: "1" }] });
    expect(await owners(line)).toContain("ada 1");
  });
});

test("[J3] a line that was edited is refused before anything is changed, and says which field", async () => {
  const line = await reconciling();
  const now = await claimOf(line, "1", "ada");
  const faults: [Line, string][] = [
    [lineOf("ada", "release", { ...now, epoch: "7" }, null), "now.epoch must be a whole number"],
    [lineOf("ada", "release", { ...now, epoch: 2 ** 60 }, null), "now.epoch must be a whole number"],
    [lineOf("ada", "release", { ...now, cell_id: "one" }, null), "now.cell_id must be the id of a cell"],
    [lineOf("zoe", "claim", null, { ...planned("2"), source: 7 }), "known.source must have a type and an id"],
    [lineOf("zoe", "claim", null, { ...planned("2"), value: "mia" }), "known.value must be a spelling"],
    [lineOf("ada", "move", now, planned("1")), 'do of ada must be "move"'],
  ];
  for (const [wrong, fault] of faults) {
    const path = await write(line, [lineOf("mia", "claim", null, planned("2")), wrong]);
    const ran = await line.run(["parts", "apply", "shard-0", path, ...because]);
    expect(ran, fault).toMatchObject({ code: 2, err: expect.stringContaining("line 3") as string });
    expect(ran.err).toContain(fault);
  }
  for (const [field, value] of Object.entries({ read_through: "now", loss_noticed_at: 7, id: "" })) {
    const path = await write(line, [], { [field]: value });
    const ran = await line.run(["parts", "apply", "shard-0", path, ...because]);
    expect(ran).toMatchObject({ code: 2, err: expect.stringContaining(`line 1: ${field}`) as string });
  }
  expect(await owners(line)).toEqual(["ada 1", "bob 1", "eve 2"]);
});

test("[J3] names of another shard are refused", async () => {
  const line = await startCommandLine({ shards: 2 });
  await claim(line, "1", "ada", "bob", "eve", "mia");
  await line.run(["parts", "reconcile", "shard-0", "--declare-lost", ...because]);
  const lines = ["ada", "bob", "eve", "mia", "zoe"].map((name) => lineOf(name, "claim", null, planned("2")));
  const path = await write(line, lines);
  const ran = await line.run(["parts", "apply", "shard-0", path, ...because]);
  expect(ran).toMatchObject({ code: 2, err: expect.stringContaining("name is of shard-1") as string });
});
