/** An older file of a shard under a running coordinator: noticed, planned, brought forward. */
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { randomBytes } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createClient, isLeaseholdError, type Client } from "../../src/client/index.ts";
import { shardOf } from "../../src/core/placement.ts";
import { gitlabTypes } from "../../src/core/types/gitlab.ts";
import { CommandLine } from "../cli/command-line.ts";
import { seeded } from "../support/seeded.ts";
import { serveFiles, type Served } from "./served.ts";

const SHARDS = 2;
const SHARD = 1;
const CELLS = ["1", "2", "3"];
const LEASES = 60;
const because = ["--yes", "--reason", "an older file"];

const ROUTES = gitlabTypes.bucket_types.ROUTES.number;

/** Names of the shard that goes back. The last one is not for random leases. */
const names = Array.from({ length: 80 }, (_, n) => `name-${n}`).filter(
  (name) => shardOf(ROUTES, name, SHARDS) === SHARD,
);

/** A coordinator that can be stopped, so that its files can be exchanged. */
class Deployment {
  readonly folder = mkdtempSync(join(tmpdir(), "leasehold-forward-"));
  readonly #secret = randomBytes(32).toString("hex");
  #served: Served | undefined;

  get served(): Served {
    if (this.#served === undefined) throw new Error("the coordinator is stopped");
    return this.#served;
  }

  get line(): CommandLine {
    const { url, keys } = this.served;
    return new CommandLine({ url, keys, fetch } as never);
  }

  async start(): Promise<void> {
    const kept = { folder: this.folder, secret: this.#secret };
    this.#served = await serveFiles(CELLS, { LEASEHOLD_SHARDS: String(SHARDS) }, undefined, kept);
  }

  async stop(): Promise<void> {
    await this.#served?.close();
    this.#served = undefined;
  }

  client(cell?: string): Client {
    const { url, keys } = this.served;
    const key = cell === undefined ? keys.operator : keys.cell(cell);
    return createClient({ url, key, cell, retries: 0, breaker: false });
  }

  async #exchange(copy: (file: string, kept: string) => void): Promise<void> {
    await this.stop();
    for (const ending of ["", "-wal", "-shm"])
      copy(join(this.folder, `shard-${SHARD}.sqlite${ending}`), join(this.folder, `kept${ending}`));
    await this.start();
  }

  keepShard = (): Promise<void> => this.#exchange((file, kept) => existsSync(file) && cpSync(file, kept));

  restoreShard = (): Promise<void> =>
    this.#exchange((file, kept) => {
      rmSync(file, { force: true });
      if (existsSync(kept)) cpSync(kept, file);
    });
}

async function startDeployment(): Promise<Deployment> {
  const deployment = new Deployment();
  await deployment.start();
  onTestFinished(async () => {
    await deployment.stop();
    rmSync(deployment.folder, { recursive: true, force: true });
  });
  for (const id of CELLS)
    await deployment
      .client()
      .cells.add({ cell_id: id, name: `cell-${id}`, address: `https://cell-${id}.test` });
  return deployment;
}

const claimOf = (value: string) =>
  ({
    bucket: { type: "ROUTES", value },
    subject: { type: "NAMESPACE", id: "7" },
    source: { type: "RAILS_TABLE_ROUTES", id: "1" },
  }) as const;

/** Begins and decides leases of both cells about names of the shard. */
async function work(deployment: Deployment, random: () => number): Promise<void> {
  for (let lease = 0; lease < LEASES; lease += 1) {
    const value = names[Math.floor(random() * (names.length - 1))] ?? "";
    const source = { type: "RAILS_TABLE_ROUTES", id: String(Math.ceil(random() * 1_000)) } as const;
    const claim = { ...claimOf(value), source };
    const { bucket } = claim;
    const { leases } = deployment.client(random() < 0.5 ? "1" : "2");
    const batch = [{ creates: [claim] }, { destroys: [{ bucket }] }, { replaces: [claim] }];
    try {
      const { uuid } = await leases.begin(batch[Math.floor(random() * 3)] ?? {});
      await (random() < 0.9 ? leases.commit(uuid) : leases.rollback(uuid));
    } catch (error) {
      // The name is in another state than the batch expects.
      if (!isLeaseholdError(error) || error.conflicts.length === 0) throw error;
    }
  }
}

