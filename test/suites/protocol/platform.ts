/**
 * What the platform could do otherwise: calls that overlap, messages between objects, restarts, and the order
 * of rows. It runs in Node over node:sqlite and in workerd with Durable Objects. What is the same on both is
 * in test/coordinator/protocol.test.ts, and what callers can see is checked on every host
 * (src/users/conformance/checks).
 */
import { describe, expect, test } from "vitest";
import type { ListRecordsAnswer } from "../../../src/coordinator/capabilities/records/messages.ts";
import { shardsOf } from "../../../src/coordinator/kernel/placement.ts";
import { beginRequest, decideRequest, keyOf, type OpSpec } from "../../support/ops.ts";
import { bucketType, sourceType } from "../../support/types.ts";
import { begin, commit, list, lookup, no, ok, own, type TestObjects } from "./calls.ts";

export function platformSuite(name: string, start: () => Promise<TestObjects>): void {
  describe(name, () => {
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
      const listed = async (shard: number, limit: number): Promise<ListRecordsAnswer> => {
        const answer = await objects.runUntil(
          objects.shard(shard).listRecords({
            ...objects.envelope,
            cell: "1",
            sourceType: sourceType("RAILS_TABLE_USERS"),
            bucketTypes: [bucketType("ROUTES")],
            after: "",
            upTo: null,
            cursor: null,
            limit,
          }),
        );
        if (!answer.ok) throw new Error(answer.refusal.detail);
        return answer.value;
      };
      const all: string[] = [];
      for (let shard = 0; shard < shardsOf(objects.envelope.placement); shard += 1) {
        const page = await listed(shard, 1);
        const whole = await listed(shard, 100);
        expect(whole.next).toBeNull();
        const order = whole.records.map(({ source }) => source.id);
        expect(order).toEqual(order.toSorted(numbersFirst));
        // A page is the beginning of the whole list.
        const front = page.records.map(({ canonical }) => canonical);
        expect(whole.records.slice(0, front.length).map(({ canonical }) => canonical)).toEqual(front);
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
  });
}

function numbersFirst(a: string, b: string): number {
  const [left, right] = [a, b].map((id) => (/^\d+$/.test(id) ? Number(id) : Infinity));
  return left === right ? (a < b ? -1 : a > b ? 1 : 0) : (left ?? 0) - (right ?? 0);
}
