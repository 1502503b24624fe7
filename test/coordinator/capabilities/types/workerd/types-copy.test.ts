/** Tests of an isolate's copy of the set of types (T2, T4, T5, T6). */
import { beforeEach, describe, expect, test } from "vitest";
import type {
  DeclaredTypes,
  KnownTypes,
  TypeSet,
  UseTypes,
} from "../../../../../src/coordinator/capabilities/types/messages.ts";
import { defaultLimits } from "../../../../../src/common/limits.ts";
import type { Envelope } from "../../../../../src/coordinator/kernel/messages.ts";
import { placementOf } from "../../../../../src/coordinator/kernel/placement.ts";
import { ok, refused, type Result } from "../../../../../src/coordinator/kernel/refusal.ts";
import { Types, type TypeEntry, type TypeKind } from "../../../../../src/common/types/types.ts";
import {
  TypesCopy,
  type StoredType,
  type TypeReference,
} from "../../../../../src/coordinator/capabilities/types/edge/types-copy.ts";
import type { Objects } from "../../../../../src/coordinator/objects/objects.ts";
import { STAMP } from "../../../../support/ops.ts";

const envelope = (): Envelope => ({ ...STAMP, placement: placementOf(4) });
const rule = { form: "plain", script: "single", case: "folded" } as const;

const entry = (name: string, number: number, isInUse = false, kind: TypeKind = "bucket"): TypeEntry => ({
  kind,
  name,
  number,
  rule: kind === "bucket" ? rule : null,
  isInUse,
});
const used = (name: string, number: number, kind?: TypeKind): TypeEntry => entry(name, number, true, kind);

const at = (position: number, ...entries: TypeEntry[]): DeclaredTypes => ({
  position,
  declaredAt: position,
  entries,
});
const complete = (set: DeclaredTypes): Result<KnownTypes> => ok({ ...set, isComplete: true });
const left = (set: DeclaredTypes): Result<KnownTypes> => ok({ ...set, isComplete: false });

const reference = (name: string, kind: TypeKind = "bucket"): TypeReference => ({
  kind,
  name,
  field: `creates[0].${kind}.type`,
});
const stored = (number: number, kind: TypeKind = "bucket"): StoredType => ({ kind, number });

const no = (code: string, more: object = {}): object => ({
  ok: false,
  refusal: expect.objectContaining({ code, ...more }) as unknown,
});

/** A directory whose answers the test gives, or never gives. */
class Fixture {
  readonly reads: ((reply: Result<KnownTypes>) => void)[] = [];
  readonly uses: { message: UseTypes; answer: (reply: Result<DeclaredTypes>) => void }[] = [];
  readonly copy: TypesCopy;
  /** What D1 answers. */
  copied: Result<TypeSet | undefined> = ok(undefined);
  readonly saved: TypeSet[] = [];
  /** What D1 answers to a set that is saved. */
  save = async ({ position }: TypeSet): Promise<Result<number>> => ok(position);

  constructor(limits = defaultLimits) {
    const directory = {
      types: () => new Promise((resolve) => this.reads.push(resolve)),
      useTypes: (message: UseTypes) => new Promise((answer) => this.uses.push({ message, answer })),
    };
    this.copy = new TypesCopy(
      { directory: () => directory } as unknown as Pick<Objects, "directory">,
      limits,
      envelope,
      {
        types: async () => this.copied,
        save: (set) => {
          this.saved.push(set);
          return this.save(set);
        },
      },
    );
  }

  /** Answers a reading, and lets everything run that waits for it. */
  async answer(read: number, reply: Result<KnownTypes>): Promise<void> {
    await settled();
    const answer = this.reads[read];
    if (answer === undefined) throw new Error(`there is no reading ${read}`);
    answer(reply);
    await settled();
  }
}

const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

/** The entry of a type in an answer, or the refusal. */
const named = (result: Result<Types>, name: string, kind: TypeKind = "bucket") =>
  result.ok ? result.value.named(kind, name) : result;

let fixture: Fixture;
let copy: TypesCopy;

beforeEach(() => {
  fixture = new Fixture();
  ({ copy } = fixture);
});

