/** The holds of a shard in the rows of its log, in a ring that is much smaller than in a deployment. */
import { isDeepStrictEqual } from "node:util";
import { describe, expect, test } from "vitest";
import type { Limits } from "../../../../src/common/limits.ts";
import type { HoldPosition, OpKind } from "../../../../src/coordinator/kernel/messages.ts";
import { migrate } from "../../../support/migrate.ts";
import {
  FIRST_HOLD,
  type EntryPage,
  type HeldEntry,
} from "../../../../src/coordinator/kernel/shard/held-names.ts";
import {
  ENTRY_NAMES,
  nameOf,
  itemsOf,
  type StoredEntry,
} from "../../../../src/coordinator/kernel/shard/hold-entries.ts";
import { executionKey, bucketOf, type HoldRow } from "../../../../src/coordinator/kernel/shard/rows.ts";
import { shardSchema } from "../../../../src/coordinator/kernel/shard/schema.ts";
import { ShardLog } from "../../../../src/coordinator/kernel/shard/shard-log.ts";
import {
  noNotes,
  type TransactionNotes,
} from "../../../../src/coordinator/kernel/shard/transaction-notes.ts";
import { sourceOrder } from "../../../../src/common/source-order.ts";
import { DESTROY, HOLDS } from "../../../support/holds.ts";
import { NodeSql } from "../../../support/node-sql.ts";
import { privateField, privatePath } from "../../../support/private-fields.ts";
import { seeded } from "../../../support/seeded.ts";

const CELLS = ["1", "2", "3"];
const SCOPES = ["north", "south"];

type Details = Partial<Pick<HoldRow, "cell" | "kind" | "scope" | "granted_by">>;

/** Returns the hold of an execution on a name. What it has otherwise is only in this hold. */
function holdOf(epoch: number, name: string, details: Details = {}): HoldRow {
  const { cell = "1", kind = "create", scope = null, granted_by = null } = details;
  const { bucket_type, canonical } = bucketOf(name);
  const own = {
    bucket_type,
    canonical,
    kind,
    cell,
    lease: `lease-${epoch}`,
    incarnation: 7,
    counter: epoch,
    epoch,
    held_at_ms: 1_000 + epoch,
    granted_by,
  };
  const id = `id-${epoch}-${canonical.slice(0, 40)}`;
  const isTyped = epoch % 2 === 0;
  return kind === "destroy"
    ? { ...DESTROY, ...own }
    : {
        ...own,
        uuid: `uuid-${epoch}`,
        value: isTyped ? `Typed-${canonical}` : canonical,
        subject_type: 1,
        subject_id: `subject-${id}`,
        source_type: 2,
        source_id: id,
        source_order: sourceOrder(id),
        scope,
      };
}

/** Notes the names that are committed. */
function notedNames(): TransactionNotes {
  const noted: string[] = [];
  return {
    ...noNotes,
    get isEmpty() {
      return noted.length === 0;
    },
    noteCommitted: ({ canonical }) => noted.push(canonical),
    take: () => (noted.length === 0 ? [] : [JSON.stringify(noted.splice(0))]),
    withoutName: (text, { canonical }) => {
      const names = JSON.parse(text) as string[];
      const left = names.filter((name) => name !== canonical);
      return { text: JSON.stringify(left), erased: names.length - left.length };
    },
  };
}

/** What the holds of a shard must be. Each item has some holds of one execution, in the order of scans. */
class Model {
  entries: { since: number; part: number; holds: HoldRow[] }[] = [];

  add(since: number, holds: readonly HoldRow[]): void {
    for (let part = 0; part * ENTRY_NAMES < holds.length; part += 1)
      this.entries.push({
        since,
        part,
        holds: holds.slice(part * ENTRY_NAMES, (part + 1) * ENTRY_NAMES),
      });
  }

  end(names: readonly string[]): void {
    const ended = new Set(names);
    this.entries = this.entries
      .map((entry) => ({ ...entry, holds: entry.holds.filter((hold) => !ended.has(nameOf(hold))) }))
      .filter(({ holds }) => holds.length > 0);
  }

