/**
 * The protocol as its callers see it, with the core over node:sqlite. A title begins with the rules that the
 * test proves (docs/reference/protocol.md).
 */
import { expect, test } from "vitest";
import type { SettableState } from "../../src/coordinator/capabilities/cells/messages.ts";
import { callerOf, decideRequest, type OpSpec } from "../support/ops.ts";
import { sourceOf, subjectOf } from "../support/types.ts";
import {
  begin,
  commit,
  list,
  lookup,
  no,
  ok,
  own,
  rollBack,
  type TestObjects,
} from "../suites/protocol/calls.ts";
import { platformSuite } from "../suites/protocol/platform.ts";
import { Cluster } from "../support/cluster.ts";

async function start(): Promise<TestObjects> {
  const cluster = await Cluster.start();
  return {
    envelope: cluster.envelope,
    uuid: () => cluster.uuid(),
    ledger: (cell) => cluster.ledger(cell).object,
    shard: (index) => cluster.shard(index).object,
    runUntil: (work) => cluster.clock.runUntil(work),
    restart: async () => {
      for (const node of cluster.nodes) node.restart();
    },
    holds: async () => cluster.holds(),
    claims: async () => cluster.claims(),
  };
}

platformSuite("the core over node:sqlite", start);

test("[B2] the same batch again is the same lease; another batch with its id is refused", async () => {
  const objects = await start();
  const lease = objects.uuid();
  await begin(objects, "1", lease, ["ada"]);
  expect(await begin(objects, "1", lease, ["ada"])).toEqual(
    ok({ created: false, lease: expect.objectContaining({ state: "GRANTED", lease }) as unknown }),
  );
  expect(await begin(objects, "1", lease, ["bob"])).toEqual(
    no("FAILED_PRECONDITION", { reason: "LEASE_ID_REUSED" }),
  );
  await commit(objects, "1", lease);
  expect(await begin(objects, "1", lease, ["ada"])).toEqual(
    ok({ created: false, lease: expect.objectContaining({ state: "COMMITTED" }) as unknown }),
  );
  expect(await begin(objects, "1", lease, ["bob"])).toEqual(
    no("FAILED_PRECONDITION", { reason: "LEASE_ID_REUSED" }),
  );
  const other = objects.uuid();
  await begin(objects, "1", other, ["bob"]);
  await rollBack(objects, "1", other);
  expect(await begin(objects, "1", other, ["bob"])).toEqual(
    no("FAILED_PRECONDITION", { reason: "LEASE_ROLLED_BACK" }),
  );
});

test("[B2] a lease is identified by cell and UUID: two cells may use the same UUID", async () => {
  const objects = await start();
  const lease = objects.uuid();
  expect(await begin(objects, "1", lease, ["ada"])).toEqual(ok({ created: true }));
  expect(await begin(objects, "2", lease, ["bob"])).toEqual(ok({ created: true }));
  await rollBack(objects, "2", lease);
  expect(await objects.holds()).toEqual([expect.objectContaining({ canonical: "ada", cell: "1" })]);
  expect(await commit(objects, "1", lease)).toEqual(ok({ state: "COMMITTED" }));
});

test("[B4] [B6] one conflict among 50 names refuses all, names one op, frees the others", async () => {
  const objects = await start();
  await own(objects, "2", ["n49"]);
  const names = Array.from({ length: 50 }, (_, index) => `n${index}`);
  const result = await begin(objects, "1", objects.uuid(), names);
  expect(result).toEqual(
    no("ALREADY_EXISTS", {
      conflicts: [
        {
          list: "creates",
          index: 49,
          kind: "taken",
          owner: "other",
        },
      ],
    }),
  );
  expect(await objects.holds()).toEqual([]);
  expect(await begin(objects, "2", objects.uuid(), names.slice(0, 49))).toEqual(ok({ created: true }));
});