describe("a request that names types", () => {
  test("[T4] needs no message if all of them are in use in the copy, whatever its age", async () => {
    copy.take(at(5, used("A", 1), used("S", 1, "source"), entry("B", 2)));
    expect(named(await copy.forRead([reference("A"), reference("S", "source")]), "A")).toEqual(used("A", 1));
    expect(await copy.forRead([])).toMatchObject({ ok: true });
    expect(fixture.reads).toHaveLength(0);
  });

  test("[T4] reads the directory if the copy has one of them as not in use", async () => {
    copy.take(at(5, used("A", 1), entry("B", 2)));
    const reading = copy.forRead([reference("A"), reference("B")]);
    expect(fixture.reads).toHaveLength(1);
    // The entry has changed since the copy was made.
    await fixture.answer(0, complete(at(9, used("A", 1), entry("B", 7))));
    expect(named(await reading, "B")).toEqual(entry("B", 7));
    // The next request reads again, because the type may have changed once more.
    const next = copy.forRead([reference("B")]);
    await settled();
    expect(fixture.reads).toHaveLength(2);
    await fixture.answer(1, complete(at(11, used("A", 1), used("B", 8))));
    expect(named(await next, "B")).toEqual(used("B", 8));
    expect(named(await copy.forRead([reference("B")]), "B")).toEqual(used("B", 8));
    expect(fixture.reads).toHaveLength(2);
  });

  test("[T4] is told the field and the declared types if one of them is not declared", async () => {
    copy.take(at(5, used("A", 1)));
    const reading = copy.forRead([reference("A"), reference("NONE"), reference("OTHER")]);
    await fixture.answer(0, complete(at(5, used("A", 1), entry("Z", 2), entry("S", 1, false, "subject"))));
    expect(await reading).toEqual(
      no("INVALID_ARGUMENT", {
        field: "creates[0].bucket.type",
        detail: "`creates[0].bucket.type` must name a declared bucket type, and NONE is none; declared: A, Z",
      }),
    );
  });

  test("[T4] of another kind is another type", async () => {
    copy.take(at(5, used("A", 1)));
    const reading = copy.forRead([reference("A", "source")]);
    await fixture.answer(0, complete(at(5, used("A", 1), used("S", 1, "source"))));
    expect(await reading).toEqual(no("INVALID_ARGUMENT", { field: "creates[0].source.type" }));
  });

  test.each(["__proto__", "constructor", "toString"])("[T4] is not misled by the name %s", async (name) => {
    copy.take(at(5, used("A", 1)));
    const reading = copy.forRead([reference(name)]);
    await fixture.answer(0, complete(at(5, used("A", 1))));
    expect(await reading).toEqual(no("INVALID_ARGUMENT"));
  });

  test("[T4] reads the directory if there is no copy yet", async () => {
    const reading = copy.forRead([reference("A")]);
    await fixture.answer(0, complete(at(0, entry("A", 1))));
    expect(named(await reading, "A")).toEqual(entry("A", 1));
    expect(copy.position).toBe(0);
  });

  test("[T4] cannot be answered while the directory cannot be read, and is never told unknown", async () => {
    copy.take(at(5, used("A", 1), entry("B", 2)));
    const reading = copy.forRead([reference("B")]);
    await fixture.answer(0, refused("UNAVAILABLE", "down"));
    expect(await reading).toEqual(no("UNAVAILABLE"));
    // Types in use are answered all the same.
    expect(await copy.forRead([reference("A")])).toMatchObject({ ok: true });
    const later = copy.forRead([reference("B")]);
    await fixture.answer(1, complete(at(5, used("A", 1), entry("B", 2))));
    expect(named(await later, "B")).toEqual(entry("B", 2));
  });

  test("[T2] [T4] gets types in use from D1 without a copy and a directory, and nothing else", async () => {
    const cold = new Fixture();
    cold.copied = ok(at(5, used("A", 1), entry("B", 2)));
    const [inUse, other] = [cold.copy.forRead([reference("A")]), cold.copy.forRead([reference("B")])];
    await cold.answer(0, refused("UNAVAILABLE", "down"));
    await cold.answer(1, refused("UNAVAILABLE", "down"));
    expect(named(await inUse, "A")).toEqual(used("A", 1));
    expect(await other).toEqual(no("UNAVAILABLE"));
    // It is not kept: the directory is asked again.
    expect(cold.copy.current).toBeUndefined();
  });

  test("[T4] is not kept waiting by a directory that never answers", async () => {
    const slow = new Fixture({ ...defaultLimits, inquiryTimeoutMs: 5, exchangeTimeoutMs: 5 });
    expect(await slow.copy.forRead([reference("A")])).toEqual(no("DEADLINE_EXCEEDED"));
    const next = slow.copy.forRead([reference("A")]);
    await expect.poll(() => slow.reads.length).toBe(2);
    await slow.answer(1, complete(at(0, entry("A", 1))));
    expect(named(await next, "A")).toEqual(entry("A", 1));
  });
});

