/**
 * Tests the protocol as its callers see it. The suite runs twice: with the core over node:sqlite in Node, and
 * with the Durable Objects in workerd. A title begins with the rules that the test proves
 * (docs/reference/protocol.md).
 */
import { describe, expect, test } from "vitest";
import type { OperatorCall, SettableState } from "../../src/core/messages.ts";
import type { Ledger } from "../../src/core/ledger/ledger.ts";
import type { LookupFound, Outcome } from "../../src/core/messages.ts";
import type { Shard } from "../../src/core/shard/shard.ts";
import { shardOf, shardsOf } from "../../src/core/placement.ts";
import { beginRequest, callerOf, decideRequest, exchangeOf, keyOf, type OpSpec } from "../support/ops.ts";
import { bucketType, sourceOf, sourceType, subjectOf } from "../support/types.ts";

export interface TestObjects {
  envelope: OperatorCall;
  uuid(): string;
  ledger(
    cell: string,
  ): Pick<
    Ledger,
    | "begin"
    | "decide"
    | "get"
    | "list"
    | "inquire"
    | "pull"
    | "maintain"
    | "status"
    | "setState"
    | "revoke"
    | "leaseStates"
    | "authorize"
  >;
  shard(
    index: number,
  ): Pick<Shard, "exchange" | "settle" | "lookup" | "listRecords" | "digestRecords" | "ping">;
  /** Waits for a call, and lets as much time pass as it needs. */
  runUntil<T>(work: Promise<T>): Promise<T>;
  /** Restarts every object: it loses its memory and keeps its database. */
  restart(): Promise<void>;
  holds(): Promise<{ canonical: string; cell: string; lease: string }[]>;
  claims(): Promise<{ canonical: string; cell: string; value: string; epoch: number }[]>;
}

const ok = (value: unknown): object => ({
  ok: true,
  value: expect.objectContaining(value as object) as unknown,
});
const no = (code: string, more: object = {}): object => ({
  ok: false,
  refusal: expect.objectContaining({ code, ...more }) as unknown,
});

