/** Tests of how the directory keeps the set of types, over node:sqlite (T2, T3, T4, T6). */
import { describe, expect, test } from "vitest";
import type {
  DeclaredTypes,
  KnownTypes,
  TypeSet,
} from "../../../../src/coordinator/capabilities/types/messages.ts";
import { restoredTypes } from "../../../../src/coordinator/capabilities/types/directory.ts";
import type { Result } from "../../../../src/coordinator/kernel/refusal.ts";
import type { HistoryPoint } from "../../../../src/coordinator/kernel/messages.ts";
import { documentOf, typesOf } from "../../../../src/common/types/document.ts";
import {
  isSameType,
  TYPE_KINDS,
  Types,
  type TypeEntry,
  type TypeKind,
} from "../../../../src/common/types/types.ts";
import { no } from "../../../support/calls.ts";
import { Cluster } from "../../../support/cluster.ts";
import { LOST, saveDirectory } from "../../../support/go-back.ts";
import { operator } from "../../../support/ops.ts";
import { shipped } from "../../../support/types.ts";
import { addCell } from "../cells/add-cell.ts";

const CHANGED = no("UNAVAILABLE", { reason: "TYPES_CHANGED", retryAfterMs: 1_000 });
const STALE = no("FAILED_PRECONDITION", { reason: "CONCURRENT_CHANGE" });
const inUse = (field: string): object => no("FAILED_PRECONDITION", { reason: "TYPE_IN_USE", field });

type Declared = Record<string, { number: number; [flag: string]: unknown }>;

/** A set with these bucket types, and one subject and one source type. */
function setOf(
  buckets: Declared,
  subjects: Declared = { PERSON: { number: 1 } },
  sources: Declared = { PEOPLE: { number: 1 } },
): TypeEntry[] {
  const read = typesOf({ bucket_types: buckets, subject_types: subjects, source_types: sources });
  if (!read.ok) throw new Error(read.refusal.detail);
  return read.value;
}
const HANDLES = { HANDLES: { number: 1 } };
const TWO = { ...HANDLES, DOMAINS: { number: 2, case: "exact" } };

const valueOf = <T>(reply: Result<T>): T => {
  if (!reply.ok) throw new Error(reply.refusal.detail);
  return reply.value;
};

const change = (c: Cluster, position: number, entries: readonly TypeEntry[], copiedAt = 0) =>
  c.clock.runUntil(c.directory.object.changeTypes({ ...c.envelope, position, entries, copiedAt }));
/** Marks types as in use, after the set was copied to D1. */
const use = async (c: Cluster, entries: readonly TypeEntry[]) => markCopied(c, entries, await positionOf(c));
const markCopied = (c: Cluster, entries: readonly TypeEntry[], copiedAt: number) =>
  c.clock.runUntil(c.directory.object.useTypes({ ...c.envelope, entries, copiedAt }));
const positionOf = async (c: Cluster): Promise<number> => (await known(c)).position;
const known = async (c: Cluster): Promise<KnownTypes> =>
  valueOf(await c.clock.runUntil(c.directory.object.types(c.envelope)));
const snapshot = (
  c: Cluster,
  more: { seen?: HistoryPoint; typesPosition?: number; copiedAt?: number } = {},
) => c.clock.runUntil(c.directory.object.snapshot({ ...c.envelope, ...more }));
const pointOf = async (c: Cluster): Promise<HistoryPoint> => {
  const { point } = valueOf(await snapshot(c));
  if (point === null) throw new Error("the directory has made no change");
  return point;
};

const named = (entries: readonly TypeEntry[], kind: TypeKind, name: string): TypeEntry => {
  const entry = new Types(entries).named(kind, name);
  if (entry === undefined) throw new Error(`there is no ${kind} type ${name}`);
  return entry;
};
const bucket = (entries: readonly TypeEntry[], name = "HANDLES"): TypeEntry => named(entries, "bucket", name);
const used = ({ entries }: Pick<DeclaredTypes, "entries">): string[] =>
  entries.filter(({ isInUse }) => isInUse).map(({ name }) => name);

/** A directory with a declared set. */
async function declared(buckets: Declared = HANDLES): Promise<{ c: Cluster; set: DeclaredTypes }> {
  const c = await Cluster.start();
  return { c, set: valueOf(await change(c, 0, setOf(buckets))) };
}