test("[B6] the most lasting conflict determines the code", async () => {
  const objects = await start();
  await own(objects, "2", ["theirs"]);
  await begin(objects, "2", objects.uuid(), ["leased"]);
  const destroyTheirs: OpSpec = { kind: "destroy", value: "theirs", subject: null, source: null };
  expect(await begin(objects, "1", objects.uuid(), ["leased"])).toEqual(
    no("ABORTED", { retryAfterMs: expect.any(Number) as unknown }),
  );
  expect(await begin(objects, "1", objects.uuid(), ["leased", destroyTheirs])).toEqual(
    no("FAILED_PRECONDITION"),
  );
  expect(
    await begin(objects, "1", objects.uuid(), ["leased", destroyTheirs, "theirs".toUpperCase() + "-2"]),
  ).toEqual(no("FAILED_PRECONDITION"));
  const held = await begin(objects, "1", objects.uuid(), [
    { kind: "destroy", value: "leased", subject: null, source: null },
  ]);
  expect(held).toEqual(no("ABORTED"));
});

const epochNow = async (objects: TestObjects, value: string): Promise<number> =>
  (await objects.claims()).find(({ canonical }) => canonical === value)?.epoch ?? 0;

test("[B10] a destroy or replace with a wrong epoch is a mismatch and changes nothing", async () => {
  const objects = await start();
  await own(objects, "1", ["ada", "bob"]);
  const [ada, bob] = [await epochNow(objects, "ada"), await epochNow(objects, "bob")];
  const before = await objects.claims();
  const result = await begin(objects, "1", objects.uuid(), [
    { kind: "destroy", value: "ada", subject: null, source: null, epoch: ada + 1 },
    { kind: "replace", value: "bob", epoch: bob + 1 },
  ]);
  expect(result).toEqual(
    no("FAILED_PRECONDITION", {
      conflicts: [
        expect.objectContaining({ list: "destroys", index: 0, kind: "mismatch", owner: "self" }),
        expect.objectContaining({ list: "replaces", index: 0, kind: "mismatch", owner: "self" }),
      ],
    }),
  );
  expect(await objects.holds()).toEqual([]);
  expect(await objects.claims()).toEqual(before);
  // Subject and source are still compared.
  const other = { type: "USER", id: "9" } as const;
  expect(
    await begin(objects, "1", objects.uuid(), [
      { kind: "destroy", value: "ada", subject: other, source: null, epoch: ada },
    ]),
  ).toEqual(no("FAILED_PRECONDITION", { conflicts: [expect.objectContaining({ kind: "mismatch" })] }));
});

test("[B10] an op with the claim's epoch applies once: each replace makes a new epoch", async () => {
  const objects = await start();
  await own(objects, "1", ["ada"]);
  const read = await epochNow(objects, "ada");
  const replace: OpSpec = {
    kind: "replace",
    value: "Ada",
    subject: { type: "NAMESPACE", id: "2" },
    epoch: read,
  };
  const lease = objects.uuid();
  expect(await begin(objects, "1", lease, [replace])).toEqual(ok({ created: true }));
  const granted = await objects.runUntil(
    objects.ledger("1").getLease({ ...objects.envelope, caller: callerOf(), lease }),
  );
  expect(granted.ok && granted.value.ops?.map(({ epoch }) => epoch)).toEqual([read]);
  await commit(objects, "1", lease);
  expect(await begin(objects, "1", objects.uuid(), [replace])).toEqual(no("FAILED_PRECONDITION"));
  const destroy = (epoch: number): OpSpec => ({
    kind: "destroy",
    value: "ada",
    subject: null,
    source: null,
    epoch,
  });
  expect(await begin(objects, "1", objects.uuid(), [destroy(read)])).toEqual(no("FAILED_PRECONDITION"));
  const last = objects.uuid();
  expect(await begin(objects, "1", last, [destroy(await epochNow(objects, "ada"))])).toEqual(
    ok({ created: true }),
  );
  await commit(objects, "1", last);
  expect(await objects.claims()).toEqual([]);
});