/** Who owns each name, with the row that it came from. */
async function owners(deployment: Deployment): Promise<string[]> {
  const records = await Promise.all(
    CELLS.map((cell) => deployment.client(cell).records.list({ sourceType: "RAILS_TABLE_ROUTES" }).all()),
  );
  return records
    .flat()
    .map(({ bucket, cell_id: cell, source, status }) => `${bucket.value} ${cell} ${source.id} ${status}`)
    .toSorted();
}

/** Runs `watch --changes --jsonl` until nothing is left to tell. Returns where it ended. */
async function record(deployment: Deployment, path: string, from?: string): Promise<string> {
  const stop = new AbortController();
  const wait = async (): Promise<void> => stop.abort();
  const args = ["watch", "--changes", "--jsonl", ...(from === undefined ? [] : ["--from", from])];
  const { out } = await deployment.line.run(args, { signal: stop.signal, wait });
  appendFileSync(path, out);
  const last = out.split("\n").findLast((text) => text.includes('"checkpoint"')) ?? "";
  return (JSON.parse(last) as { checkpoint: string }).checkpoint;
}

/** A cell that has seen nothing of the shard claims a name before the loss is noticed. Returns its record. */
async function goOn(deployment: Deployment): Promise<string> {
  const value = names.at(-1) ?? "";
  const { leases } = deployment.client("3");
  const { uuid } = await leases.begin({ creates: [claimOf(value)] });
  await leases.commit(uuid);
  return `${value} 3 ${claimOf(value).source.id} ACTIVE`;
}

async function noticeLoss(deployment: Deployment): Promise<void> {
  const creates = [claimOf(names[0] ?? "")];
  await expect(deployment.client("1").leases.begin({ creates })).rejects.toThrow(
    `Shard ${SHARD} has lost a part of its history`,
  );
  for (const cell of CELLS) await deployment.client().cells.freeze(cell, { reason: "an older file" });
}

/** Begins of both cells on each name that has an owner. None may be granted. */
async function expectNoSecondOwner(deployment: Deployment, owned: readonly string[]): Promise<void> {
  for (const cell of CELLS) await deployment.client().cells.unfreeze(cell, { reason: "it is done" });
  for (const each of owned) {
    const [value = "", owner = ""] = each.split(" ");
    const other = owner === "1" ? "2" : "1";
    await expect(
      deployment.client(other).leases.begin({ creates: [claimOf(value)] }),
      each,
    ).rejects.toMatchObject({
      code: "ALREADY_EXISTS",
    });
  }
}

