/** What a begin grants, refuses and remembers. */
import type { Received } from "../api.ts";
import type { Batch, Check, CheckContext } from "../check-context.ts";
import {
  describe,
  expectEqual,
  expectFields,
  expectRefusal,
  expectStatus,
  expectThat,
} from "../nonconformity.ts";

interface SeenConflict {
  list: "creates" | "destroys" | "replaces";
  index: number;
  bucket?: object;
  kind: string;
  owner?: string;
  retry_after_ms?: number;
}

/** The conflicts of a refusal, in the order of the batch. */
function conflictsOf(json: unknown): string[] {
  const { conflicts = [] } = json as { conflicts?: SeenConflict[] };
  return conflicts
    .map(
      ({ list, index, kind, owner }) => `${list}[${index}] ${kind}${owner === undefined ? "" : ` ${owner}`}`,
    )
    .toSorted();
}

/** Each conflict has the bucket as it was sent, and says when to try again only if a lease is in the way. */
function expectBuckets(json: unknown, batch: Batch): void {
  const { conflicts = [] } = json as { conflicts?: SeenConflict[] };
  for (const { list, index, kind, bucket, retry_after_ms: waitMs } of conflicts) {
    const where = `${list}[${index}]`;
    expectEqual(bucket, batch[list]?.[index]?.bucket, `the bucket of ${where}`);
    const type = kind === "leased" ? "number" : "undefined";
    expectEqual(typeof waitMs, type, `the type of retry_after_ms of ${where}`);
  }
}

/** Neither a field of a conflict nor the text of a refusal says which other cell is in the way. */
function expectNoCell(context: CheckContext, received: Received): void {
  const { conflicts = [] } = received.json as { conflicts?: SeenConflict[] };
  for (const conflict of conflicts) {
    const wait = conflict.kind === "leased" ? ["retry_after_ms"] : [];
    const fields = ["bucket", "index", "kind", "list", "owner", ...wait];
    expectEqual(Object.keys(conflict).toSorted(), fields, "the fields of a conflict");
  }
  const named = new RegExp(`cell(_id)?[\\W_]*${context.cellId("other")}(?!\\d)`, "i");
  expectThat(!named.test(received.text), `${describe(received)}; it must not say which cell is in the way`);
}

/** How many begins of a race run at a time. */
const RACERS = 6;

const malformed: readonly [what: string, batchOf: (context: CheckContext) => unknown, field: string][] = [
  ["a name twice", (c) => twice(c, (name) => [name, name]), "creates[1].bucket.value"],
  [
    "a name in two lists",
    (c) => {
      const name = c.name();
      return { creates: [c.op(name)], destroys: [{ bucket: c.bucket(name) }] };
    },
    "destroys[0].bucket.value",
  ],
  ["an unknown field", (c) => ({ creates: [{ ...c.op(c.name()), colour: 1 }] }), "creates[0].colour"],
  ["no subject", (c) => ({ creates: [{ ...c.op(c.name()), subject: undefined }] }), "creates[0].subject"],
  ["an empty name", (c) => ({ creates: [c.op("")] }), "creates[0].bucket.value"],
  [
    "a control character in a name",
    (c) => ({ creates: [c.op(`${c.name()}\u0007`)] }),
    "creates[0].bucket.value",
  ],
  [
    "a lone surrogate in a name",
    (c) => ({ creates: [c.op(`${c.name()}\ud800`)] }),
    "creates[0].bucket.value",
  ],
];

const twice = (context: CheckContext, of: (name: string) => string[]): object => ({
  creates: of(context.name()).map((name) => context.op(name)),
});