test("[B10] an old epoch does not match a claim that was taken again, or a missing one", async () => {
  const objects = await start();
  await own(objects, "1", ["ada"]);
  const read = await epochNow(objects, "ada");
  const gone = objects.uuid();
  const destroy: OpSpec = { kind: "destroy", value: "ada", subject: null, source: null, epoch: read };
  await begin(objects, "1", gone, [destroy]);
  await commit(objects, "1", gone);
  expect(await begin(objects, "1", objects.uuid(), [destroy])).toEqual(
    no("FAILED_PRECONDITION", { conflicts: [expect.objectContaining({ kind: "absent" })] }),
  );
  expect(await begin(objects, "1", objects.uuid(), [destroy], { allowMissing: true })).toEqual(
    ok({ created: true }),
  );
  await own(objects, "1", ["ada"]);
  const again = await begin(objects, "1", objects.uuid(), [destroy], { allowMissing: true });
  expect(again).toEqual(
    no("FAILED_PRECONDITION", { conflicts: [expect.objectContaining({ kind: "mismatch" })] }),
  );
});

test("[B4] a destroy locks its claim, and only its owner may destroy it", async () => {
  const objects = await start();
  await own(objects, "1", ["ada"]);
  const destroy: OpSpec = { kind: "destroy", value: "ada", subject: null, source: null };
  expect(await begin(objects, "2", objects.uuid(), [destroy])).toEqual(
    no("FAILED_PRECONDITION", {
      conflicts: [expect.objectContaining({ kind: "not_owner", owner: "other" })],
    }),
  );
  const lease = objects.uuid();
  expect(await begin(objects, "1", lease, [destroy])).toEqual(ok({ created: true }));
  expect(await lookup(objects, "ada")).toMatchObject({
    kind: "record",
    record: { status: "LEASE_DESTROYING", lease },
  });
  expect(await begin(objects, "2", objects.uuid(), ["ada"])).toEqual(no("ABORTED"));
  await rollBack(objects, "1", lease);
  expect(await lookup(objects, "ada")).toMatchObject({
    kind: "record",
    record: { status: "ACTIVE", lease: null },
  });
  const again = objects.uuid();
  await begin(objects, "1", again, [destroy]);
  await commit(objects, "1", again);
  expect(await lookup(objects, "ada")).toEqual({ kind: "none" });
  expect(await begin(objects, "2", objects.uuid(), ["ada"])).toEqual(ok({ created: true }));
});

test("[B12] destroys without a claim are refused, or counted if that is allowed", async () => {
  const objects = await start();
  const destroys: OpSpec[] = ["a", "b", "c"].map((value) => ({
    kind: "destroy",
    value,
    subject: null,
    source: null,
  }));
  expect(await begin(objects, "1", objects.uuid(), destroys)).toEqual(no("FAILED_PRECONDITION"));
  const lease = objects.uuid();
  await own(objects, "1", ["b"]);
  const result = await begin(objects, "1", lease, destroys, { allowMissing: true });
  expect(result).toEqual(
    ok({
      lease: expect.objectContaining({
        counts: { creates: 0, destroys: 3, replaces: 0, missing: 2 },
      }) as unknown,
    }),
  );
  expect(await commit(objects, "1", lease)).toEqual(ok({ state: "COMMITTED" }));
  expect(await objects.claims()).toEqual([]);
});