describe("the set of a directory", () => {
  test("is the shipped one, at position 0, until one is declared", async () => {
    const c = await Cluster.start();
    expect(await known(c)).toEqual({
      position: 0,
      declaredAt: 0,
      entries: shipped.entries,
      isComplete: true,
    });
    const empty = await Cluster.start({ cells: [] });
    expect(await known(empty)).toEqual({
      position: 0,
      declaredAt: 0,
      entries: shipped.entries,
      isComplete: true,
    });
  });

  test("can be declared before the first cell is registered", async () => {
    const c = await Cluster.start({ cells: [] });
    const set = valueOf(await change(c, 0, setOf(HANDLES)));
    await addCell(c, "1");
    expect(await known(c)).toEqual({ ...set, isComplete: true });
  });

  test("[T1] survives a restart, and each change of it takes a later position", async () => {
    const { c, set } = await declared();
    expect(set.entries).toEqual(setOf(HANDLES));
    const point = await pointOf(c);
    expect(set.position).toBe(point.position);
    c.directory.restart();
    expect(await known(c)).toEqual({ ...set, isComplete: true });
    await addCell(c, "9");
    const marked = valueOf(await use(c, [bucket(set.entries)]));
    expect(marked.position).toBeGreaterThan(set.position + 1);
    expect((await pointOf(c)).position).toBe(marked.position);
    const more = valueOf(await change(c, marked.position, setOf(TWO)));
    expect(more.position).toBeGreaterThan(marked.position);
    c.directory.restart();
    expect(await known(c)).toEqual({ ...more, isComplete: true });
  });

  test("is left out of a snapshot for a caller that has it", async () => {
    const { c, set } = await declared();
    expect(valueOf(await snapshot(c)).types).toEqual(set);
    expect(valueOf(await snapshot(c, { typesPosition: 0 })).types).toEqual(set);
    expect(valueOf(await snapshot(c, { typesPosition: set.position })).types).toBeNull();
    // Other changes of the directory are none of the set.
    await addCell(c, "9");
    expect(valueOf(await snapshot(c, { typesPosition: set.position })).types).toBeNull();
    await use(c, [bucket(set.entries)]);
    expect(valueOf(await snapshot(c, { typesPosition: set.position })).types).toMatchObject({
      entries: [{ name: "HANDLES", isInUse: true }, {}, {}],
    });
  });
});

