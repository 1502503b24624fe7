/** Tests of the operations that the directory knows to run (A5 to A7). */
import { expect, test } from "vitest";
import {
  blockedBy,
  operationKinds,
  type Operation,
  type OperationKind,
  type OperationSet,
} from "../../../../src/coordinator/capabilities/operations/operations.ts";
import { MAX_SHARDS } from "../../../../src/coordinator/kernel/placement.ts";
import type { Result } from "../../../../src/coordinator/kernel/refusal.ts";
import { no } from "../../../support/calls.ts";
import { Cluster } from "../../../support/cluster.ts";
import { saveDirectory } from "../../../support/go-back.ts";
import { operator } from "../../../support/ops.ts";
import { ruleOf, textOf } from "../../../support/rules.ts";

const valueOf = <T>(reply: Result<T>): T => {
  if (!reply.ok) throw new Error(reply.refusal.detail);
  return reply.value;
};

class Client {
  readonly cluster: Cluster;

  constructor(cluster: Cluster) {
    this.cluster = cluster;
  }

  begin = (kind: OperationKind, id = kind === "reconciliation" ? "shard-1" : "a", keyId = operator.keyId) =>
    this.#run(
      this.#directory.beginOperation({
        ...this.#envelope,
        operator: { ...operator, keyId },
        operation: { id, kind, about: kind === "restore" ? "deployment" : id },
      }),
    );
  end = ({ id, position }: Pick<Operation, "id" | "position">) =>
    this.#run(this.#directory.endOperation({ ...this.#envelope, operation: { id, position } }));
  endRestore = (id: string) => this.#run(this.#directory.endRestore({ ...this.#envelope, id }));
  grow = () => this.#run(this.#directory.startGrowth({ ...this.#envelope, to: 6, growthCopiedAt: 0 }));
  list = async () => valueOf(await this.#run(this.#directory.operations(this.#envelope)));
  ids = async () => (await this.list()).operations.map(({ id }) => id);
  actions = async () =>
    valueOf(
      await this.#run(this.#directory.pullAudit({ ...this.#envelope, copied: null, limit: 100 })),
    ).entries.map(({ action, target }) => `${action} ${target}`);
  loseAndReconcile = (operations: OperationSet | null) =>
    this.#run(
      this.#directory.reconcile({
        ...this.#envelope,
        cells: [],
        keys: [],
        types: null,
        operations,
        isLast: true,
        dryRun: false,
        isPlacementConfirmed: true,
        declared: { incarnation: 99 * 16 ** 6 },
      }),
    );

  get #envelope() {
    return { ...this.cluster.envelope, operator };
  }

  get #directory() {
    return this.cluster.directory.object;
  }

  #run<T>(call: Promise<T>): Promise<T> {
    return this.cluster.clock.runUntil(call);
  }
}

const start = async (): Promise<Client> => new Client(await Cluster.start({ cells: ["1"] }));

const RUNNING = no("FAILED_PRECONDITION", { reason: "OPERATION_RUNNING" });

/** Starts an operation as its callers do. */
const startOf = (client: Client, kind: OperationKind, id?: string): Promise<Result<unknown>> =>
  kind === "growth" ? client.grow() : client.begin(kind, id);

test("[A5] the table beside the rule says what the code does", () => {
  const page = ruleOf.get("A5")?.page ?? "";
  const rows = [...textOf(page).matchAll(/^\| (\w+) +\| (\w+) +\| (refused|allowed) +\|/gm)];
  const pairs = rows.map(([, starts, runs, verdict]) => `${starts} ${runs} ${verdict}`);
  const expected = operationKinds.flatMap((starts) =>
    operationKinds.map(
      (runs) => `${starts} ${runs} ${blockedBy[starts].includes(runs) ? "refused" : "allowed"}`,
    ),
  );
  expect(pairs.toSorted()).toEqual(expected.toSorted());
});

const pairs = operationKinds.flatMap((runs) => operationKinds.map((starts) => ({ runs, starts })));