describe("requests at the same time", () => {
  test("[T4] share the reading that begins after all of them", async () => {
    const first = copy.forRead([reference("A")]);
    const others = [copy.forRead([reference("B")]), copy.forRead([reference("A")]), copy.read()];
    expect(fixture.reads).toHaveLength(1);
    await fixture.answer(0, complete(at(5, entry("A", 1))));
    expect(named(await first, "A")).toEqual(entry("A", 1));
    // B was declared while the first reading was under way. Only the second one has to know of it.
    expect(fixture.reads).toHaveLength(2);
    await fixture.answer(1, complete(at(6, entry("A", 1), entry("B", 2))));
    for (const result of await Promise.all(others)) expect(result.ok).toBe(true);
    expect(fixture.reads).toHaveLength(2);
  });

  test("[T4] do not use a reading that began before they came", async () => {
    const first = copy.forRead([reference("A")]);
    const late = copy.forRead([reference("B")]);
    // The answer to the first reading was made before B was declared.
    await fixture.answer(0, complete(at(5, entry("A", 1))));
    await first;
    await fixture.answer(1, complete(at(6, entry("A", 1), entry("B", 2))));
    expect(named(await late, "B")).toEqual(entry("B", 2));
  });

  test("[T4] are each followed by one more reading at most", async () => {
    const wave = (): Promise<Result<Types>>[] =>
      Array.from({ length: 50 }, () => copy.forRead([reference("A")]));
    const all = wave();
    for (let n = 0; n < 5; n += 1) {
      all.push(...wave());
      expect(fixture.reads).toHaveLength(n + 1);
      await fixture.answer(n, complete(at(5, entry("A", 1))));
    }
    await fixture.answer(5, complete(at(5, entry("A", 1))));
    for (const result of await Promise.all(all)) expect(result.ok).toBe(true);
    expect(fixture.reads).toHaveLength(6);
    // Once all is quiet, the next one reads at once.
    const last = copy.forRead([reference("A")]);
    await settled();
    expect(fixture.reads).toHaveLength(7);
    await fixture.answer(6, complete(at(5, entry("A", 1))));
    expect((await last).ok).toBe(true);
  });

  test("[T4] do not wait forever for a request whose work the runtime has dropped", async () => {
    // Neither an answer nor a timer of such a request ever comes (see `DirectoryCopy`).
    const dropped = new Fixture({ ...defaultLimits, inquiryTimeoutMs: 1e9, exchangeTimeoutMs: 1e9 });
    void dropped.copy.forRead([reference("A")]);
    const next = dropped.copy.forRead([reference("A")]);
    await expect.poll(() => dropped.reads.length).toBeGreaterThan(1);
    await dropped.answer(1, complete(at(5, entry("A", 1))));
    expect(named(await next, "A")).toEqual(entry("A", 1));
  });

  test("[T4] go on after a reading that failed", async () => {
    const first = copy.forRead([reference("A")]);
    const second = copy.forRead([reference("A")]);
    await fixture.answer(0, refused("UNAVAILABLE", "down"));
    expect(await first).toEqual(no("UNAVAILABLE"));
    await fixture.answer(1, complete(at(5, entry("A", 1))));
    expect(named(await second, "A")).toEqual(entry("A", 1));
  });
});

describe("a copy", () => {
  test("is only replaced by a newer set", () => {
    expect([copy.current, copy.position]).toEqual([undefined, undefined]);
    copy.take(at(0, entry("A", 1)));
    expect(copy.position).toBe(0);
    copy.take(at(5, used("A", 1)));
    copy.take(at(4, entry("A", 3)));
    copy.take(at(5, entry("A", 4)));
    expect(copy.position).toBe(5);
    expect(copy.current?.named("bucket", "A")).toEqual(used("A", 1));
  });

  test("[T4] is not replaced by an older answer, which the request gets that asked for it", async () => {
    copy.take(at(5, used("A", 1)));
    const reading = copy.forRead([reference("B")]);
    copy.take(at(9, used("A", 1), used("B", 2)));
    await fixture.answer(0, complete(at(8, used("A", 1), entry("B", 2))));
    expect(named(await reading, "B")).toEqual(entry("B", 2));
    expect(copy.position).toBe(9);
  });
});