test("[B12] a replace without a claim is refused, or takes the name if that is allowed", async () => {
  const objects = await start();
  const replace: OpSpec = { kind: "replace", value: "Ada" };
  const absent = no("FAILED_PRECONDITION", { conflicts: [{ list: "replaces", index: 0, kind: "absent" }] });
  expect(await begin(objects, "1", objects.uuid(), [replace])).toEqual(absent);
  const counted = { creates: 0, destroys: 0, replaces: 1, missing: 0 };
  const leased = async (): Promise<string> => {
    const lease = objects.uuid();
    const begun = await begin(objects, "1", lease, [replace], { allowMissing: true });
    expect(begun).toEqual(ok({ lease: expect.objectContaining({ counts: counted }) as unknown }));
    expect(await lookup(objects, "ada")).toMatchObject({
      kind: "record",
      record: { status: "LEASE_CREATING", value: "Ada", cell: "1", lease },
    });
    expect(await begin(objects, "2", objects.uuid(), ["ada"])).toEqual(no("ABORTED"));
    return lease;
  };
  await rollBack(objects, "1", await leased());
  expect(await lookup(objects, "ada")).toEqual({ kind: "none" });
  await commit(objects, "1", await leased());
  expect(await lookup(objects, "ada")).toMatchObject({
    kind: "record",
    record: { status: "ACTIVE", value: "Ada", cell: "1", lease: null },
  });
  expect(await begin(objects, "2", objects.uuid(), [replace], { allowMissing: true })).toEqual(
    no("FAILED_PRECONDITION", { conflicts: [expect.objectContaining({ kind: "not_owner" })] }),
  );
});

test("[B10] [B12] a replace that names an epoch takes no name that nobody has", async () => {
  const objects = await start();
  const replace: OpSpec = { kind: "replace", value: "ada", epoch: 1 };
  expect(await begin(objects, "1", objects.uuid(), [replace], { allowMissing: true })).toEqual(
    no("FAILED_PRECONDITION", { conflicts: [expect.objectContaining({ kind: "absent" })] }),
  );
});

test("[B12] a lease without ops holds nothing, and is decided like any other", async () => {
  const objects = await start();
  for (const [decide, state] of [
    [commit, "COMMITTED"],
    [rollBack, "ROLLED_BACK"],
  ] as const) {
    const lease = objects.uuid();
    expect(await begin(objects, "1", lease, [])).toEqual(ok({ created: true }));
    expect(await begin(objects, "1", lease, [])).toEqual(ok({ created: false }));
    expect(await decide(objects, "1", lease)).toEqual(ok({ state }));
  }
  expect(await objects.holds()).toEqual([]);
});

test("[B4] a replace changes subject, source and spelling at the commit only", async () => {
  const objects = await start();
  await own(objects, "1", ["Ada"]);
  const before = await lookup(objects, "ada");
  const replace: OpSpec = {
    kind: "replace",
    value: "ADA",
    subject: { type: "USER", id: "7" },
    source: { type: "RAILS_TABLE_USERS", id: "8" },
  };
  const lease = objects.uuid();
  await begin(objects, "1", lease, [replace]);
  expect(await lookup(objects, "ada")).toMatchObject({
    kind: "record",
    record: { status: "ACTIVE", value: "Ada", lease, subject: subjectOf("NAMESPACE", "1") },
  });
  await rollBack(objects, "1", lease);
  expect(await lookup(objects, "ada")).toEqual(before);
  const again = objects.uuid();
  await begin(objects, "1", again, [replace]);
  await commit(objects, "1", again);
  const after = await lookup(objects, "ada");
  expect(after).toMatchObject({
    kind: "record",
    record: {
      status: "ACTIVE",
      value: "ADA",
      lease: null,
      subject: subjectOf("USER", "7"),
      source: sourceOf("RAILS_TABLE_USERS", "8"),
    },
  });
  expect(
    before?.kind === "record" &&
      after?.kind === "record" &&
      after.record.uuid === before.record.uuid &&
      after.record.epoch > before.record.epoch,
  ).toBe(true);
});

test("[E1] every later owner of a name has a larger epoch", async () => {
  const objects = await start();
  const epochs: number[] = [];
  for (const cell of ["1", "2", "1", "2"]) {
    await own(objects, cell, ["ada"]);
    const found = await lookup(objects, "ada");
    epochs.push(found?.kind === "record" ? found.record.epoch : -1);
    const lease = objects.uuid();
    await begin(objects, cell, lease, [{ kind: "destroy", value: "ada", subject: null, source: null }]);
    await commit(objects, cell, lease);
  }
  expect(epochs.toSorted((a, b) => a - b)).toEqual(epochs);
  expect(new Set(epochs).size).toBe(4);
});