test.each(pairs)("[A5] while a $runs runs, a $starts starts only if the table allows it", async (pair) => {
  const client = await start();
  expect((await startOf(client, pair.runs)).ok).toBe(true);
  if (pair.runs === "growth" && pair.starts === "growth") return;
  const id = pair.starts === "reconciliation" ? "shard-2" : "b";
  const started = await startOf(client, pair.starts, id);
  if (blockedBy[pair.starts].includes(pair.runs)) {
    expect(started).toEqual(RUNNING);
    expect(started).toMatchObject({ refusal: { operation: { kind: pair.runs, startedBy: operator.keyId } } });
  } else expect(started.ok).toBe(true);
});

test("[A5] a repeated call finds its own row, whoever makes it", async () => {
  const client = await start();
  const first = valueOf(await client.begin("restore", "a", "first"));
  expect(await client.begin("restore", "a", "second")).toEqual({ ok: true, value: first });
  expect(await client.ids()).toEqual(["a"]);
  const shard = valueOf(await client.begin("reconciliation", "shard-1", "first"));
  const again = valueOf(await client.begin("reconciliation", "shard-1", "second"));
  expect(again).toEqual({ ...shard, startedBy: "second", position: again.position });
  expect(again.position).toBeGreaterThan(shard.position);
  expect(await client.actions()).toEqual(["start_restore a"]);
});

test("[A5] [A6] a restore that has the id of a growth is another operation", async () => {
  const client = await start();
  const { id } = valueOf(await client.grow());
  expect(await client.begin("restore", id)).toEqual(RUNNING);
  expect(await client.endRestore(id)).toEqual(RUNNING);
});

test("[A6] a row that was begun again outlives an earlier end", async () => {
  const client = await start();
  const first = valueOf(await client.begin("reconciliation"));
  const again = valueOf(await client.begin("reconciliation"));
  expect(valueOf(await client.end(first))).toBeNull();
  expect(await client.ids()).toEqual(["shard-1"]);
  expect(valueOf(await client.end(again))).toBeNull();
  expect(valueOf(await client.end(again))).toBeNull();
  expect(await client.ids()).toEqual([]);
});

test("[A6] an operator ends a restore, and nothing else", async () => {
  const client = await start();
  valueOf(await client.begin("restore"));
  valueOf(await client.begin("reconciliation"));
  expect(await client.endRestore("shard-1")).toEqual(RUNNING);
  expect(valueOf(await client.endRestore("a"))).toBeNull();
  expect(valueOf(await client.endRestore("a"))).toBeNull();
  expect(await client.ids()).toEqual(["shard-1"]);
  expect(await client.actions()).toEqual(["start_restore a", "end_restore a"]);
});

test("[A6] a growth leaves the list when it ends", async () => {
  const client = await start();
  const { id } = valueOf(await client.grow());
  expect((await client.list()).operations).toMatchObject([
    { id, kind: "growth", about: "shards", startedBy: operator.keyId },
  ]);
  expect(await client.endRestore(id)).toEqual(RUNNING);
});

test("[A7] a directory that went back has its own rows and those of D1", async () => {
  const client = await start();
  valueOf(await client.begin("reconciliation"));
  const goBack = saveDirectory(client.cluster);
  valueOf(await client.begin("restore"));
  const copy = await client.list();
  goBack();
  valueOf(await client.begin("reconciliation", "shard-3"));
  valueOf(await client.loseAndReconcile(copy));
  expect((await client.ids()).toSorted()).toEqual(["a", "shard-1", "shard-3"]);
  expect((await client.list()).position).toBeGreaterThan(copy.position);
  expect(await client.grow()).toEqual(RUNNING);
});

test("[A5] [M6] there is at most one row for each shard, and one for a restore", async () => {
  const client = await start();
  valueOf(await client.begin("restore"));
  for (let shard = 0; shard < MAX_SHARDS; shard += 1)
    valueOf(await client.begin("reconciliation", `shard-${shard}`));
  for (const id of [`shard-${MAX_SHARDS}`, "shard-01", "ledger-1"])
    expect(await client.begin("reconciliation", id)).toEqual(no("INVALID_ARGUMENT"));
  expect(await client.ids()).toHaveLength(MAX_SHARDS + 1);
});

test("[A5] survives a restart", async () => {
  const client = await start();
  valueOf(await client.begin("restore"));
  client.cluster.directory.restart();
  expect(await client.grow()).toEqual(RUNNING);
});
