/** Tests of how the directory gets a deployment from one number of shards to a larger one (G1, G2). */
import { describe, expect, test } from "vitest";
import type { GrowthCopy, GrowthProgress } from "../../../../src/coordinator/capabilities/growth/messages.ts";
import type { RestoreDirectory } from "../../../../src/coordinator/kernel/directory/messages.ts";
import type { Result } from "../../../../src/coordinator/kernel/refusal.ts";
import type { Operation } from "../../../../src/coordinator/capabilities/operations/operations.ts";
import { MAX_SHARDS, placementOf } from "../../../../src/coordinator/kernel/placement.ts";
import { no } from "../../../support/calls.ts";
import { Cluster } from "../../../support/cluster.ts";
import { LOST, saveDirectory } from "../../../support/go-back.ts";
import { copiedBy } from "../../../support/growing.ts";
import { addCell } from "../cells/add-cell.ts";

const valueOf = <T>(reply: Result<T>): T => {
  if (!reply.ok) throw new Error(reply.refusal.detail);
  return reply.value;
};

/** A client that uses the placement that it has learned. `copied` is the growth in D1. */
class Client {
  readonly cluster: Cluster;
  copied: GrowthCopy | null = null;
  shards = 4;

  constructor(cluster: Cluster) {
    this.cluster = cluster;
  }

  get #message() {
    return {
      ...this.cluster.envelope,
      placement: placementOf(this.shards),
      growthCopiedAt: this.copied?.position ?? 0,
    };
  }

  get #directory() {
    return this.cluster.directory.object;
  }

  start = (to: number) => this.#run(this.#directory.startGrowth({ ...this.#message, to }));
  growth = () => this.#run(this.#directory.growth(this.#message));
  cut = (id: string, sources = copiedBy(id, this.shards)) =>
    this.#run(this.#directory.cutGrowth({ ...this.#message, id, sources }));
  reconcileShard = () =>
    this.#run(
      this.#directory.beginOperation({
        ...this.#message,
        operation: { id: "shard-1", kind: "reconciliation", about: "shard-1" },
      }),
    );
  endReconciliation = (operation: Operation) =>
    this.#run(this.#directory.endOperation({ ...this.#message, operation }));
  confirmCut = (id: string) => this.#run(this.#directory.confirmCut({ ...this.#message, id }));
  abort = (id: string) => this.#run(this.#directory.abortGrowth({ ...this.#message, id }));
  finish = (id: string) => this.#run(this.#directory.finishGrowth({ ...this.#message, id }));
  confirm = () => this.#run(this.#directory.confirm(this.#message));
  actions = async () => {
    const page = await this.#run(
      this.#directory.pullAudit({
        ...this.cluster.envelope,
        placement: placementOf(this.shards),
        copied: null,
        limit: 100,
      }),
    );
    return valueOf(page).entries.map(({ action }) => action);
  };
  part = () => this.#run(this.#directory.part(this.#message));
  restore = (more: Pick<RestoreDirectory, "declared"> = {}) =>
    this.#run(
      this.#directory.reconcile({
        ...this.#message,
        ...more,
        cells: [],
        keys: [],
        types: null,
        growth: this.copied,
        isLast: true,
        dryRun: false,
        isPlacementConfirmed: true,
      }),
    );

  #run<T>(call: Promise<T>): Promise<T> {
    return this.cluster.clock.runUntil(call);
  }
}

/** The directory has forgotten a cut that was confirmed. D1 has a copy of it. */
async function lostCut(): Promise<{ client: Client; id: string }> {
  const client = await clientOf();
  const { id } = valueOf(await client.start(6));
  const restore = saveDirectory(client.cluster);
  client.copied = valueOf(await client.cut(id));
  valueOf(await client.confirmCut(id));
  restore();
  return { client, id };
}

async function clientOf(cells = ["1"]): Promise<Client> {
  return new Client(await Cluster.start({ cells }));
}