test("[C1] [C4] the first decision wins; repeating it succeeds, the opposite is refused", async () => {
  const objects = await start();
  const committed = objects.uuid();
  await begin(objects, "1", committed, ["ada"]);
  await commit(objects, "1", committed);
  expect(await commit(objects, "1", committed)).toEqual(ok({ state: "COMMITTED" }));
  expect(await rollBack(objects, "1", committed)).toEqual(
    no("FAILED_PRECONDITION", { reason: "LEASE_COMMITTED" }),
  );
  const back = objects.uuid();
  await begin(objects, "1", back, ["bob"]);
  await rollBack(objects, "1", back);
  expect(await rollBack(objects, "1", back)).toEqual(ok({ state: "ROLLED_BACK" }));
  expect(await commit(objects, "1", back)).toEqual(
    no("FAILED_PRECONDITION", { reason: "LEASE_ROLLED_BACK" }),
  );
  expect(await lookup(objects, "ada")).toMatchObject({ kind: "record" });
  expect(await lookup(objects, "bob")).toEqual({ kind: "none" });
});

test("[C4] [C5] an unknown lease cannot be committed, and another cell's lease is unknown", async () => {
  const objects = await start();
  const lease = objects.uuid();
  await begin(objects, "1", lease, ["ada"]);
  expect(await commit(objects, "2", lease)).toEqual(no("NOT_FOUND"));
  expect(
    await objects.runUntil(objects.ledger("2").getLease({ ...objects.envelope, caller: callerOf(), lease })),
  ).toEqual(no("NOT_FOUND"));
  expect(await commit(objects, "1", objects.uuid())).toEqual(no("NOT_FOUND"));
  expect(await rollBack(objects, "2", lease)).toEqual(ok({ state: "ROLLED_BACK", cell: "2" }));
  expect(
    await objects.runUntil(objects.ledger("1").getLease({ ...objects.envelope, caller: callerOf(), lease })),
  ).toEqual(ok({ state: "GRANTED" }));
});

test("[C5] an operator's reason is kept with the outcome", async () => {
  const objects = await start();
  const lease = objects.uuid();
  await begin(objects, "1", lease, ["ada"]);
  const caller = { role: "operator" as const, keyId: "op", expiresAtMs: Number.MAX_SAFE_INTEGER };
  await objects.runUntil(
    objects
      .ledger("1")
      .decide(decideRequest(objects.envelope, lease, "ROLLED_BACK", { caller, reason: "the cell is gone" })),
  );
  expect(
    await objects.runUntil(objects.ledger("1").getLease({ ...objects.envelope, caller, lease })),
  ).toEqual(ok({ decidedBy: "operator", reason: "the cell is gone" }));
});

test("[C6] a frozen cell cannot begin, but still commits, rolls back and replays", async () => {
  const objects = await start();
  const [first, second] = [objects.uuid(), objects.uuid()];
  await begin(objects, "1", first, ["ada"]);
  await begin(objects, "1", second, ["bob"]);
  await objects.runUntil(
    objects.ledger("1").setState({ ...objects.envelope, state: "FROZEN", stateVersion: 0 }),
  );
  expect(await begin(objects, "1", objects.uuid(), ["eve"])).toEqual(
    no("FAILED_PRECONDITION", { reason: "CELL_FROZEN" }),
  );
  expect(await begin(objects, "1", first, ["ada"])).toEqual(ok({ created: false }));
  expect(await commit(objects, "1", first)).toEqual(ok({ state: "COMMITTED" }));
  expect(await rollBack(objects, "1", second)).toEqual(ok({ state: "ROLLED_BACK" }));
  await objects.runUntil(
    objects.ledger("1").setState({ ...objects.envelope, state: "ACTIVE", stateVersion: 1 }),
  );
  expect(await begin(objects, "1", objects.uuid(), ["eve"])).toEqual(ok({ created: true }));
});