describe("a change of the set", () => {
  test("[T3] is refused if the set is not the one that was read", async () => {
    const { c, set } = await declared();
    for (const position of [0, set.position - 1, set.position + 1, -1])
      expect(await change(c, position, setOf(TWO))).toEqual(STALE);
    expect(await known(c)).toEqual({ ...set, isComplete: true });
    expect(await change(c, set.position, setOf(TWO))).toMatchObject({ ok: true });
  });

  test("[T3] is refused if a type has come into use since, even if it would not change it", async () => {
    const { c, set } = await declared();
    await use(c, [bucket(set.entries)]);
    expect(await change(c, set.position, setOf(TWO))).toEqual(STALE);
    expect(await change(c, (await known(c)).position, setOf(TWO))).toMatchObject({ ok: true });
  });

  test("[T3] of two at the same time, one is refused", async () => {
    const { c, set } = await declared();
    const { object } = c.directory;
    const both = [TWO, { ...HANDLES, OTHERS: { number: 2 } }].map((buckets) =>
      object.changeTypes({
        ...c.envelope,
        position: set.position,
        entries: setOf(buckets),
        copiedAt: set.position,
      }),
    );
    const answers = await c.clock.runUntil(Promise.all(both));
    expect(answers).toEqual([expect.objectContaining({ ok: true }), STALE]);
    expect((await known(c)).entries).toEqual(setOf(TWO));
  });

  test("[T3] that was carried out already succeeds again, and changes nothing", async () => {
    const { c, set } = await declared();
    const first = valueOf(await change(c, set.position, setOf(TWO)));
    const before = await pointOf(c);
    expect(await change(c, set.position, setOf(TWO))).toEqual({ ok: true, value: first });
    expect(await change(c, first.position, setOf(TWO).toReversed())).toEqual({ ok: true, value: first });
    expect(await pointOf(c)).toEqual(before);
  });

  test("[T3] is refused as a whole if it would change an entry in use, and names the entry", async () => {
    const { c, set } = await declared(TWO);
    await use(c, [bucket(set.entries)]);
    const before = await known(c);
    const { position } = before;
    const refused: [Declared, string][] = [
      [{ DOMAINS: { number: 3 }, NEW: { number: 4 } }, "removed"],
      [{ ...TWO, HANDLES: { number: 3 } }, "number 3"],
      [{ PSEUDONYMS: { number: 1 }, DOMAINS: TWO.DOMAINS }, "renamed to PSEUDONYMS"],
      [{ ...TWO, HANDLES: { number: 1, case: "exact" } }, "canonical rule"],
      [{ ...TWO, HANDLES: { number: 1, script: "any" } }, "canonical rule"],
      [{ ...TWO, HANDLES: { number: 1, form: "path" } }, "canonical rule"],
      [{ ...TWO, HANDLES: { number: 1, pattern: ".*" } }, "canonical rule"],
      [{ ...TWO, HANDLES: { number: 1, max_length: 65_536 } }, "canonical rule"],
    ];
    for (const [buckets, why] of refused) {
      const answer = await change(c, position, setOf(buckets));
      expect(answer).toEqual(inUse("bucket_types.HANDLES"));
      expect(answer.ok ? "" : answer.refusal.detail).toContain(why);
    }
    expect(await known(c)).toEqual(before);
    c.directory.restart();
    expect(await known(c)).toEqual(before);
  });

  test.each(TYPE_KINDS)(
    "[T2] [T3] never changes, removes, renames or renumbers a %s type in use",
    async (kind) => {
      const lists = (changed: Declared): [Declared, Declared, Declared] => {
        const own = (of: TypeKind): Declared => (of === kind ? changed : { X: { number: 1 } });
        return [own("bucket"), own("subject"), own("source")];
      };
      const c = await Cluster.start();
      const set = valueOf(await change(c, 0, setOf(...lists({ X: { number: 1 }, Y: { number: 2 } }))));
      const { position } = valueOf(await use(c, [named(set.entries, kind, "X")]));
      for (const wrong of [{ Y: { number: 2 } }, { X: { number: 2 } }, { Z: { number: 1 } }] as Declared[])
        expect(await change(c, position, setOf(...lists(wrong)))).toEqual(inUse(`${kind}_types.X`));
      // The other entry is in use nowhere.
      const next = valueOf(
        await change(c, position, setOf(...lists({ X: { number: 1 }, Y: { number: 7 } }))),
      );
      expect(used(next)).toEqual(["X"]);
      expect(named(next.entries, kind, "Y").number).toBe(7);
    },
  );

  test("[T2] keeps what is in use in use, whatever the message says", async () => {
    const { c, set } = await declared(TWO);
    const marked = valueOf(await use(c, [bucket(set.entries), named(set.entries, "source", "PEOPLE")]));
    const wanted = setOf({ ...TWO, NEW: { number: 9 } }).map((entry) => ({ ...entry, isInUse: false }));
    const next = valueOf(await change(c, marked.position, wanted));
    expect(used(next)).toEqual(["HANDLES", "PEOPLE"]);
    // A change alone puts nothing into use.
    const claimed = setOf({ ...TWO, NEW: { number: 10 } }).map((entry) => ({ ...entry, isInUse: true }));
    const last = valueOf(await change(c, next.position, claimed));
    expect(used(last)).toEqual(["HANDLES", "PEOPLE"]);
    c.directory.restart();
    expect(used(await known(c))).toEqual(["HANDLES", "PEOPLE"]);
  });

  test("may replace the shipped set as a whole while nothing is in use", async () => {
    const { set } = await declared();
    expect(set.entries.map(({ name }) => name)).toEqual(["HANDLES", "PERSON", "PEOPLE"]);
    const c = await Cluster.start();
    const marked = valueOf(await use(c, [named(shipped.entries, "bucket", "ROUTES")]));
    expect(await change(c, marked.position, setOf(HANDLES))).toEqual(inUse("bucket_types.ROUTES"));
  });
});