test("[G1] a growth is started, cut and finished, each once", async () => {
  const client = await clientOf();
  const started = valueOf(await client.start(6));
  expect(started).toMatchObject({ from: 4, to: 6, phase: "copying", cutAtMs: null });
  expect(valueOf(await client.start(6))).toEqual(started);
  expect(await client.start(7)).toEqual(no("FAILED_PRECONDITION", { reason: "OPERATION_RUNNING" }));
  const { id } = started;
  const ordered = valueOf(await client.cut(id));
  expect(ordered).toMatchObject({ id, phase: "cutting" });
  expect(valueOf(await client.cut(id))).toEqual(ordered);
  client.copied = ordered;
  expect(valueOf(await client.confirmCut(id))).toMatchObject({ id, phase: "cut" });
  expect(valueOf(await client.confirmCut(id))).toMatchObject({ id, phase: "cut" });
  client.shards = 6;
  expect(valueOf(await client.confirm())).toMatchObject({ placement: placementOf(6), growth: { id } });
  expect(valueOf(await client.finish(id))).toBeNull();
  expect(valueOf(await client.finish(id))).toBeNull();
  expect(valueOf(await client.growth())).toBeNull();
  expect(valueOf(await client.start(8))).toMatchObject({ from: 6, to: 8 });
  expect(await client.actions()).toEqual(["start_growth", "cut_growth", "start_growth"]);
});

test.each<[string, (sources: GrowthProgress[]) => GrowthProgress[]]>([
  ["says nothing", (sources) => sources.slice(1)],
  ["still copies", ([first, ...others]) => (first ? [{ ...first, state: "copying" }, ...others] : others)],
  [
    "speaks of another growth",
    ([first, ...others]) => (first ? [{ ...first, growth: "b" }, ...others] : others),
  ],
  [
    "has many changes left",
    ([first, ...others]) => (first ? [{ ...first, waiting: 1_001 }, ...others] : others),
  ],
  [
    "waits for a transfer",
    ([first, ...others]) => (first ? [{ ...first, waitsFor: "transfer" }, ...others] : others),
  ],
  ["is spoken for by another", ([, second, ...others]) => (second ? [second, second, ...others] : others)],
])("[G1] no cut is ordered if a shard %s", async (_, changed) => {
  const client = await clientOf();
  const { id } = valueOf(await client.start(6));
  expect(await client.cut(id, changed(copiedBy(id, 4)))).toEqual(
    no("FAILED_PRECONDITION", { reason: "GROWTH_NOT_COPIED" }),
  );
  expect(valueOf(await client.cut(id))).toMatchObject({ phase: "cutting" });
});

test("[G1] no cut is ordered while a shard is reconciled", async () => {
  const client = await clientOf();
  const { id } = valueOf(await client.start(6));
  const begun = valueOf(await client.reconcileShard());
  expect(await client.cut(id)).toEqual(no("FAILED_PRECONDITION", { reason: "OPERATION_RUNNING" }));
  valueOf(await client.endReconciliation(begun));
  expect(valueOf(await client.cut(id))).toMatchObject({ phase: "cutting" });
});

test("[G1] a growth can be aborted until its cut is ordered", async () => {
  const client = await clientOf();
  const first = valueOf(await client.start(6));
  expect(valueOf(await client.abort(first.id))).toBeNull();
  expect(valueOf(await client.abort(first.id))).toBeNull();
  const { id } = valueOf(await client.start(5));
  expect(await client.abort(first.id)).toEqual(no("FAILED_PRECONDITION", { reason: "GROWTH_UNKNOWN" }));
  expect(await client.cut(first.id)).toEqual(no("FAILED_PRECONDITION", { reason: "GROWTH_UNKNOWN" }));
  expect(await client.finish(id)).toEqual(no("FAILED_PRECONDITION"));
  valueOf(await client.cut(id));
  expect(await client.abort(id)).toEqual(no("FAILED_PRECONDITION", { reason: "GROWTH_CUT" }));
  expect(await client.actions()).toEqual(["start_growth", "abort_growth", "start_growth", "cut_growth"]);
});

describe("[G1] the number of shards", () => {
  test.each([4, 3, 0, 4.5, Number.NaN, MAX_SHARDS + 1])("%s is refused", async (to) => {
    const client = await clientOf();
    expect(await client.start(to)).toEqual(no("INVALID_ARGUMENT", { field: "shards" }));
  });

  test("is not fixed before there is a cell", async () => {
    const client = await clientOf([]);
    expect(await client.start(6)).toEqual(no("UNAVAILABLE", { reason: "NO_CELLS" }));
    await addCell(client.cluster, "1");
    expect(valueOf(await client.start(MAX_SHARDS))).toMatchObject({ to: MAX_SHARDS });
  });
});