test("[X1] a draining cell begins only for its verification, and decides its leases", async () => {
  const objects = await start();
  const [first, second] = [objects.uuid(), objects.uuid()];
  await begin(objects, "1", first, ["ada"]);
  await begin(objects, "1", second, ["bob"]);
  const set = (state: SettableState, stateVersion: number) =>
    objects.runUntil(objects.ledger("1").setState({ ...objects.envelope, state, stateVersion }));
  await set("DRAINING", 0);
  const draining = no("FAILED_PRECONDITION", { reason: "CELL_DRAINING" });
  expect(await begin(objects, "1", objects.uuid(), ["eve"])).toEqual(draining);
  const verified = { isVerification: true } as const;
  expect(await begin(objects, "1", objects.uuid(), ["eve"], verified)).toEqual(ok({ created: true }));
  expect(await begin(objects, "1", first, ["ada"])).toEqual(ok({ created: false }));
  expect(await commit(objects, "1", first)).toEqual(ok({ state: "COMMITTED" }));
  expect(await rollBack(objects, "1", second)).toEqual(ok({ state: "ROLLED_BACK" }));
  await set("FROZEN", 1);
  expect(await begin(objects, "1", objects.uuid(), ["mia"], verified)).toEqual(
    no("FAILED_PRECONDITION", { reason: "CELL_FROZEN" }),
  );
  await set("ACTIVE", 2);
  expect(await begin(objects, "1", objects.uuid(), ["mia"])).toEqual(ok({ created: true }));
});

test("[H9] of a frozen cell, only an operator begins a lease, as part of a verification", async () => {
  const objects = await start();
  await objects.runUntil(
    objects.ledger("1").setState({ ...objects.envelope, state: "FROZEN", stateVersion: 0 }),
  );
  const frozen = no("FAILED_PRECONDITION", { reason: "CELL_FROZEN" });
  const verified = { isVerification: true } as const;
  const operator = { caller: { ...callerOf(), role: "operator" } } as const;
  expect(await begin(objects, "1", objects.uuid(), ["ada"], verified)).toEqual(frozen);
  expect(await begin(objects, "1", objects.uuid(), ["ada"], operator)).toEqual(frozen);
  const lease = objects.uuid();
  expect(await begin(objects, "1", lease, ["ada"], { ...verified, ...operator })).toEqual(
    ok({ created: true }),
  );
  expect(await commit(objects, "1", lease)).toEqual(ok({ state: "COMMITTED" }));
});

test("[A2] a late unfreeze undoes no later freeze, and a repeated freeze is one freeze", async () => {
  const objects = await start();
  const version = async (): Promise<number> => {
    const status = await objects.runUntil(objects.ledger("1").status(objects.envelope));
    return status.ok ? status.value.stateVersion : Number.NaN;
  };
  const set = (state: "ACTIVE" | "FROZEN", stateVersion: number) =>
    objects.runUntil(objects.ledger("1").setState({ ...objects.envelope, state, stateVersion }));
  const first = await version();
  expect(await set("FROZEN", first)).toEqual({ ok: true, value: null });
  // The state is read in between, so the unfreeze is late: the repeated freeze was acknowledged after
  // that read.
  const between = await version();
  expect(await set("FROZEN", first)).toEqual({ ok: true, value: null });
  expect(await set("ACTIVE", between)).toEqual(no("FAILED_PRECONDITION", { reason: "CONCURRENT_CHANGE" }));
  const second = await version();
  // The cell was frozen already. An unfreeze that was sent before this freeze must still not undo it.
  expect(await set("FROZEN", second)).toEqual({ ok: true, value: null });
  for (const late of [first, second])
    expect(await set("ACTIVE", late)).toEqual(no("FAILED_PRECONDITION", { reason: "CONCURRENT_CHANGE" }));
  expect(await begin(objects, "1", objects.uuid(), ["eve"])).toEqual(
    no("FAILED_PRECONDITION", { reason: "CELL_FROZEN" }),
  );
  expect(await set("ACTIVE", await version())).toEqual({ ok: true, value: null });
  expect(await begin(objects, "1", objects.uuid(), ["eve"])).toEqual(ok({ created: true }));
});