describe("the types of a begin", () => {
  const read = async (set: DeclaredTypes, ...names: string[]): Promise<Types> => {
    const reading = copy.forRead(names.map((name) => reference(name)));
    await fixture.answer(0, complete(set));
    const result = await reading;
    if (!result.ok) throw new Error(result.refusal.detail);
    return result.value;
  };

  test("[T2] need no message if they are in use", async () => {
    copy.take(at(5, used("A", 1)));
    const types = await copy.forRead([reference("A")]);
    expect(types.ok && (await copy.use(types.value, [reference("A")]))).toEqual({ ok: true, value: null });
    expect([fixture.reads.length, fixture.uses.length]).toEqual([0, 0]);
  });

  test("[T2] are marked as in use, exactly as they were read, before anything else happens", async () => {
    const set = at(5, used("A", 1), entry("B", 2), entry("C", 3));
    const types = await read(set, "A", "B");
    // The set changes after the reading. The begin was made with what was read, so that is compared.
    copy.take(at(9, used("A", 1), entry("B", 7), entry("C", 3)));
    let done: Result<null> | undefined;
    const using = copy.use(types, [reference("A"), reference("B")]).then((result) => (done = result));
    await settled();
    expect(done).toBeUndefined();
    expect(fixture.uses.map(({ message }) => message)).toEqual([
      { ...envelope(), entries: [entry("B", 2)], copiedAt: 9 },
    ]);
    fixture.uses[0]?.answer(ok(at(10, used("A", 1), used("B", 2), entry("C", 3))));
    expect(await using).toEqual({ ok: true, value: null });
    // The copy has the marks, so the next begin needs no message.
    expect(named(await copy.forRead([reference("B")]), "B")).toEqual(used("B", 2));
    expect(fixture.reads).toHaveLength(1);
  });

  test("[T2] are refused if the directory has another entry by then, and the copy stays", async () => {
    const types = await read(at(5, entry("A", 1)), "A");
    const using = copy.use(types, [reference("A")]);
    await settled();
    fixture.uses[0]?.answer(refused("UNAVAILABLE", "changed", { reason: "TYPES_CHANGED" }));
    expect(await using).toEqual(no("UNAVAILABLE", { reason: "TYPES_CHANGED" }));
    const next = copy.forRead([reference("A")]);
    await fixture.answer(1, complete(at(6, entry("A", 4))));
    expect(named(await next, "A")).toEqual(entry("A", 4));
  });

  test("[T2] are not marked if the answer is lost, so the begin is not sent", async () => {
    const slow = new Fixture({ ...defaultLimits, inquiryTimeoutMs: 5, exchangeTimeoutMs: 5 });
    slow.copy.take(at(5, entry("A", 1)));
    const types = new Types([entry("A", 1)]);
    expect(await slow.copy.use(types, [reference("A")])).toEqual(no("DEADLINE_EXCEEDED"));
    expect(named(ok(slow.copy.current ?? types), "A")).toEqual(entry("A", 1));
  });

  test("[T2] are marked only when D1 has the whole set", async () => {
    const types = await read(at(5, entry("A", 1), entry("B", 2)), "A");
    let finish: ((saved: Result<number>) => void) | undefined;
    fixture.save = () => new Promise((resolve) => (finish = resolve));
    const using = copy.use(types, [reference("A")]);
    await settled();
    expect(fixture.saved).toEqual([{ position: 5, entries: [entry("A", 1), entry("B", 2)] }]);
    expect(fixture.uses).toEqual([]);
    // D1 has a newer set, which the directory compares with its own.
    finish?.(ok(8));
    await settled();
    expect(fixture.uses[0]?.message).toEqual({ ...envelope(), entries: [entry("A", 1)], copiedAt: 8 });
    fixture.uses[0]?.answer(ok(at(9, used("A", 1), entry("B", 2))));
    expect(await using).toEqual(ok(null));
  });

  test("[T2] are not marked while D1 cannot be reached, unless the set is the shipped one", async () => {
    const types = await read(at(5, entry("A", 1)), "A");
    fixture.save = async () => refused("UNAVAILABLE", "D1_ERROR: no such table");
    const refusal = await copy.use(types, [reference("A")]);
    expect(refusal).toEqual(no("UNAVAILABLE", { retryAfterMs: 1_000 }));
    expect(JSON.stringify(refusal)).not.toContain("D1_ERROR");
    expect(fixture.uses).toEqual([]);
    copy.take({ ...at(9, entry("A", 1), used("B", 2)), declaredAt: 0 });
    const using = copy.use(types, [reference("A")]);
    await settled();
    expect(fixture.uses[0]?.message).toMatchObject({ copiedAt: 0 });
    fixture.uses[0]?.answer(ok(at(10, used("A", 1), used("B", 2))));
    expect(await using).toEqual(ok(null));
  });
});