export function protocolSuite(name: string, start: () => Promise<TestObjects>): void {
  describe(name, () => {
    const begin = async (
      objects: TestObjects,
      cell: string,
      lease: string,
      specs: (OpSpec | string)[],
      more = {},
    ) => objects.runUntil(objects.ledger(cell).begin(beginRequest(objects.envelope, lease, specs, more)));
    /** Waits until the shards have applied the decision, so that a test can look at their rows. */
    const decide = async (objects: TestObjects, cell: string, lease: string, outcome: Outcome) => {
      const ledger = objects.ledger(cell);
      const answer = await objects.runUntil(ledger.decide(decideRequest(objects.envelope, lease, outcome)));
      const isHeld = async (): Promise<boolean> =>
        answer.ok && (await objects.holds()).some((hold) => hold.cell === cell && hold.lease === lease);
      for (let attempt = 0; (await isHeld()) && attempt < 1_000; attempt += 1)
        await objects.runUntil(ledger.status(objects.envelope));
      return answer;
    };
    const commit = async (objects: TestObjects, cell: string, lease: string) =>
      decide(objects, cell, lease, "COMMITTED");
    const rollBack = async (objects: TestObjects, cell: string, lease: string) =>
      decide(objects, cell, lease, "ROLLED_BACK");
    const lookup = async (objects: TestObjects, value: string): Promise<LookupFound | undefined> => {
      const key = keyOf("ROUTES", value);
      const answer = await objects.runUntil(
        objects
          .shard(shardOf(key.type, key.canonical, shardsOf(objects.envelope.placement)))
          .lookup({ ...objects.envelope, keys: [key] }),
      );
      return answer.ok ? answer.value.found[0] : undefined;
    };
    const own = async (objects: TestObjects, cell: string, values: string[]): Promise<void> => {
      const lease = objects.uuid();
      await begin(objects, cell, lease, values);
      await commit(objects, cell, lease);
    };
    const list = async (
      objects: TestObjects,
      cell: string,
      more: Partial<{ createdAfterMs: number; afterPosition: number; limit: number }> = {},
    ) => {
      const answer = await objects.runUntil(
        objects.ledger(cell).list({
          ...objects.envelope,
          caller: callerOf(),
          createdAfterMs: 0,
          afterPosition: 0,
          limit: 100,
          ...more,
        }),
      );
      if (!answer.ok) throw new Error(answer.refusal.detail);
      return answer.value;
    };

    test("[B5] [C1] [C3] a batch over all shards is granted, then committed on all of them", async () => {
      const objects = await start();
      const lease = objects.uuid();
      const names = Array.from({ length: 40 }, (_, index) => `Name-${index}`);
      expect(await begin(objects, "1", lease, names)).toEqual(
        ok({
          created: true,
          lease: expect.objectContaining({ state: "GRANTED", cell: "1", lease }) as unknown,
        }),
      );
      expect(await objects.holds()).toHaveLength(40);
      expect(await commit(objects, "1", lease)).toEqual(
        ok({
          state: "COMMITTED",
          decidedBy: "cell",
          counts: { creates: 40, destroys: 0, replaces: 0, missing: 0 },
        }),
      );
      expect(await objects.holds()).toEqual([]);
      expect(new Set((await objects.claims()).map(({ canonical }) => canonical))).toEqual(
        new Set(names.map((value) => value.toLowerCase())),
      );
      expect(await lookup(objects, "NAME-7")).toMatchObject({
        kind: "record",
        record: { value: "Name-7", cell: "1", status: "ACTIVE", lease: null },
      });
    });

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

    test("[B2] calls that overlap with the first call join it", async () => {
      const objects = await start();
      const lease = objects.uuid();
      const calls = Array.from({ length: 5 }, () =>
        objects.ledger("1").begin(beginRequest(objects.envelope, lease, ["ada", "bob"])),
      );
      const other = objects.ledger("1").begin(beginRequest(objects.envelope, lease, ["eve"]));
      const results = await objects.runUntil(Promise.all(calls));
      expect(results.filter((result) => result.ok && result.value.created)).toHaveLength(1);
      expect(results.every((result) => result.ok)).toBe(true);
      expect(await other).toEqual(no("FAILED_PRECONDITION", { reason: "LEASE_ID_REUSED" }));
      expect(await objects.holds()).toHaveLength(2);
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

    test("[B6] all conflicts are reported at once, each with its kind", async () => {
      const objects = await start();
      await own(objects, "1", ["mine", "mine-too"]);
      await own(objects, "2", ["theirs"]);
      await begin(objects, "2", objects.uuid(), ["leased"]);
      const result = await begin(objects, "1", objects.uuid(), [
        "mine",
        "theirs",
        "leased",
        "free",
        { kind: "destroy", value: "absent", subject: null, source: null },
        { kind: "destroy", value: "mine-too", subject: { type: "USER", id: "9" }, source: null },
        { kind: "destroy", value: "foreign-hold-only", subject: null, source: null },
        { kind: "replace", value: "not-there" },
      ]);
      expect(result).toEqual(no("ALREADY_EXISTS"));
      const conflicts = result.ok ? [] : (result.refusal.conflicts ?? []);
      expect(conflicts.map(({ list: where, index, kind, owner }) => [where, index, kind, owner])).toEqual([
        ["creates", 0, "taken", "self"],
        ["creates", 1, "taken", "other"],
        ["creates", 2, "leased", "other"],
        ["destroys", 0, "absent", undefined],
        ["destroys", 1, "mismatch", "self"],
        ["destroys", 2, "absent", undefined],
        ["replaces", 0, "absent", undefined],
      ]);
      expect((await objects.holds()).map(({ canonical }) => canonical)).toEqual(["leased"]);
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
        subject: { type: "GROUP", id: "2" },
        epoch: read,
      };
      const lease = objects.uuid();
      expect(await begin(objects, "1", lease, [replace])).toEqual(ok({ created: true }));
      const granted = await objects.runUntil(
        objects.ledger("1").get({ ...objects.envelope, caller: callerOf(), lease }),
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

    test("[B4] destroys without a claim are refused, or counted if that is allowed", async () => {
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
      expect(
        await begin(objects, "1", objects.uuid(), [{ kind: "replace", value: "a" }], { allowMissing: true }),
      ).toEqual(no("FAILED_PRECONDITION"));
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
        record: { status: "ACTIVE", value: "Ada", lease, subject: subjectOf("GROUP", "1") },
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

    test("[C1] of a commit and a rollback at the same time, exactly one succeeds", async () => {
      const objects = await start();
      for (let round = 0; round < 10; round += 1) {
        const lease = objects.uuid();
        await begin(objects, "1", lease, [`n${round}`]);
        const results = await objects.runUntil(
          Promise.all([
            objects.ledger("1").decide(decideRequest(objects.envelope, lease, "COMMITTED")),
            objects.ledger("1").decide(decideRequest(objects.envelope, lease, "ROLLED_BACK")),
          ]),
        );
        expect(results.filter((result) => result.ok)).toHaveLength(1);
        expect((await lookup(objects, `n${round}`))?.kind).toBe(results[0].ok ? "record" : "none");
      }
    });

    test("[C4] [C5] an unknown lease cannot be committed, and another cell's lease is unknown", async () => {
      const objects = await start();
      const lease = objects.uuid();
      await begin(objects, "1", lease, ["ada"]);
      expect(await commit(objects, "2", lease)).toEqual(no("NOT_FOUND"));
      expect(
        await objects.runUntil(objects.ledger("2").get({ ...objects.envelope, caller: callerOf(), lease })),
      ).toEqual(no("NOT_FOUND"));
      expect(await commit(objects, "1", objects.uuid())).toEqual(no("NOT_FOUND"));
      expect(await rollBack(objects, "2", lease)).toEqual(ok({ state: "ROLLED_BACK", cell: "2" }));
      expect(
        await objects.runUntil(objects.ledger("1").get({ ...objects.envelope, caller: callerOf(), lease })),
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
          .decide(
            decideRequest(objects.envelope, lease, "ROLLED_BACK", { caller, reason: "the cell is gone" }),
          ),
      );
      expect(await objects.runUntil(objects.ledger("1").get({ ...objects.envelope, caller, lease }))).toEqual(
        ok({ decidedBy: "operator", reason: "the cell is gone" }),
      );
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
      expect(await set("ACTIVE", between)).toEqual(
        no("FAILED_PRECONDITION", { reason: "CONCURRENT_CHANGE" }),
      );
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

    test("[C7] a rollback of a running begin refuses it, and nothing stays held", async () => {
      const objects = await start();
      const lease = objects.uuid();
      const names = Array.from({ length: 30 }, (_, index) => `n${index}`);
      const [begun, rolled] = await objects.runUntil(
        Promise.all([
          objects.ledger("1").begin(beginRequest(objects.envelope, lease, names)),
          objects.ledger("1").decide(decideRequest(objects.envelope, lease, "ROLLED_BACK")),
        ]),
      );
      expect(begun).toEqual(no("FAILED_PRECONDITION", { reason: "LEASE_ROLLED_BACK" }));
      expect(rolled).toEqual(ok({ state: "ROLLED_BACK" }));
      expect(await objects.holds()).toEqual([]);
    });

    test("[B9] of 100 parallel creates of one name, one wins and no other hold is left", async () => {
      const objects = await start();
      const results = await objects.runUntil(
        Promise.all(
          Array.from({ length: 100 }, (_, index) =>
            objects
              .ledger(String((index % 2) + 1))
              .begin(beginRequest(objects.envelope, objects.uuid(), ["ada"])),
          ),
        ),
      );
      expect(results.filter((result) => result.ok)).toHaveLength(1);
      for (const result of results)
        if (!result.ok) expect(["ABORTED", "ALREADY_EXISTS"]).toContain(result.refusal.code);
      expect(await objects.holds()).toHaveLength(1);
    });

    test("[B9] overlapping batches in opposite order: one wins", async () => {
      const objects = await start();
      for (let round = 0; round < 5; round += 1) {
        const names = Array.from({ length: 12 }, (_, index) => `r${round}-n${index}`);
        const batches = [names, names.toReversed(), [...names.slice(6), ...names.slice(0, 6)]];
        const results = await objects.runUntil(
          Promise.all(
            batches.map((batch, index) =>
              objects
                .ledger(String((index % 2) + 1))
                .begin(beginRequest(objects.envelope, objects.uuid(), batch)),
            ),
          ),
        );
        expect(results.filter((result) => result.ok)).toHaveLength(1);
      }
      expect(await objects.holds()).toHaveLength(5 * 12);
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
      expect(
        (await list(objects, "1", { createdAfterMs: (third?.createdAtMs ?? 0) + 60_000 })).leases,
      ).toEqual([]);
      expect((await list(objects, "2")).leases).toEqual([]);
    });

    test("[R3] records are in source order, with whole source ids, within the range", async () => {
      const objects = await start();
      const lease = objects.uuid();
      const ids = ["9", "10", "100", "2", "x", "a1", "10"];
      const specs: OpSpec[] = ids.map((id, index) => ({
        value: `n${index}`,
        source: { type: "RAILS_TABLE_USERS", id },
      }));
      await begin(objects, "1", lease, specs);
      await commit(objects, "1", lease);
      await begin(objects, "1", objects.uuid(), [
        { value: "granted", source: { type: "RAILS_TABLE_USERS", id: "11" } },
      ]);
      const all: string[] = [];
      for (let shard = 0; shard < shardsOf(objects.envelope.placement); shard += 1) {
        const answer = await objects.runUntil(
          objects.shard(shard).listRecords({
            ...objects.envelope,
            cell: "1",
            sourceType: sourceType("RAILS_TABLE_USERS"),
            bucketTypes: [bucketType("ROUTES")],
            after: "",
            upTo: null,
            cursor: null,
            limit: 1,
          }),
        );
        if (!answer.ok) throw new Error(answer.refusal.detail);
        const whole = await objects.runUntil(
          objects.shard(shard).listRecords({
            ...objects.envelope,
            cell: "1",
            sourceType: sourceType("RAILS_TABLE_USERS"),
            bucketTypes: [bucketType("ROUTES")],
            after: "",
            upTo: null,
            cursor: null,
            limit: 100,
          }),
        );
        if (!whole.ok) throw new Error(whole.refusal.detail);
        expect(whole.value.next).toBeNull();
        const order = whole.value.records.map(({ source }) => source.id);
        expect(order).toEqual(order.toSorted(numbersFirst));
        // A page is the beginning of the whole list.
        const front = answer.value.records.map(({ canonical }) => canonical);
        expect(whole.value.records.slice(0, front.length).map(({ canonical }) => canonical)).toEqual(front);
        expect(front).toHaveLength(Math.min(1, order.length));
        all.push(...order);
      }
      expect(all.toSorted(numbersFirst)).toEqual(["2", "9", "10", "10", "11", "100", "a1", "x"]);
    });

    test("[P1] a ledger and a shard refuse another placement, also before their first use", async () => {
      const objects = await start();
      const lease = objects.uuid();
      await begin(objects, "1", lease, ["ada"]);
      const other = {
        ...objects.envelope,
        placement: objects.envelope.placement.replace(/shards\d+/, "shards32"),
      };
      const mismatch = no("UNAVAILABLE", { reason: "PLACEMENT_MISMATCH" });
      expect(
        await objects.runUntil(
          objects.ledger("1").begin({ ...beginRequest(objects.envelope, objects.uuid(), ["bob"]), ...other }),
        ),
      ).toEqual(mismatch);
      expect(
        await objects.runUntil(
          objects.ledger("2").begin({ ...beginRequest(objects.envelope, objects.uuid(), ["bob"]), ...other }),
        ),
      ).toEqual(mismatch);
      expect(
        await objects.runUntil(objects.shard(0).lookup({ ...other, keys: [keyOf("ROUTES", "ada")] })),
      ).toEqual(mismatch);
      expect(
        await objects.runUntil(objects.shard(20).lookup({ ...other, keys: [keyOf("ROUTES", "ada")] })),
      ).toEqual(mismatch);
      expect(
        await objects.runUntil(
          objects.ledger("9").begin(beginRequest(objects.envelope, objects.uuid(), ["bob"])),
        ),
      ).toEqual(no("PERMISSION_DENIED", { reason: "CELL_UNKNOWN" }));
    });

    test("[M5] a message with an unknown version is refused as retryable, before any effect", async () => {
      const objects = await start();
      const version = no("UNAVAILABLE", { reason: "MESSAGE_VERSION" });
      const lease = objects.uuid();
      expect(
        await objects.runUntil(
          objects.ledger("1").begin({ ...beginRequest(objects.envelope, lease, ["ada"]), version: 99 }),
        ),
      ).toEqual(version);
      expect(
        await objects.runUntil(
          objects.shard(0).exchange({ ...exchangeOf(objects.envelope, "1"), version: 99 }),
        ),
      ).toEqual(version);
      expect(await begin(objects, "1", lease, ["ada"])).toEqual(ok({ created: true }));
    });

    test("[B7] [C1] after a restart, everything that was acknowledged is there and continues", async () => {
      const objects = await start();
      const [granted, committed] = [objects.uuid(), objects.uuid()];
      await begin(objects, "1", granted, ["ada"]);
      await begin(objects, "1", committed, ["bob"]);
      await commit(objects, "1", committed);
      await objects.restart();
      expect((await list(objects, "1")).leases.map(({ lease }) => lease)).toEqual([granted]);
      expect(await lookup(objects, "ada")).toMatchObject({
        kind: "record",
        record: { status: "LEASE_CREATING" },
      });
      expect(await lookup(objects, "bob")).toMatchObject({ kind: "record", record: { status: "ACTIVE" } });
      expect(await begin(objects, "1", granted, ["ada"])).toEqual(ok({ created: false }));
      expect(await begin(objects, "2", objects.uuid(), ["ada"])).toEqual(no("ABORTED"));
      expect(await commit(objects, "1", granted)).toEqual(ok({ state: "COMMITTED" }));
      expect(await begin(objects, "1", objects.uuid(), ["eve"])).toEqual(ok({ created: true }));
      expect((await objects.holds()).map(({ canonical }) => canonical)).toEqual(["eve"]);
    });

    test("[A1] the ledger refuses a revoked key at once", async () => {
      const objects = await start();
      await begin(objects, "1", objects.uuid(), ["ada"]);
      await objects.runUntil(
        objects
          .ledger("1")
          .revoke({ ...objects.envelope, keyId: "k1", expiresAtMs: Number.MAX_SAFE_INTEGER }),
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
  });
}

function numbersFirst(a: string, b: string): number {
  const [left, right] = [a, b].map((id) => (/^\d+$/.test(id) ? Number(id) : Infinity));
  return left === right ? (a < b ? -1 : a > b ? 1 : 0) : (left ?? 0) - (right ?? 0);
}