  get holds(): HoldRow[] {
    return this.entries.flatMap(({ holds }) => holds);
  }
}

/** A log in a small ring, with a model of its holds. */
class SmallLog {
  readonly sql = new NodeSql();
  readonly model = new Model();
  readonly #slots: number;
  readonly #shardBytes: number;
  log: ShardLog;

  constructor(slots: number, { shardBytes }: Pick<Limits, "shardBytes"> = { shardBytes: 1e10 }) {
    migrate(this.sql, shardSchema);
    this.#slots = slots;
    this.#shardBytes = shardBytes;
    this.log = this.start();
  }

  /** Returns a new instance on the same database. */
  start(): ShardLog {
    return new ShardLog(this.sql, { now: () => 1_000 }, { shardBytes: this.#shardBytes }, this.#slots);
  }

  transact(work: () => void = () => {}): void {
    this.sql.transaction(["exchange"], () => {
      work();
      this.log.append();
    });
  }

  grant(names: readonly string[], details: (name: string) => Details = () => ({})): number {
    const epoch = this.log.nextEpoch();
    const holds = names.map((name) => holdOf(epoch, name, details(name)));
    this.log.held.add(holds, () => this.log.nextEpoch());
    this.model.add(epoch, holds);
    return epoch;
  }

  /** Takes over holds that another shard has granted. */
  move(epoch: number, names: readonly string[], details: Details & { granted_by: number }): void {
    const holds = names.map((name) => holdOf(epoch, name, details));
    for (const some of Map.groupBy(holds, executionKey).values())
      this.log.held.add(some, () => {
        const since = this.log.nextEpoch();
        this.model.add(since, some);
        return since;
      });
  }

  end(names: readonly string[]): void {
    this.log.held.end(names);
    this.model.end(names);
  }

  erase(name: string): void {
    const { bucket_type: type, canonical } = bucketOf(name);
    this.sql.transaction(["clear"], () => {
      this.log.eraseName({ type, canonical }, undefined);
    });
  }

  /** Returns all texts of the log. */
  get texts(): string[] {
    return this.sql
      .all<object>("SELECT ledgers, held, changes, holds, ended FROM log")
      .flatMap((row) => Object.values(row) as (string | null)[])
      .filter((text) => text !== null);
  }

  /** Returns the entries of holds in the log, in the order of its rows. */
  get stored(): StoredEntry[] {
    return this.sql
      .all<{ holds: string | null }>("SELECT holds FROM log ORDER BY position")
      .flatMap(({ holds }) => itemsOf<StoredEntry>(holds));
  }

  /** Compares the running instance, a new one, and the rows of the log with the model. */
  expectAll(pageNames = 100): void {
    expectHeld(this.log, this.model, pageNames);
    expectHeld(this.start(), this.model, pageNames);
    expectStored(this);
  }
}

const byName = (holds: readonly HoldRow[]): HoldRow[] =>
  holds.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));

const namesIn = ({ held }: ShardLog, entries: Iterable<HeldEntry>): string[] =>
  [...entries].flatMap((entry) => held.holdsOf(entry).map(nameOf));

/** Each 128 characters of a name count once more. */
const roomOf = (holds: readonly HoldRow[]): number =>
  holds.reduce((sum, hold) => sum + 1 + Math.floor(nameOf(hold).length / 128), 0);

/** Compares fast, because the tests compare much. */
function expectSame(found: unknown, wanted: unknown): void {
  if (!isDeepStrictEqual(found, wanted)) expect(found).toEqual(wanted);
}