describe("an answer with stored rows", () => {
  test("[T5] takes the names from entries in use in the copy, without a message", async () => {
    copy.take(at(5, used("A", 1), used("S", 1, "source"), entry("B", 2)));
    const types = await copy.forAnswer([stored(1), stored(1, "source"), stored(1)]);
    expect(types.ok && types.value.numbered("bucket", 1)).toEqual(used("A", 1));
    expect(await copy.forAnswer([])).toMatchObject({ ok: true });
    expect(fixture.reads).toHaveLength(0);
  });

  test("[T5] reads the directory if a row has a type that the copy does not have in use", async () => {
    copy.take(at(5, used("A", 1), entry("B", 2)));
    const reading = copy.forAnswer([stored(1), stored(2)]);
    // Number 2 had another name when the copy was made.
    await fixture.answer(0, complete(at(9, used("A", 1), used("C", 2), used("D", 3))));
    const types = await reading;
    expect(types.ok && types.value.numbered("bucket", 2)?.name).toBe("C");
    // The copy is new now.
    expect(await copy.forAnswer([stored(3)])).toMatchObject({ ok: true });
    expect(fixture.reads).toHaveLength(1);
  });

  test("[T5] is refused as temporary if the directory lacks the number, or cannot be read", async () => {
    const reading = copy.forAnswer([stored(9)]);
    await fixture.answer(0, complete(at(5, used("A", 1), used("S", 9, "source"))));
    expect(await reading).toEqual(no("UNAVAILABLE"));
    const next = copy.forAnswer([stored(9)]);
    await fixture.answer(1, refused("UNAVAILABLE", "down"));
    expect(await next).toEqual(no("UNAVAILABLE"));
  });
});

describe("a directory that has gone back in time", () => {
  test("[T6] types in use in the copy stay true, although the directory has lost them", async () => {
    copy.take(at(9, used("A", 1), used("B", 2)));
    const reading = copy.forRead([reference("NONE")]);
    await fixture.answer(0, left(at(5, used("A", 1))));
    await reading;
    expect(copy.position).toBe(9);
    expect(named(await copy.forRead([reference("B")]), "B")).toEqual(used("B", 2));
    expect(await copy.forAnswer([stored(2)])).toMatchObject({ ok: true });
    expect(fixture.reads).toHaveLength(1);
  });

  test("[T6] what it still knows is answered, and nothing is told to be unknown", async () => {
    const known = copy.forRead([reference("A")]);
    await fixture.answer(0, left(at(5, used("A", 1))));
    expect(named(await known, "A")).toEqual(used("A", 1));
    const lost = copy.forRead([reference("A"), reference("B")]);
    await fixture.answer(1, left(at(5, used("A", 1))));
    expect(await lost).toEqual(
      no("UNAVAILABLE", {
        reason: "HISTORY_LOST",
        detail: expect.stringContaining("`creates[0].bucket.type`") as unknown,
      }),
    );
  });

  test("[T6] types in use that it has lost come from D1, and nothing else does", async () => {
    fixture.copied = ok(at(7, used("B", 2), entry("C", 3)));
    const reading = copy.forRead([reference("A"), reference("B")]);
    await fixture.answer(0, left(at(5, used("A", 1))));
    const result = await reading;
    expect([named(result, "A"), named(result, "B")]).toEqual([used("A", 1), used("B", 2)]);
    // The next one needs no message.
    expect(await copy.forRead([reference("B")])).toMatchObject({ ok: true });
    const other = copy.forRead([reference("C")]);
    await fixture.answer(1, left(at(5, used("A", 1))));
    expect(await other).toEqual(no("UNAVAILABLE", { reason: "HISTORY_LOST" }));
  });

  test("[T6] an isolate without a copy still names what is left", async () => {
    const answered = copy.forAnswer([stored(1)]);
    await fixture.answer(0, left(at(5, used("A", 1))));
    expect(await answered).toMatchObject({ ok: true });
    const lost = copy.forAnswer([stored(2)]);
    await fixture.answer(1, left(at(5, used("A", 1))));
    expect(await lost).toEqual(no("UNAVAILABLE"));
  });

  test("[T6] its set is taken again once it is reconciled", async () => {
    const first = copy.forRead([reference("A")]);
    await fixture.answer(0, left(at(5, used("A", 1))));
    await first;
    const next = copy.forRead([reference("B")]);
    await fixture.answer(1, complete(at(1_000, used("A", 1), used("B", 2))));
    expect(named(await next, "B")).toEqual(used("B", 2));
    expect(copy.position).toBe(1_000);
    expect(await copy.forRead([reference("A"), reference("B")])).toMatchObject({ ok: true });
    expect(fixture.reads).toHaveLength(2);
  });
});