export const beginChecks: readonly Check[] = [
  {
    id: "begin/malformed",
    rules: ["B1"],
    title: "A begin that is malformed is refused with the name of its field, and begins no lease.",
    run: async (context) => {
      for (const [what, batchOf, field] of malformed) {
        const { uuid, received } = await context.begin(batchOf(context) as object);
        expectThat(received.status === 400, `a batch with ${what}: ${describe(received)}; expected 400`);
        expectRefusal(received, 400, { code: "INVALID_ARGUMENT" });
        const { field: named } = received.json as { field?: string };
        expectThat(
          named === field || field.startsWith(`${named}.`) || named?.startsWith(field) === true,
          `a batch with ${what} names the field ${named}; expected ${field}`,
        );
        expectStatus(await context.send("GET", context.leasePath(uuid)), 404);
      }
    },
  },
  {
    id: "begin/spellings",
    rules: ["B1", "P1"],
    title: "Two spellings are one name for begins exactly when they are for lookups.",
    run: async (context) => {
      const name = context.name();
      await context.own([name]);
      for (const spelling of [name.toUpperCase(), `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`]) {
        const isSame = (await context.lookUp(spelling)).status === 200;
        const { uuid, by, received } = await context.begin({ creates: [context.op(spelling)] });
        if (received.status === 201) await context.rollBack({ uuid, by });
        else expectFields(received, { conflicts: [{ bucket: context.bucket(spelling) }] });
        expectThat(
          isSame === (received.status === 409),
          `${spelling} is ${isSame ? "" : "not "}found where ${name} is owned, but ${describe(received)}`,
        );
        const both = { creates: [context.op(context.name()), context.op(spelling), context.op(name)] };
        const { received: batch } = await context.begin(both);
        const are = isSame ? "one name" : "two names";
        expectThat(
          isSame === (batch.status === 400),
          `a batch with ${name} and ${spelling}, which are ${are}: ${describe(batch)}`,
        );
      }
    },
  },
  {
    id: "begin/replay",
    rules: ["B2"],
    title:
      "The same batch under the same UUID is the same lease, while it is granted and once it is committed.",
    run: async (context) => {
      const op = context.op(context.name());
      const batch = { creates: [op] };
      const lease = await context.granted(batch);
      const again = await context.begin(batch, { uuid: lease.uuid });
      expectStatus(again.received, 200);
      expectFields(again.received, { lease: { uuid: lease.uuid, state: "GRANTED" } });
      // Ids may be numbers or strings, and defaults may be given.
      const numbered = { ...op, subject: { ...op.subject, id: 7 } };
      const written = { creates: [numbered], destroys: [], allow_missing: false } as object;
      const upper = await context.begin(written, { uuid: lease.uuid.toUpperCase() });
      expectStatus(upper.received, 200);
      expectFields(upper.received, { lease: { uuid: lease.uuid } });
      await context.commit(lease);
      const late = await context.begin(batch, { uuid: lease.uuid });
      expectStatus(late.received, 200);
      expectFields(late.received, { lease: { uuid: lease.uuid, state: "COMMITTED" } });
    },
  },
  {
    id: "begin/replay-at-once",
    rules: ["B2"],
    title:
      "Of several calls with the same batch and UUID at a time, one makes the lease and the others join it.",
    run: async (context) => {
      const batch = { creates: [context.op(context.name()), context.op(context.name())] };
      const uuid = context.newUuid();
      const answers = await Promise.all(Array.from({ length: RACERS }, () => context.begin(batch, { uuid })));
      for (const { received } of answers) {
        expectStatus(received, 200, 201);
        expectFields(received, { lease: { uuid, state: "GRANTED" } });
      }
      const made = answers.filter(({ received }) => received.status === 201).length;
      const isRepeated = answers.some(({ received }) => received.isRepeated);
      expectThat(made === 1 || isRepeated, `${made} of ${RACERS} equal begins were answered with 201`);
    },
  },
  {
    id: "begin/reused-uuid",
    rules: ["B2"],
    title: "Another batch under a UUID that was used is refused with LEASE_ID_REUSED.",
    run: async (context) => {
      const [name, free] = [context.name(), context.name()];
      const { uuid } = await context.granted({ creates: [context.op(name)] });
      for (const batch of [
        { creates: [context.op(free)] },
        { creates: [context.op(name, { source: free })] },
        { creates: [context.op(name.toUpperCase(), { source: name })] },
        { creates: [context.op(name), context.op(free)] },
        { creates: [context.op(name)], allow_missing: true },
        { replaces: [context.op(name)] },
      ]) {
        const { received } = await context.begin(batch, { uuid });
        expectRefusal(received, 409, { code: "FAILED_PRECONDITION", reason: "LEASE_ID_REUSED" });
        expectFields(received, { retryable: false });
      }
      await context.absent(free);
    },
  },
  {
    id: "begin/after-rollback",
    rules: ["B2"],
    title: "A begin under the UUID of a lease that was rolled back is refused with LEASE_ROLLED_BACK.",
    run: async (context) => {
      const name = context.name();
      const batch = { creates: [context.op(name)] };
      const lease = await context.granted(batch);
      await context.rollBack(lease);
      const { received } = await context.begin(batch, { uuid: lease.uuid });
      expectRefusal(received, 409, { code: "FAILED_PRECONDITION", reason: "LEASE_ROLLED_BACK" });
      await context.absent(name);
    },
  },
  {
    id: "begin/two-cells-one-uuid",
    rules: ["B2"],
    title: "Two cells may use the same UUID for two leases.",
    needs: ["other"],
    run: async (context) => {
      const [mine, theirs] = [context.name(), context.name()];
      const lease = await context.granted({ creates: [context.op(mine)] });
      await context.granted({ creates: [context.op(theirs)] }, "other", lease.uuid);
      await context.rollBack({ uuid: lease.uuid, by: "other" });
      await context.absent(theirs);
      await context.commit(lease);
      await context.record(mine);
    },
  },
  {
    id: "begin/all-or-nothing",
    rules: ["B4"],
    title: "One conflict among many names refuses all of them, and leaves the others free.",
    run: async (context) => {
      const names = context.names(20);
      const [taken = "", ...free] = names;
      await context.own([taken]);
      const { received } = await context.begin({
        creates: [...free, taken].map((name) => context.op(name)),
      });
      expectRefusal(received, 409, { code: "ALREADY_EXISTS" });
      expectEqual(conflictsOf(received.json), [`creates[${free.length}] taken self`], "conflicts");
      for (const name of free) await context.absent(name);
      await context.rollBack(await context.granted({ creates: free.map((name) => context.op(name)) }));
    },
  },
  {
    id: "begin/conflicts",
    rules: ["B6"],
    title: "A refusal lists every conflict with its kind and the place in the batch.",
    run: async (context) => {
      const [mine = "", held = "", absent = "", moved = ""] = context.names(4);
      await context.own([mine, moved]);
      const holding = await context.granted({ creates: [context.op(held)] });
      const batch = {
        creates: [context.op(mine), context.op(context.name()), context.op(held)],
        destroys: [{ bucket: context.bucket(absent) }, context.op(moved, { subject: "8" })],
        replaces: [context.op(context.name())],
      };
      const { received } = await context.begin(batch);
      expectRefusal(received, 409, { code: "ALREADY_EXISTS" });
      const expected = [
        "creates[0] taken self",
        "creates[2] leased self",
        "destroys[0] absent",
        "destroys[1] mismatch self",
        "replaces[0] absent",
      ];
      expectEqual(conflictsOf(received.json), expected, "conflicts");
      expectBuckets(received.json, batch);
      await context.rollBack(holding);
    },
  },
  {
    id: "begin/code-of-conflicts",
    rules: ["B6"],
    title: "The most lasting conflict decides the code of a refusal.",
    run: async (context) => {
      const [held = "", absent = ""] = context.names(2);
      const holding = await context.granted({ creates: [context.op(held)] });
      const leased = await context.begin({ creates: [context.op(held)] });
      expectRefusal(leased.received, 409, { code: "ABORTED" });
      expectFields(leased.received, { retryable: true });
      const wait = leased.received.header("retry-after");
      expectThat(Number(wait) >= 1, `Retry-After of a begin that may be repeated is ${wait ?? "absent"}`);
      const permanent = await context.begin({
        creates: [context.op(held)],
        destroys: [{ bucket: context.bucket(absent) }],
      });
      expectRefusal(permanent.received, 409, { code: "FAILED_PRECONDITION" });
      expectFields(permanent.received, { retryable: false });
      await context.rollBack(holding);
    },
  },
  {
    id: "begin/conflicts-of-cells",
    rules: ["B6"],
    title: "A conflict with another cell says so, and never which cell it is.",
    needs: ["other"],
    run: async (context) => {
      const [theirs = "", held = ""] = context.names(2);
      await context.own([theirs], "other");
      const holding = await context.granted({ creates: [context.op(held)] }, "other");
      const batch = {
        creates: [context.op(held)],
        destroys: [{ bucket: context.bucket(theirs) }],
      };
      const { received } = await context.begin(batch);
      expectRefusal(received, 409, { code: "FAILED_PRECONDITION" });
      expectEqual(
        conflictsOf(received.json),
        ["creates[0] leased other", "destroys[0] not_owner other"],
        "conflicts",
      );
      expectBuckets(received.json, batch);
      expectNoCell(context, received);
      const taking = { creates: [context.op(theirs)] };
      const { received: taken } = await context.begin(taking);
      expectRefusal(taken, 409, { code: "ALREADY_EXISTS" });
      expectEqual(conflictsOf(taken.json), ["creates[0] taken other"], "conflicts");
      expectBuckets(taken.json, taking);
      expectNoCell(context, taken);
      await context.rollBack(holding);
    },
  },
  {
    id: "begin/destroy-in-progress",
    rules: ["B8"],
    title: "While a lease destroys a claim, other begins of the name are refused with `leased`.",
    run: async (context) => {
      const name = context.name();
      const by = context.api.has("other") ? "other" : "cell";
      await context.own([name]);
      const destroying = await context.granted({ destroys: [{ bucket: context.bucket(name) }] });
      for (const batch of [
        { creates: [context.op(name)] },
        { destroys: [{ bucket: context.bucket(name) }] },
        { replaces: [context.op(name)] },
      ]) {
        const { received } = await context.begin(batch, { by });
        expectRefusal(received, 409, { code: "ABORTED" });
        expectFields(received, { conflicts: [{ kind: "leased" }] });
      }
      await context.commit(destroying);
      await context.rollBack(await context.granted({ creates: [context.op(name)] }, by));
    },
  },
  {
    id: "begin/race",
    rules: ["B4", "B9"],
    title: "Of begins that compete for the same names, exactly one is granted.",
    run: async (context) => {
      for (let round = 0; round < 5; round += 1) {
        const names = context.names(3);
        const racers = await Promise.all(
          Array.from({ length: RACERS }, async (_, racer) => {
            const by = context.api.has("other") && racer % 2 === 1 ? "other" : "cell";
            const order = racer % 3 === 0 ? names : names.toReversed();
            return context.begin({ creates: order.map((name) => context.op(name)) }, { by });
          }),
        );
        const granted = racers.filter(({ received }) => received.status < 300);
        expectThat(
          granted.length === 1,
          `${granted.length} of ${RACERS} begins for the same names were granted at once`,
        );
        for (const { received } of racers)
          if (received.status >= 300) expectRefusal(received, 409, { code: "ABORTED" });
        for (const winner of granted) await context.rollBack(winner);
      }
    },
  },
  {
    id: "begin/epoch",
    rules: ["B10"],
    title: "An op with the epoch of another claim is a mismatch, and one with that of the claim is granted.",
    run: async (context) => {
      const [gone = "", kept = ""] = context.names(2);
      await context.own([gone, kept]);
      const [first = 0, second = 0] = [
        (await context.record(gone)).epoch,
        (await context.record(kept)).epoch,
      ];
      const batchOf = (by: number) => ({
        destroys: [{ bucket: context.bucket(gone), epoch: first + by }],
        replaces: [context.op(kept, { epoch: second + by })],
      });
      const { received } = await context.begin(batchOf(1));
      expectRefusal(received, 409, { code: "FAILED_PRECONDITION" });
      expectEqual(
        conflictsOf(received.json),
        ["destroys[0] mismatch self", "replaces[0] mismatch self"],
        "conflicts",
      );
      const lease = await context.granted(batchOf(0));
      expectFields(await context.send("GET", context.leasePath(lease.uuid)), {
        lease: { destroys: [{ epoch: first }], replaces: [{ epoch: second }] },
      });
      // The epoch is part of the batch.
      const bare = { destroys: [{ bucket: context.bucket(gone) }], replaces: [context.op(kept)] };
      const reused = await context.begin(bare, { uuid: lease.uuid });
      expectRefusal(reused.received, 409, { code: "FAILED_PRECONDITION", reason: "LEASE_ID_REUSED" });
      expectStatus((await context.begin(batchOf(0), { uuid: lease.uuid })).received, 200);
      await context.commit(lease);
      const late = await context.begin({ replaces: [context.op(kept, { epoch: second })] });
      expectRefusal(late.received, 409, { code: "FAILED_PRECONDITION" });
      await context.absent(gone);
    },
  },
  {
    id: "begin/allow-missing",
    rules: ["B12"],
    title: "With allow_missing, a destroy of a name that nobody has is counted, and a replace takes it.",
    run: async (context) => {
      const destroys = [{ bucket: context.bucket(context.name()) }];
      expectRefusal((await context.begin({ destroys })).received, 409, { code: "FAILED_PRECONDITION" });
      const lease = await context.granted({ destroys, allow_missing: true });
      expectFields(lease.received, { lease: { counts: { creates: 0, destroys: 1, missing: 1 } } });
      await context.commit(lease);
      const name = context.name();
      const replaces = [context.op(name)];
      expectRefusal((await context.begin({ replaces })).received, 409, {
        code: "FAILED_PRECONDITION",
        conflicts: [{ kind: "absent" }],
      });
      await context.commit(await context.granted({ replaces, allow_missing: true }));
      await context.record(name);
      expectRefusal((await context.begin({})).received, 400, { code: "INVALID_ARGUMENT", field: "body" });
      await context.commit(await context.granted({ allow_missing: true }));
    },
  },
];