/** Compares what an instance holds with a model: names and rows, their counts, and all ways to find them. */
function expectHeld(log: ShardLog, { entries, holds }: Model, pageNames: number): void {
  const { held } = log;
  const all = held.after(FIRST_HOLD, Infinity).entries;
  expectSame(
    all.map((entry) => ({ since: entry.since, part: entry.part, holds: held.holdsOf(entry) })),
    entries,
  );
  expectSame(
    all.map(({ left }) => left),
    entries.map((entry) => entry.holds.length),
  );
  expectSame(
    holds.map(nameOf).map((name) => [held.holding(name) !== undefined, held.on(name), held.holding(name)]),
    holds.map((hold) => [true, hold, { cell: hold.cell, kind: hold.kind }]),
  );
  expectSame(held.size, roomOf(holds));
  for (const cell of CELLS) {
    const ofCell = holds.filter((hold) => hold.cell === cell);
    expectSame(held.countOf(cell), roomOf(ofCell));
    const paged: string[] = [];
    for (let next: HoldPosition | null = FIRST_HOLD; next !== null;) {
      const page: EntryPage = held.after(next, pageNames, cell);
      const names = namesIn(log, page.entries);
      expectSame(page.count, names.length);
      expect(names.length).toBeLessThan(pageNames + ENTRY_NAMES);
      paged.push(...names);
      ({ next } = page);
    }
    expectSame(paged, ofCell.map(nameOf));
    for (const scope of SCOPES) {
      const arriving = [...held.arrivingIn(cell, scope)].flatMap((entry) => held.holdsOf(entry));
      const isOfScope = (hold: HoldRow): boolean => hold.scope === scope;
      expectSame(byName(arriving.filter(isOfScope)), byName(ofCell.filter(isOfScope)));
    }
  }
}

/** Compares what the rows of the log say with the model, also for a scrub. */
function expectStored({ sql, log, model }: SmallLog): void {
  expectSame(
    log.held.after(FIRST_HOLD, Infinity).entries.map((entry) => log.held.check(entry)),
    model.entries.map(({ holds }) => ({ holds, missing: [] })),
  );
  const stored = sql.all<HoldRow>(`SELECT * FROM ${HOLDS}`).map((row) => ({
    ...row,
    source_order: row.source_id === null ? null : sourceOrder(row.source_id),
  }));
  expectSame(byName(stored), byName(model.holds));
}

const KINDS: readonly OpKind[] = ["create", "replace", "destroy"];

/** Random transactions on a small log. */
class RandomWork {
  readonly #log: SmallLog;
  readonly #random: () => number;

  constructor(log: SmallLog, seed: number) {
    this.#log = log;
    this.#random = seeded(seed);
  }

  pick<Item>(items: readonly Item[]): Item {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new Error("there is nothing to pick");
    return item;
  }

  below(end: number): number {
    return Math.floor(this.#random() * end);
  }

  chance(part: number): boolean {
    return this.#random() < part;
  }

  /** Returns up to `most` names that are free. */
  #free(most: number): string[] {
    const names = new Set<string>();
    for (let left = most; left > 0; left -= 1) {
      const name = `${1 + this.below(2)} n"${this.below(600)} é`;
      if (this.#log.log.held.holding(name) === undefined) names.add(name);
    }
    return [...names];
  }

  #details(): () => Details {
    const cell = this.pick(CELLS);
    const isMixed = this.chance(0.5);
    const [kind, scope] = [this.pick(KINDS), this.pick([null, ...SCOPES])];
    return () =>
      isMixed ? { cell, kind: this.pick(KINDS), scope: this.pick([null, ...SCOPES]) } : { cell, kind, scope };
  }