describe("the first use of types", () => {
  test("[T2] marks them durably, before it is answered", async () => {
    const { c, set } = await declared();
    const release = c.directory.sql.holdFlushes();
    let answered = false;
    const using = c.directory.object.useTypes({
      ...c.envelope,
      entries: [bucket(set.entries)],
      copiedAt: set.position,
    });
    void using.then(() => (answered = true));
    await c.clock.pass(1_000);
    expect(answered).toBe(false);
    release();
    expect(used(valueOf(await c.clock.runUntil(using)))).toEqual(["HANDLES"]);
    c.directory.restart();
    expect(used(await known(c))).toEqual(["HANDLES"]);
  });

  test("[T2] is idempotent, and marks no others", async () => {
    const { c, set } = await declared(TWO);
    const first = valueOf(await use(c, [bucket(set.entries)]));
    expect(used(first)).toEqual(["HANDLES"]);
    const before = await pointOf(c);
    expect(await use(c, [bucket(set.entries)])).toEqual({ ok: true, value: first });
    expect(await use(c, [bucket(first.entries)])).toEqual({ ok: true, value: first });
    expect(await use(c, [])).toEqual({ ok: true, value: first });
    expect(await pointOf(c)).toEqual(before);
    const second = valueOf(await use(c, set.entries));
    expect(used(second)).toEqual(["HANDLES", "DOMAINS", "PERSON", "PEOPLE"]);
  });

  test("[T2] works for the shipped set, which gets a position with it", async () => {
    const c = await Cluster.start();
    const marked = valueOf(await use(c, [named(shipped.entries, "bucket", "ROUTES")]));
    expect(used(marked)).toEqual(["ROUTES"]);
    expect(marked.position).toBe((await pointOf(c)).position);
    expect(marked.entries.map(({ name }) => name)).toEqual(shipped.entries.map(({ name }) => name));
  });

  test("[T2] is refused as a whole if an entry is not the one that the caller has read", async () => {
    const { c, set } = await declared(TWO);
    const own = bucket(set.entries);
    const rule = { form: "plain", script: "single", case: "folded" } as const;
    const others: TypeEntry[] = [
      { ...own, number: 5 },
      { ...own, name: "OTHERS" },
      { ...own, kind: "subject" },
      { ...own, rule: { ...rule, case: "exact" } },
      { ...own, rule: { ...rule, maxLength: 9 } },
      { ...own, rule: null },
    ];
    for (const other of others) {
      expect(await use(c, [bucket(set.entries, "DOMAINS"), other])).toEqual(CHANGED);
      expect(used(await known(c))).toEqual([]);
    }
  });

  test("[T2] waits until D1 has the set as it was declared", async () => {
    const { c, set } = await declared(TWO);
    const handles = [bucket(set.entries)];
    expect(await markCopied(c, handles, set.position - 1)).toEqual(CHANGED);
    expect(used(await known(c))).toEqual([]);
    const marked = valueOf(await markCopied(c, handles, set.position));
    expect(used(marked)).toEqual(["HANDLES"]);
    // The entries are the same since then, and no type has to be in the copy twice.
    expect(marked.position).toBeGreaterThan(set.position);
    expect(await markCopied(c, [bucket(set.entries, "DOMAINS")], set.position)).toMatchObject({ ok: true });
    expect(await markCopied(c, handles, 0)).toMatchObject({ ok: true });
    // A new declaration needs a new copy, also if it changes nothing about the type.
    const { position } = await known(c);
    const more = valueOf(await change(c, position, setOf({ ...TWO, NEW: { number: 3 } })));
    expect(await markCopied(c, [bucket(more.entries, "NEW")], position)).toEqual(CHANGED);
    c.directory.restart();
    expect(await markCopied(c, [bucket(more.entries, "NEW")], position)).toEqual(CHANGED);
    expect(await markCopied(c, [bucket(more.entries, "NEW")], more.position)).toMatchObject({ ok: true });
  });

  test("[T2] needs no copy of the shipped set", async () => {
    const c = await Cluster.start();
    for (const name of ["ROUTES", "EMAILS"])
      expect(await markCopied(c, [named(shipped.entries, "bucket", name)], 0)).toMatchObject({ ok: true });
  });

  test("[T2] [T3] excludes a change at the same time, whichever comes first", async () => {
    for (const isFirst of [true, false]) {
      const { c, set } = await declared();
      const { object } = c.directory;
      const using = () =>
        object.useTypes({
          ...c.envelope,
          entries: [bucket(set.entries)],
          copiedAt: set.position,
        });
      const changing = () =>
        object.changeTypes({
          ...c.envelope,
          position: set.position,
          copiedAt: set.position,
          entries: setOf({ HANDLES: { number: 1, case: "exact" } }),
        });
      const both = isFirst ? [using(), changing()] : [changing(), using()];
      const [first, second] = await c.clock.runUntil(Promise.all(both));
      expect([first?.ok, second]).toEqual([true, isFirst ? STALE : CHANGED]);
      const after = bucket((await known(c)).entries);
      expect([after.isInUse, after.rule?.case]).toEqual(isFirst ? [true, "folded"] : [false, "exact"]);
    }
  });
});