test("[C7] a rollback of a begin that has not arrived makes the late begin fail", async () => {
  const objects = await start();
  const lease = objects.uuid();
  expect(await rollBack(objects, "1", lease)).toEqual(
    ok({ state: "ROLLED_BACK", counts: { creates: 0, destroys: 0, replaces: 0, missing: 0 } }),
  );
  expect(await begin(objects, "1", lease, ["ada"])).toEqual(
    no("FAILED_PRECONDITION", { reason: "LEASE_ROLLED_BACK" }),
  );
  expect(await objects.holds()).toEqual([]);
  expect(await rollBack(objects, "1", lease)).toEqual(ok({ state: "ROLLED_BACK" }));
});

test("[R2] a lookup finds a name once its lease is granted, and no longer after a rollback", async () => {
  const objects = await start();
  const lease = objects.uuid();
  expect(await lookup(objects, "ada")).toEqual({ kind: "none" });
  await begin(objects, "1", lease, ["Ada"]);
  expect(await lookup(objects, "ada")).toMatchObject({
    kind: "record",
    record: { status: "LEASE_CREATING", lease, cell: "1", value: "Ada" },
  });
  await rollBack(objects, "1", lease);
  expect(await lookup(objects, "ada")).toEqual({ kind: "none" });
});

test("[R1] the list has every granted lease once, in order, and no decided one", async () => {
  const objects = await start();
  const leases = Array.from({ length: 7 }, () => objects.uuid());
  for (const [index, lease] of leases.entries()) await begin(objects, "1", lease, [`n${index}`]);
  await commit(objects, "1", leases[2] ?? "");
  await rollBack(objects, "1", leases[4] ?? "");
  const left = leases.filter((_, index) => index !== 2 && index !== 4);
  const seen: string[] = [];
  let afterPosition = 0;
  do {
    const page = await list(objects, "1", { limit: 2, afterPosition });
    seen.push(...page.leases.map(({ lease }) => lease));
    expect(page.leases.length).toBeGreaterThan(0);
    for (const lease of page.leases)
      expect(lease).toMatchObject({
        state: "GRANTED",
        ageMs: expect.any(Number) as unknown,
        counts: { creates: 1 },
      });
    expect(page.leases.every((lease) => lease.ops === undefined)).toBe(true);
    afterPosition = page.nextPosition;
  } while (afterPosition !== 0);
  expect(seen).toEqual(left);
  const third = (await list(objects, "1")).leases[2];
  const from = await list(objects, "1", { createdAfterMs: third?.createdAtMs ?? 0 });
  expect(from.leases.map(({ lease }) => lease)).toContain(third?.lease);
  expect((await list(objects, "1", { createdAfterMs: (third?.createdAtMs ?? 0) + 60_000 })).leases).toEqual(
    [],
  );
  expect((await list(objects, "2")).leases).toEqual([]);
});

test("[A1] the ledger refuses a revoked key at once", async () => {
  const objects = await start();
  await begin(objects, "1", objects.uuid(), ["ada"]);
  await objects.runUntil(
    objects.ledger("1").revoke({ ...objects.envelope, keyId: "k1", expiresAtMs: Number.MAX_SAFE_INTEGER }),
  );
  const revoked = no("UNAUTHENTICATED", { reason: "KEY_REVOKED" });
  expect(await begin(objects, "1", objects.uuid(), ["bob"])).toEqual(revoked);
  expect(await commit(objects, "1", objects.uuid())).toEqual(revoked);
  expect(
    await objects.runUntil(objects.ledger("1").authorize({ ...objects.envelope, caller: callerOf() })),
  ).toEqual(revoked);
  expect(
    await begin(objects, "1", objects.uuid(), ["bob"], {
      caller: { role: "cell", keyId: "k2", expiresAtMs: Number.MAX_SAFE_INTEGER },
    }),
  ).toEqual(ok({ created: true }));
});