  #count(): number {
    return this.chance(0.03) ? 1 + this.below(250) : 1 + this.below(5);
  }

  #end(): void {
    const { holds } = this.#log.model;
    if (holds.length === 0) return;
    const execution = executionKey(this.pick(holds));
    const ofExecution = holds.filter((hold) => executionKey(hold) === execution);
    const names = this.chance(0.6)
      ? ofExecution
      : (this.chance(0.5) ? ofExecution : holds).filter(() => this.chance(0.4));
    this.#log.end(names.map(nameOf));
  }

  #step(): void {
    const { log, model } = this.#log;
    switch (this.below(8)) {
      case 0:
      case 1:
        return void this.#log.grant(this.#free(this.#count()), this.#details());
      case 2: {
        const details = this.#details()();
        return this.#log.move(1 + this.below(50), this.#free(this.#count()), {
          ...details,
          granted_by: this.below(3),
        });
      }
      case 3: {
        // A decision frees names, and a prepare of the same message takes them.
        const names = model.holds.filter(() => this.chance(3 / model.holds.length)).map(nameOf);
        this.#log.end(names);
        if (names.length > 0) this.#log.grant(names, this.#details());
        return;
      }
      case 4: {
        const names = this.#free(this.#count());
        this.#log.grant(names, this.#details());
        return this.#log.end(this.chance(0.5) ? names : names.filter(() => this.chance(0.5)));
      }
      case 5:
        // A name that is not held is left out.
        return log.held.end(this.#free(2));
      default:
        return this.#end();
    }
  }

  transaction(): void {
    if (this.chance(0.05)) return this.#log.transact();
    if (this.chance(0.05)) {
      const { holds } = this.#log.model;
      return this.#log.erase(
        this.chance(0.5) && holds.length > 0
          ? nameOf(this.pick(holds))
          : this.pick(this.#free(1).concat("1 none")),
      );
    }
    this.#log.transact(() => {
      for (let steps = 1 + this.below(3); steps > 0; steps -= 1) this.#step();
    });
  }
}

describe.each([
  { slots: 8, shardBytes: 1e10, seed: 1 },
  { slots: 16, shardBytes: 1e10, seed: 2 },
  { slots: 16, shardBytes: 200_000, seed: 3 },
  { slots: 300, shardBytes: 1_000_000, seed: 4 },
])(
  "random transactions in a ring of $slots slots, of a shard with $shardBytes bytes",
  ({ slots, shardBytes, seed }) => {
    test("[H10] [B4] a new instance has the holds of the running one, in the same order", () => {
      const small = new SmallLog(slots, { shardBytes });
      const work = new RandomWork(small, seed);
      for (let n = 0; n < 200; n += 1) {
        work.transaction();
        const pageNames = 1 + work.below(200);
        expectHeld(small.log, small.model, pageNames);
        const next = small.start();
        expectHeld(next, small.model, pageNames);
        if (n % (slots < 100 ? 5 : 50) === 0) expectStored(small);
        if (work.chance(0.1)) small.log = next;
      }
    });
  },
);

const named = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, n) => `1 ${prefix}${n}`);

describe("a ring that goes round under open holds", () => {
  test.each([8, 16])("[H10] loses none of them: %i slots", (slots) => {
    const small = new SmallLog(slots);
    small.transact(() => {
      small.grant(["1 ada", "1 bob"]);
      small.grant(named("many", 250), () => ({ cell: "2", kind: "replace", scope: "north" }));
    });
    small.transact(() => small.move(3, ["2 ada"], { granted_by: 5, kind: "destroy" }));
    for (let n = 0; n < 10 * slots; n += 1) {
      small.transact(() => small.end([`1 many${n}`]));
      if (n % 4 === 0) small.expectAll();
      if (n % slots === 0) small.log = small.start();
    }
  });

  test("[H10] loses none of them, although they are too long to be carried at once", () => {
    const small = new SmallLog(16);
    const long = "x".repeat(300);
    for (let n = 0; n < 12; n += 1) small.transact(() => small.grant(named(`${n}-${long}`, 100)));
    for (let n = 0; n < 200; n += 1) {
      small.transact();
      // A name of some 300 characters counts three times.
      expect(small.start().held.size).toBe(3_600);
    }
    small.expectAll();
  });

  test("[H10] [K5] carries only the names that are left", () => {
    const small = new SmallLog(8);
    const names = named("n", 10);
    small.transact(() => small.grant(names));
    small.transact(() => small.end(names.slice(0, 6)));
    for (let n = 0; n < 8; n += 1) small.transact();
    expect(small.stored.at(-1)?.[9]).toEqual(names.slice(6));
    for (let n = 0; n < 8; n += 1) small.transact();
    expect(new Set(small.stored.flatMap((entry) => entry[9]))).toEqual(new Set(names.slice(6)));
    small.expectAll();
    small.transact(() => small.end(names));
    for (let n = 0; n < 8; n += 1) small.transact();
    expect(small.texts.filter((text) => text.includes("1 n"))).toEqual([]);
  });
});