describe("a directory with an older set than D1", () => {
  const isLost = async (c: Cluster): Promise<boolean> => !(await known(c)).isComplete;

  test.each(["a change", "a first use", "a snapshot"])("[H4] [T6] learns that from %s", async (call) => {
    const { c, set } = await declared();
    const copiedAt = set.position + 1;
    const send = {
      "a change": () => change(c, set.position, setOf(TWO), copiedAt),
      "a first use": () => markCopied(c, [bucket(set.entries)], copiedAt),
      "a snapshot": () => snapshot(c, { copiedAt }),
    }[call];
    expect(await send?.()).toEqual(LOST);
    c.directory.restart();
    expect(await isLost(c)).toBe(true);
    expect(await snapshot(c)).toEqual(LOST);
    expect(await change(c, set.position, setOf(TWO))).toEqual(LOST);
    // The restored set is newer than the copy, so that D1 takes it over.
    const types = { position: copiedAt + 2_000_000, entries: setOf(TWO) };
    const page = { cells: [], keys: [], types, isPlacementConfirmed: true, operator };
    const restored = await c.clock.runUntil(
      c.directory.object.reconcile({ ...c.envelope, ...page, isLast: true, dryRun: false }),
    );
    expect(restored).toMatchObject({ ok: true, value: { status: { state: "complete" } } });
    const after = await known(c);
    expect(after.position).toBeGreaterThan(types.position);
    expect(used(after)).toContain("DOMAINS");
    expect(await snapshot(c, { copiedAt: types.position })).toMatchObject({ ok: true });
  });

  test("[H4] [T6] has lost nothing if the copy is as new", async () => {
    const { c, set } = await declared();
    expect(await snapshot(c, { copiedAt: set.position })).toMatchObject({ ok: true });
    expect(await isLost(c)).toBe(false);
  });
});

describe("a directory that has gone back in time", () => {
  /** Goes back to before a type came into use, and learns of it. */
  async function lost(buckets: Declared = TWO) {
    const { c, set } = await declared(buckets);
    const first = valueOf(await use(c, [bucket(set.entries)]));
    const restore = saveDirectory(c);
    const copy = valueOf(await use(c, [bucket(set.entries, "DOMAINS")]));
    const seen = await pointOf(c);
    restore();
    expect(await snapshot(c, { seen })).toEqual(LOST);
    return { c, first, copy, seen };
  }

  const reconcile = async (c: Cluster, more: object) =>
    valueOf(
      await c.clock.runUntil(
        c.directory.object.reconcile({
          ...c.envelope,
          cells: [],
          keys: [],
          types: null,
          isLast: true,
          dryRun: false,
          isPlacementConfirmed: false,
          operator,
          ...more,
        }),
      ),
    );

  test("[T6] answers only types in use, and says that some may be missing", async () => {
    const { c, first } = await lost();
    expect(await known(c)).toEqual({
      ...first,
      entries: [bucket(first.entries)],
      isComplete: false,
    });
    c.directory.restart();
    expect(await known(c)).toMatchObject({ entries: [{ name: "HANDLES" }], isComplete: false });
  });

  test("[T6] [T2] marks and changes nothing", async () => {
    const { c, first, copy } = await lost();
    expect(await use(c, [bucket(first.entries)])).toEqual(LOST);
    expect(await use(c, [bucket(first.entries, "DOMAINS")])).toEqual(LOST);
    expect(await change(c, first.position, setOf(HANDLES))).toEqual(LOST);
    expect(await change(c, copy.position, setOf(HANDLES))).toEqual(LOST);
  });

  test("[T6] [H8] gets its set back from a newer copy, and then all types count as in use", async () => {
    const { c, copy, seen } = await lost();
    expect(await reconcile(c, { types: copy, isLast: false })).toMatchObject({
      status: { state: "lost" },
      types: ["DOMAINS"],
    });
    expect(await known(c)).toMatchObject({
      entries: [{ name: "HANDLES" }, { name: "DOMAINS" }],
      isComplete: false,
    });
    // The page can be sent again.
    expect(await reconcile(c, { types: copy, isLast: false })).toMatchObject({ types: [] });
    expect(await reconcile(c, {})).toMatchObject({ status: { state: "complete" } });
    const after = await known(c);
    expect(after.isComplete).toBe(true);
    expect(used(after)).toEqual(["HANDLES", "DOMAINS", "PERSON", "PEOPLE"]);
    expect(after.entries.every((entry, n) => isSameType(entry, copy.entries[n] ?? entry))).toBe(true);
    expect(after.position).toBeGreaterThan(copy.position);
    // Later positions are above all that were told before the loss.
    const next = valueOf(await change(c, after.position, setOf({ ...TWO, NEW: { number: 3 } })));
    expect(next.position).toBeGreaterThan(seen.position);
  });

  test("[T6] [H8] gets back types that it had forgotten", async () => {
    const c = await Cluster.start();
    const restore = saveDirectory(c);
    const set = valueOf(await change(c, 0, setOf(TWO)));
    const copy = valueOf(await use(c, [bucket(set.entries, "DOMAINS")]));
    const seen = await pointOf(c);
    restore();
    await snapshot(c, { seen });
    expect(await known(c)).toMatchObject({ position: 0, entries: [], isComplete: false });
    const restored = await reconcile(c, { types: copy });
    expect(restored.types).toEqual(expect.arrayContaining(["HANDLES", "DOMAINS", "PERSON", "PEOPLE"]));
    const after = await known(c);
    expect(after.entries.map(({ name }) => name).toSorted()).toEqual([
      "DOMAINS",
      "HANDLES",
      "PEOPLE",
      "PERSON",
    ]);
    expect(used(after)).toHaveLength(4);
    expect(await change(c, after.position, setOf({ ...TWO, HANDLES: { number: 7 } }))).toEqual(
      inUse("bucket_types.HANDLES"),
    );
  });

  test("[T6] keeps its own set if that is newer than the copy, or if there is no copy", async () => {
    for (const hasCopy of [true, false]) {
      const { c, set } = await declared();
      const copy = { ...set, entries: setOf({ OLD: { number: 1 } }) };
      const newer = valueOf(await change(c, set.position, setOf(TWO)));
      const restore = saveDirectory(c);
      await addCell(c, "9");
      const seen = await pointOf(c);
      restore();
      await snapshot(c, { seen });
      expect(await reconcile(c, { types: hasCopy ? copy : null })).toMatchObject({ types: [] });
      const after = await known(c);
      expect(after.entries).toEqual(newer.entries.map((entry) => ({ ...entry, isInUse: true })));
    }
  });

  test("[T6] [H8] a dry run says what differs, and changes nothing", async () => {
    const { c, first, copy } = await lost();
    expect(await reconcile(c, { types: copy, dryRun: true })).toMatchObject({
      status: { state: "lost" },
      types: ["DOMAINS"],
    });
    expect(await known(c)).toEqual({
      ...first,
      entries: [bucket(first.entries)],
      isComplete: false,
    });
  });

  test("[T6] a directory that is complete takes no copy", async () => {
    const { c, set } = await declared();
    const copy = { position: set.position + 100, entries: setOf({ OTHERS: { number: 9 } }) };
    expect(await reconcile(c, { types: copy })).toMatchObject({ status: { state: "complete" }, types: [] });
    expect(await known(c)).toEqual({ ...set, isComplete: true });
  });
});