test("[G2] nobody is told of the new placement before D1 has the growth", async () => {
  const client = await clientOf();
  const started = valueOf(await client.start(6));
  const { id } = started;
  expect(await client.confirmCut(id)).toEqual(no("UNAVAILABLE", { retryAfterMs: 1_000 }));
  client.copied = started;
  const ordered = valueOf(await client.cut(id));
  expect(await client.confirmCut(id)).toEqual(no("UNAVAILABLE", { retryAfterMs: 1_000 }));
  expect(valueOf(await client.confirm()).placement).toBe(placementOf(4));
  client.copied = ordered;
  valueOf(await client.confirmCut(id));
  expect(await client.growth()).toEqual(
    no("UNAVAILABLE", { reason: "PLACEMENT_MISMATCH", placement: placementOf(6) }),
  );
  // An object learns the placement in force, whatever its own is.
  expect(valueOf(await client.confirm()).placement).toBe(placementOf(6));
});

test("[G2] [H4] [H8] a directory that has lost an ordered cut gets it back from D1, as cut", async () => {
  const { client, id } = await lostCut();
  expect(await client.growth()).toEqual(LOST);
  client.shards = 6;
  expect(valueOf(await client.restore())).toMatchObject({ status: { state: "complete" } });
  expect(valueOf(await client.growth())).toMatchObject({ id, phase: "cut", to: 6 });
  expect(valueOf(await client.confirm()).placement).toBe(placementOf(6));
});

test("[G2] [H4] [H8] callers with the new placement meet a directory that has lost the cut", async () => {
  const { client } = await lostCut();
  const { copied: cut } = client;
  client.shards = 6;
  // Nothing but the placement tells the directory that it may have gone back.
  client.copied = null;
  expect(await client.growth()).toEqual(no("UNAVAILABLE", { reason: "PLACEMENT_MISMATCH" }));
  expect(valueOf(await client.part())).toMatchObject({ state: "complete" });
  client.copied = cut;
  expect(await client.growth()).toEqual(LOST);
  client.copied = null;
  expect(await client.growth()).toEqual(LOST);
  expect(valueOf(await client.part())).toMatchObject({ state: "lost" });
});

test("[G2] [H8] an operator with the new placement declares a loss of the cut", async () => {
  const { client, id } = await lostCut();
  client.shards = 6;
  const { point } = valueOf(await client.part());
  const declared = { incarnation: point?.incarnation ?? 0 };
  expect(valueOf(await client.restore({ declared }))).toMatchObject({ status: { state: "complete" } });
  expect(valueOf(await client.growth())).toMatchObject({ id, phase: "cut", to: 6 });
});

test("[G2] [H8] a growth that D1 has as aborted does not run again", async () => {
  const client = await clientOf();
  const restore = saveDirectory(client.cluster);
  const started = valueOf(await client.start(6));
  valueOf(await client.abort(started.id));
  client.copied = { ...started, isAborted: true };
  restore();
  expect(await client.growth()).toEqual(LOST);
  valueOf(await client.restore());
  expect(valueOf(await client.growth())).toBeNull();
  const { position } = valueOf(await client.start(6));
  expect(position).toBeGreaterThan(started.position);
});

test("[G2] [H8] a growth whose abort only the directory has lost does not run again", async () => {
  const client = await clientOf();
  const started = valueOf(await client.start(6));
  client.copied = started;
  const restore = saveDirectory(client.cluster);
  valueOf(await client.abort(started.id));
  const { point } = valueOf(await client.part());
  client.copied = { ...started, isAborted: true };
  restore();
  const declared = { incarnation: point?.incarnation ?? 0 };
  expect(valueOf(await client.growth())).toMatchObject({ id: started.id });
  expect(valueOf(await client.restore({ declared }))).toMatchObject({ status: { state: "complete" } });
  expect(valueOf(await client.growth())).toBeNull();
});

test("[G2] [H8] a growth in D1 that is older than the directory's changes nothing", async () => {
  const client = await clientOf();
  const { id } = valueOf(await client.start(6));
  client.copied = valueOf(await client.growth());
  valueOf(await client.abort(id));
  const restore = saveDirectory(client.cluster);
  await addCell(client.cluster, "2");
  const { point } = client.cluster.directory.object.told();
  restore();
  expect(
    await client.cluster.clock.runUntil(
      client.cluster.directory.object.snapshot({
        ...client.cluster.envelope,
        ...(point === undefined ? {} : { seen: point }),
      }),
    ),
  ).toEqual(LOST);
  valueOf(await client.restore());
  expect(valueOf(await client.growth())).toBeNull();
});
