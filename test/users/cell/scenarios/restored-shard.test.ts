/**
 * An older state of one shard: the steps of docs/operating/runbook.md give every name back to its cell. All
 * cells verify, and an operator claims the names that no row has.
 */
import { eq } from "drizzle-orm";
import { randomBytes } from "node:crypto";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import type { VerificationReport } from "../../../../src/users/cell/index.ts";
import { AlreadyClaimedError, createClient, UnavailableError } from "../../../../src/users/client/index.ts";
import { shardOf } from "../../../../src/coordinator/kernel/placement.ts";
import { gitlabTypes } from "../../../../src/common/types/gitlab.ts";
import { DATABASE } from "../../../../src/hosts/standalone/database-file.ts";
import { attach, copyPart, dropPart } from "../../../../src/hosts/standalone/parts.ts";
import { CommandLine } from "../../../cli/command-line.ts";
import { serveFiles, type Served } from "../../../hosts/standalone/served.ts";
import { TestedCell, type TestedCoordinator } from "./drizzle.ts";
import { postgresDialect as dialect } from "./postgres-dialect.ts";
import { pglite } from "./starts.ts";

const { organizations } = dialect.tables;
const NAMES = "ORGANIZATION_PATH";
const SHARDS = 2;
const SHARD = 1;
const reason = "an older state";

const { number: typeNumber } = gitlabTypes.bucket_types[NAMES];
const [kept = "", released = "", moved = "", before = "", after = "", late = "", open = "", reserved = ""] =
  Array.from({ length: 50 }, (_, n) => `name-${n}`).filter(
    (name) => shardOf(typeNumber, name, SHARDS) === SHARD,
  );

/** A claim of a table that the cells don't verify. */
const withoutRow = (value: string) => [
  {
    bucket: { type: NAMES, value } as const,
    subject: { type: "ORGANIZATION", id: "7" } as const,
    source: { type: "RAILS_TABLE_GPG_KEYS", id: "7" } as const,
  },
];

const insert = ({ cell }: TestedCell, path: string): Promise<unknown> =>
  cell.transaction((tx) => tx.insert(organizations, { path }));
const remove = ({ cell }: TestedCell, path: string): Promise<unknown> =>
  cell.transaction((tx) => tx.delete(organizations, eq(organizations.path, path)));

/** For writers that stand still: no lease is about to be saved. */
async function verify({ cell }: TestedCell): Promise<VerificationReport["counts"]> {
  await cell.reconcile({ full: true });
  const recent = { recentMs: 0, digests: false };
  const { counts } = await cell.verify({ apply: true, startOver: true, maxShare: 1, ...recent });
  return counts;
}

test("[H6] [H9] verified and finished, a shard that went back has every name again", async () => {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-restored-shard-"));
  const secret = randomBytes(32).toString("hex");
  let served: Served | undefined;
  onTestFinished(async () => {
    await served?.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const start = (): Promise<Served> =>
    serveFiles(["1", "2"], { LEASEHOLD_SHARDS: String(SHARDS) }, undefined, { folder, secret });
  const asTested = ({ url, keys }: Served): TestedCoordinator => ({ url, fetch, keys, stop: async () => {} });
  const operatorOf = ({ url, keys }: Pick<Served, "url" | "keys">) =>
    createClient({ url, key: keys.operator });
  const [file, copy] = [join(folder, DATABASE), join(folder, "copy")];
  const restore = (): void => {
    const database = new DatabaseSync(file);
    attach(database, copy, "backup", false);
    dropPart(database, `shard-${SHARD}`);
    copyPart(database, "backup", `shard-${SHARD}`);
    database.close();
  };

  served = await start();
  for (const id of ["1", "2"])
    await operatorOf(served).cells.add({
      cell_id: id,
      name: `cell-${id}`,
      address: `https://cell-${id}.test`,
    });
  const databases = [await pglite(), await pglite()] as const;
  for (const each of databases) onTestFinished(() => each.stop());
  let one = await new TestedCell("1", dialect, asTested(served), databases[0]).prepare();
  let two = await new TestedCell("2", dialect, asTested(served), databases[1]).prepare();
  const restart = async (exchange: () => void): Promise<Served> => {
    await Promise.all([one.cell.flush(), two.cell.flush()]);
    await served?.close();
    exchange();
    served = await start();
    [one, two] = [one.sibling(asTested(served)), two.sibling(asTested(served))];
    return served;
  };
  for (const path of [kept, released, moved, before]) await insert(one, path);
  // The copy shall have claims, not holds.
  const { cells } = operatorOf(served);
  const unapplied = async () => (await cells.list().all()).map((each) => each.unapplied_decisions);
  await expect.poll(unapplied).toEqual([0, 0]);

  const { leases } = operatorOf(await restart(() => cpSync(file, copy))).forCell("2");
  await remove(one, released);
  await remove(one, moved);
  await insert(two, moved);
  await one.cell.transaction((tx) =>
    tx.update(organizations, eq(organizations.path, before), { path: after }),
  );
  await insert(one, late);
  const { uuid } = await leases.begin({ creates: withoutRow(reserved) });
  await leases.commit(uuid, { reason });
  const lost = await leases.begin({ creates: withoutRow(open) });

  const { url, keys } = await restart(restore);
  const line = new CommandLine({ url, keys, fetch } as never);
  const parts = (action: string): ReturnType<CommandLine["run"]> =>
    line.run(["parts", action, `shard-${SHARD}`, "--yes", "--reason", reason]);
  await expect(insert(one, "name-too-early")).resolves.toBeDefined();
  await expect(insert(one, late)).rejects.toThrow(UnavailableError);
  expect(await parts("finish")).toMatchObject({ code: 3 });
  expect(await parts("reconcile")).toMatchObject({ code: 0, out: expect.stringContaining(lost.uuid) });
  await expect(insert(two, late)).rejects.toThrow(UnavailableError);

  expect(await verify(one)).toMatchObject({ created: 2, destroyed: 3, otherCell: 0 });
  expect(await verify(two)).toMatchObject({ created: 1, destroyed: 0, otherCell: 0 });
  for (const each of [one, two])
    expect(await verify(each)).toMatchObject({ created: 0, replaced: 0, destroyed: 0 });
  const operator = operatorOf({ url, keys });
  const ofTwo = operator.forCell("2").leases;
  await ofTwo.rollback(lost.uuid, { reason });
  await operator.cells.freeze("2", { reason });
  const again = await ofTwo.begin({ verification: true, creates: withoutRow(reserved) });
  await ofTwo.commit(again.uuid, { reason });
  await operator.cells.unfreeze("2", { reason });
  expect(await parts("finish")).toMatchObject({ code: 0 });

  expect(await one.owners(NAMES, kept, released, moved, before, after, late, open, reserved)).toEqual([
    `${kept}: ACTIVE of 1`,
    `${released}: free`,
    `${moved}: ACTIVE of 2`,
    `${before}: free`,
    `${after}: ACTIVE of 1`,
    `${late}: ACTIVE of 1`,
    `${open}: free`,
    `${reserved}: ACTIVE of 2`,
  ]);
  for (const path of [late, reserved]) await expect(insert(two, path)).rejects.toThrow(AlreadyClaimedError);
  await insert(two, released);
});