test("[J1] [J3] [H9] with the recorded changes, every name gets its owner back", async () => {
  const deployment = await startDeployment();
  const random = seeded(11);
  const changes = join(deployment.folder, "changes.jsonl");
  let place = await record(deployment, changes);
  await work(deployment, random);
  await deployment.keepShard();
  await work(deployment, random);
  place = await record(deployment, changes, place);
  await work(deployment, random);
  await record(deployment, changes, place);
  const before = await owners(deployment);
  const free = names.find((name) => !before.some((each) => each.startsWith(`${name} `))) ?? "";
  const { uuid: open } = await deployment.client("1").leases.begin({ creates: [claimOf(free)] });
  await record(deployment, changes, place);

  await deployment.restoreShard();
  const since = await goOn(deployment);
  await noticeLoss(deployment);
  const expected = [...before, since].toSorted();
  const { line } = deployment;
  const shard = `shard-${SHARD}`;
  const plan = join(deployment.folder, "plan.jsonl");
  const planned = ["parts", "plan", shard, plan, "--changes", changes];
  const early = await line.run(planned);
  expect(early).toMatchObject({ code: 3, err: expect.stringContaining("has not accepted its loss yet") });
  expect((await line.run(["parts", "reconcile", shard, ...because])).code).toBe(0);
  expect(await line.json(planned)).toMatchObject({ is_complete: true, undecided: 0, lost_holds: 1 });
  const lost = readFileSync(plan, "utf8").trimEnd().split("\n").at(-1) ?? "";
  expect(JSON.parse(lost)).toMatchObject({ name: { value: free }, do: "leave" });
  expect(lost).toContain(`the open lease ${open} of cell 1 creates it`);
  expect(await owners(deployment)).not.toEqual(expected);
  const dry = await line.run(["parts", "apply", shard, plan, "--dry-run"]);
  expect(dry).toMatchObject({ code: 0, err: expect.stringContaining("Nothing was changed.") });
  const applied = await line.json(["parts", "apply", shard, plan, ...because]);
  expect(applied).toMatchObject({ left: [], undecided: 0 });
  expect(await owners(deployment)).toEqual(expected);
  // Repeated, it finds everything done.
  const again = await line.json(["parts", "apply", shard, plan, ...because]);
  expect(again).toMatchObject({ left: [], undecided: 0 });
  expect(await owners(deployment)).toEqual(expected);
  expect((await line.run(["parts", "finish", shard, ...because])).code).toBe(0);
  await expectNoSecondOwner(deployment, expected);
});

test("[J2] [J3] without the last changes, nothing is done that a person has not decided", async () => {
  const deployment = await startDeployment();
  const random = seeded(12);
  const file = join(deployment.folder, "backup.jsonl");
  await work(deployment, random);
  await deployment.keepShard();
  await work(deployment, random);
  const known = await owners(deployment);
  expect((await deployment.line.run(["backup", file])).code).toBe(0);
  await work(deployment, random);

  await deployment.restoreShard();
  await noticeLoss(deployment);
  const { line } = deployment;
  const shard = `shard-${SHARD}`;
  const plan = join(deployment.folder, "plan.jsonl");
  await line.run(["parts", "reconcile", shard, ...because]);
  const left = await owners(deployment);
  const planned = await line.json(["parts", "plan", shard, plan, "--backup", file]);
  expect(planned).toMatchObject({ is_complete: false });
  expect(planned["undecided"]).toBe(planned["names"]);
  expect(planned["undecided"]).toBeGreaterThan(0);
  const undone = await line.run(["parts", "apply", shard, plan, ...because]);
  expect(undone).toMatchObject({ code: 10, err: expect.stringContaining("nobody has decided") });
  expect(await owners(deployment)).toEqual(left);

  // A person decides for the backup, except for one name.
  const [header = "", ...lines] = readFileSync(plan, "utf8").trimEnd().split("\n");
  const decided = lines.map((text, index) => {
    const each = JSON.parse(text) as { proposal: string };
    return JSON.stringify({ ...each, do: index === 0 ? "leave" : each.proposal });
  });
  writeFileSync(plan, `${[header, ...decided].join("\n")}\n`);
  const done = await line.json(["parts", "apply", shard, plan, ...because]);
  expect(done).toMatchObject({ left: [], undecided: 0 });
  const spared = (JSON.parse(lines[0] ?? "") as { name: { value: string } }).name.value;
  const others = (all: readonly string[]) => all.filter((each) => !each.startsWith(`${spared} `));
  expect(others(await owners(deployment))).toEqual(others(known));
  const wrong = JSON.stringify({ ...(JSON.parse(lines[0] ?? "") as object), do: "give it to cell 9" });
  writeFileSync(plan, `${header}\n${wrong}\n`);
  expect(await line.run(["parts", "apply", shard, plan, ...because])).toMatchObject({
    code: 2,
    err: expect.stringContaining(`line 2: do of ${spared} must be`),
  });
});