test("[H10] a row has nothing of holds that begin and end in its transaction", () => {
  const small = new SmallLog(8);
  small.transact(() => {
    small.grant(["1 ada", "1 bob"]);
    small.end(["1 ada", "1 bob"]);
  });
  expect(small.texts).toEqual(["{}", "", ""]);
  small.transact(() => {
    small.grant(["1 ada", "1 bob"]);
    small.end(["1 ada"]);
  });
  expect(small.stored.map((entry) => entry[9])).toEqual([["1 bob"]]);
  expect(small.sql.all("SELECT 1 FROM log WHERE ended IS NOT NULL")).toEqual([]);
  small.expectAll();
});

describe("the texts of the log", () => {
  /** The longest names that are allowed, with three bytes for each character. */
  const longNames = (prefix: string): string[] => named(`${prefix}-${"名".repeat(336)}-`, 100);
  const newest = ({ sql }: SmallLog, after: number): { length: number }[] =>
    sql.all(
      `SELECT length(changes) + coalesce(length(holds), 0) + coalesce(length(ended), 0) AS length
         FROM log WHERE position > ?`,
      after,
    );
  const largest = ({ sql }: SmallLog): number =>
    sql.all<{ bytes: number }>(
      `SELECT max(octet_length(ledgers) + coalesce(octet_length(held), 0) + coalesce(octet_length(changes), 0)
                  + coalesce(octet_length(holds), 0) + coalesce(octet_length(ended), 0)) AS bytes FROM log`,
    )[0]?.bytes ?? 0;

  test("[H10] [M6] of more than 500,000 characters take several rows, none of them above 2 MB", () => {
    const small = new SmallLog(32);
    small.transact(() => {
      for (let n = 0; n < 20; n += 1) small.grant(longNames(`open${n}`));
    });
    const lengths = newest(small, 0).map(({ length }) => length);
    expect(lengths.length).toBeGreaterThan(2);
    expect(Math.max(...lengths)).toBeLessThan(500_010);
    expect(lengths.reduce((sum, length) => sum + length, 0)).toBeGreaterThan(1_000_000);
    small.expectAll();
    for (let n = 0; n < 40; n += 1) {
      small.transact(() => {
        const ended = small.model.holds.slice(2_000);
        // Ends that name their holds are long, too.
        small.end(ended.slice(0, -1).map(nameOf));
        for (let some = 0; some < 6; some += 1) small.grant(longNames(`n${n}.${some}`));
      });
      expect(largest(small)).toBeLessThan(2_000_000);
    }
    small.expectAll();
  });

  test("[H10] [M6] above the limit of bytes, the oldest are dropped, but no open hold", () => {
    const limit = 20_000;
    const small = new SmallLog(256, { shardBytes: 100 * limit });
    small.transact(() => small.grant(named("open", 50)));
    small.transact(() => small.grant(named("left", 50)));
    small.transact(() => small.end(named("left", 49)));
    for (let n = 0; n < 400; n += 1) {
      small.transact(() => {
        small.end(named(`n${n - 1}-`, 20));
        small.grant(named(`n${n}-`, 20));
      });
      const [{ bytes } = { bytes: Infinity }] = small.sql.all<{ bytes: number }>(
        "SELECT sum(coalesce(octet_length(changes), 0) + coalesce(octet_length(holds), 0)) AS bytes FROM log",
      );
      // The transaction that reaches the limit drops what is before the oldest open hold. The next one
      // carries that hold, and drops more.
      expect(bytes).toBeLessThanOrEqual(limit + 5_000 + 3 * small.log.held.writtenLength);
      expect(small.start().held.size).toBe(71);
    }
    small.expectAll();
    const [{ rows } = { rows: Infinity }] = small.sql.all<{ rows: number }>(
      "SELECT count(*) AS rows FROM log WHERE holds IS NOT NULL",
    );
    expect(rows).toBeLessThan(20);
    // Open holds may take more than the limit. None of them is dropped.
    small.transact(() => small.grant(named("more", 400)));
    for (let n = 0; n < 300; n += 1) small.transact();
    small.expectAll();
  });
});