describe("a restored set", () => {
  const at = (position: number, entries: TypeEntry[], ...names: string[]): TypeSet => ({
    position,
    entries: entries.map((entry) => ({ ...entry, isInUse: names.includes(entry.name) })),
  });

  test("[T6] is the newer of the two, with the marks of both", async () => {
    const one = at(5, setOf(TWO), "HANDLES", "PEOPLE");
    const other = at(7, setOf({ ...TWO, NEW: { number: 3 } }), "DOMAINS");
    for (const restored of [restoredTypes(one, other), restoredTypes(other, one)]) {
      expect(restored.position).toBe(7);
      expect(documentOf(restored.entries)).toEqual(documentOf(other.entries));
      expect(used(restored).toSorted()).toEqual(["DOMAINS", "HANDLES", "PEOPLE"]);
    }
  });

  test("[T6] is the directory's own at the same position", async () => {
    const own = at(5, setOf(TWO), "HANDLES");
    expect(restoredTypes(own, at(5, setOf(HANDLES), "HANDLES"))).toEqual(own);
    expect(restoredTypes(own, own)).toEqual(own);
  });

  test("[T6] keeps an entry in use rather than another with its name or number", () => {
    const own = at(5, setOf({ HANDLES: { number: 1, case: "exact" } }), "HANDLES");
    for (const copy of [at(7, setOf(HANDLES)), at(7, setOf({ SHOPS: { number: 1 } }))])
      for (const restored of [restoredTypes(own, copy), restoredTypes(copy, own)]) {
        expect(restored.entries.filter(({ kind }) => kind === "bucket")).toEqual(
          own.entries.filter(({ kind }) => kind === "bucket"),
        );
        expect(used(restored)).toEqual(["HANDLES"]);
      }
  });
});