describe("the erasure of a name", () => {
  test.each(["1 ada", '1 q"uo\te é'])("[K5] leaves no trace of its ended holds: %s", (name) => {
    const small = new SmallLog(32);
    const { log } = small;
    log.notes.provide(notedNames());
    const own = bucketOf(name).canonical;
    const traces = (): number =>
      small.texts.filter((text) => text.includes(JSON.stringify(own).slice(1, -1))).length;
    small.transact(() => small.grant([name, "1 bob"]));
    for (let n = 0; n < 6; n += 1) small.transact();
    small.transact(() => {
      const hold = log.held.on(name);
      if (hold === undefined) throw new Error("the name is not held");
      log.notes.current.noteCommitted(hold, undefined, true);
      small.end([name]);
    });
    small.transact(() => small.grant([name]));
    small.transact(() => small.end([name]));
    // This entry ends as a whole later, in the transaction that holds the name again.
    small.transact(() => small.grant(["1 carl", name, "1 dan"]));
    small.transact(() => {
      small.end(["1 carl", name, "1 dan"]);
      small.grant(["1 eve", name, "1 fay"], () => ({ kind: "replace" }));
    });
    small.expectAll();
    const before = traces();
    const { bucket_type: type, canonical } = bucketOf(name);
    expect(log.eraseName({ type, canonical }, undefined, { dryRun: true })).toBe(1);
    expect(traces()).toBe(before);

    // What is in use stays.
    small.erase(name);
    small.expectAll();
    expect(small.stored.filter((entry) => entry[9].includes(name)).map((entry) => entry[9])).toEqual([
      ["1 eve", name, "1 fay"],
    ]);
    expect(traces()).toBe(1);
    small.log = small.start();
    small.transact(() => small.end([name, "1 bob"]));
    small.erase(name);
    expect(traces()).toBe(0);
    small.expectAll();
    expect(small.model.holds.map(nameOf)).toEqual(["1 eve", "1 fay"]);
    for (let n = 0; n < 64; n += 1) small.transact();
    small.expectAll();
  });
});

describe("in memory", () => {
  const sizeIn = ({ held }: ShardLog, field: string): number => {
    const value = privateField(held, field) as { size: number } | { length: number };
    return "size" in value ? value.size : value.length;
  };

  test("[M6] nothing of holds that have ended stays in memory", () => {
    const small = new SmallLog(16);
    const work = new RandomWork(small, 5);
    for (let n = 0; n < 300; n += 1) {
      work.transaction();
      const { entries, holds } = small.model;
      expect(sizeIn(small.log, "#byName")).toBe(holds.length);
      expect(sizeIn(small.log, "#written")).toBe(entries.length);
      expect(sizeIn(small.log, "#ordered")).toBeLessThanOrEqual(2 * entries.length);
      expect(sizeIn(small.log, "#made") + sizeIn(small.log, "#endedNames")).toBe(0);
    }
    expect(sizeIn(small.log, "#byScope")).toBeGreaterThan(0);
    small.transact(() => small.end(small.model.holds.map(nameOf)));
    for (const field of ["#byName", "#ordered", "#written", "#cached", "#countByCell", "#byScope"])
      expect([field, sizeIn(small.log, field)]).toEqual([field, 0]);
    expect(privatePath(small.log, "held.#cachedHolds")).toBe(0);
  });

  test.each(["create", "destroy"] as const)(
    "[M6] the rows of at most 10,000 holds stay in memory: %s",
    (kind) => {
      const small = new SmallLog(64);
      // All destroys are in one row of the log.
      small.transact(() => {
        for (let n = 0; n < 150; n += 1) small.grant(named(`${n}-`, 100), () => ({ kind }));
      });
      for (const log of [small.log, small.start()]) {
        expectHeld(log, small.model, 500);
        const cached = [...(privateField(log.held, "#cached") as Set<HeldEntry>)];
        const holds = cached.reduce((sum, { stored }) => sum + (stored?.[9].length ?? 0), 0);
        expect(holds).toBe(10_000);
        expect(privatePath(log, "held.#cachedHolds")).toBe(holds);
      }
    },
  );
});
