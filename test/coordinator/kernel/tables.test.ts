/** The steps that make the tables of an object, and the formats of those with whom it talks. */
import { expect, test } from "vitest";
import type { Stamp } from "../../../src/coordinator/kernel/formats.ts";
import { META_TABLE, readMeta, writeMeta } from "../../../src/coordinator/kernel/meta.ts";
import { ok, type Result } from "../../../src/coordinator/kernel/refusal.ts";
import {
  Tables,
  UnknownTables,
  type Steps,
  type StepsByCapability,
} from "../../../src/coordinator/kernel/tables.ts";
import { NodeSql } from "../../support/node-sql.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const one = ["CREATE TABLE one (n INTEGER)", "INSERT INTO one VALUES (1)"];
const two = ["INSERT INTO one VALUES (2)", "INSERT INTO one VALUES (3)"];
const late = { format: 2, statements: ["INSERT INTO one VALUES (4)"] };

class Stored {
  readonly sql = new NodeSql();
  readonly clock = new VirtualClock();

  /** Starts the object with code that speaks a format. */
  start(steps: Steps, speaks = 1, capabilities: StepsByCapability = {}): Tables {
    return new Tables({ sql: this.sql, clock: this.clock, speaks }, steps, capabilities);
  }

  get rows(): number[] {
    return this.sql.all<{ n: number }>("SELECT n FROM one").map(({ n }) => n);
  }

  get tables(): unknown {
    return JSON.parse(String(readMeta(this.sql, "tables")));
  }

  store(name: string, value: string | number): void {
    this.sql.all(META_TABLE);
    this.sql.transaction(["migrate"], () => writeMeta(this.sql, name, value));
  }
}

const UNKNOWN = { ok: false, refusal: { code: "UNAVAILABLE", reason: "FORMAT_UNKNOWN" } };

const served = (tables: Tables, stamp: Stamp, work = async (): Promise<Result<number>> => ok(7)) =>
  tables.serve(stamp, work);

test("[M5] tables are made by the steps that are new, and a step that fails leaves nothing", () => {
  const stored = new Stored();
  stored.start([one]);
  stored.start([one]);
  expect(stored.rows).toEqual([1]);
  expect(() => stored.start([one, two, ["INSERT INTO one VALUES (4)", "no statement"]])).toThrow();
  expect(stored.rows).toEqual([1]);
  stored.start([one, two, ["INSERT INTO one VALUES (5)"]]);
  expect(stored.rows).toEqual([1, 2, 3, 5]);
  expect(stored.tables).toEqual({ steps: 3, format: 1 });
});

test("[M5] code of the format before works with tables that have more steps than it knows", () => {
  const stored = new Stored();
  stored.start([one, two, late], 2);
  stored.start([one]);
  expect(stored.rows).toEqual([1, 2, 3]);
  expect(stored.tables).toEqual({ steps: 2, format: 1 });
});

test("[M5] each capability has steps of its own, and one that was taken out loses none", () => {
  const stored = new Stored();
  const added = [["CREATE TABLE IF NOT EXISTS added (n INTEGER) STRICT"], ["INSERT INTO one VALUES (6)"]];
  stored.start([one], 1, { added });
  stored.start([one], 1, { added, other: [["INSERT INTO one VALUES (7)"]] });
  stored.start([one, two]);
  stored.start([one, two], 1, { added });
  expect(stored.rows).toEqual([1, 6, 7, 2, 3]);
  expect(stored.tables).toEqual({ steps: 2, format: 1 });
  expect(readMeta(stored.sql, "capability_steps")).toBe('{"added":2,"other":1}');
});

test("[M5] a step that waits for a format is carried out when that is in force, then the next", async () => {
  const stored = new Stored();
  const tables = stored.start([one, late, two], 2);
  expect(stored.rows).toEqual([1]);
  expect(await served(tables, { speaks: 2, format: 2 })).toEqual({ ...ok(7), speaks: 2, format: 2 });
  expect(stored.rows).toEqual([1, 4, 2, 3]);
  expect(stored.tables).toEqual({ steps: 3, format: 2 });
});

test.each([
  ["of a later format", 2, "tables", '{"steps":1,"format":3}', /need a newer version.*format 3.*speaks 2/],
  ["of a version before 0.2.0", 1, "schema_version", 5, /before 0\.2\.0.* `leasehold backup create`/],
  ["without a format", 1, "tables", '{"steps":1,"needs":1}', /before 0\.2\.0/],
])("[M5] code refuses tables %s, and changes nothing", (_, speaks, name, value, reason) => {
  const stored = new Stored();
  stored.store(name, value);
  expect(() => stored.start([one, two], speaks)).toThrow(UnknownTables);
  expect(() => stored.start([one, two], speaks)).toThrow(reason);
  expect(stored.sql.all("SELECT name, value FROM meta")).toEqual([{ name, value }]);
  expect(() => stored.rows).toThrow("no such table");
});

test("[M5] [M9] an object two formats behind its code refuses messages until it is told", async () => {
  const stored = new Stored();
  stored.store("tables", '{"steps":1,"format":1}');
  stored.store("placement", "hash1.shards4.canonical1");
  const tables = stored.start([[], one], 3);
  expect(tables.fault).toContain("`leasehold upgrade finish`");
  const never = (): Promise<never> => expect.unreachable("the message was carried out");
  for (const format of [0, 1])
    expect(await served(tables, { speaks: 3, format }, never)).toMatchObject(UNKNOWN);
  expect(await served(tables, { speaks: 3, format: 2 })).toMatchObject(ok(7));
  expect(tables.fault).toBeUndefined();
});

test("[M9] an object that was never used has no older format", () => {
  const stored = new Stored();
  stored.store("tables", '{"steps":0,"format":1}');
  expect(stored.start([one], 3)).toMatchObject({ fault: undefined, stamp: { speaks: 3, format: 2 } });
});

test("[M9] a format that cannot be stored is not in force", async () => {
  const stored = new Stored();
  const tables = stored.start([one, { format: 2, statements: ["DROP TABLE one", "no statement"] }], 2);
  await expect(served(tables, { speaks: 2, format: 2 })).rejects.toThrow();
  expect(tables.stamp).toEqual({ speaks: 2, format: 1 });
  expect(stored.rows).toEqual([1]);
});

test("[M9] a new object starts with the oldest format that its code speaks", () => {
  expect([1, 2, 3].map((speaks) => new Stored().start([], speaks).stamp)).toEqual([
    { speaks: 1, format: 1 },
    { speaks: 2, format: 1 },
    { speaks: 3, format: 2 },
  ]);
});

test("[M9] code of neighbouring formats exchange messages in the format in force", async () => {
  const older = new Stored().start([one]);
  const newer = new Stored().start([one], 2);
  expect(await served(older, newer.stamp)).toEqual({ ...ok(7), speaks: 1, format: 1 });
  expect(await served(newer, older.stamp)).toMatchObject({ ...ok(7), speaks: 2, format: 1 });
});

test("[M9] a message in a later format is refused by older code, and stores nothing", async () => {
  const stored = new Stored();
  const tables = stored.start([one]);
  const { transactions } = stored.sql.counts;
  const never = (): Promise<never> => expect.unreachable("the message was carried out");
  expect(await served(tables, { speaks: 2, format: 2 }, never)).toMatchObject(UNKNOWN);
  expect(stored.sql.counts.transactions).toBe(transactions);
});

test("[M9] a message of code that cannot read the format in force is refused", async () => {
  const tables = new Stored().start([one], 2);
  await served(tables, { speaks: 2, format: 2 });
  const never = (): Promise<never> => expect.unreachable("the message was carried out");
  expect(await served(tables, { speaks: 1, format: 1 }, never)).toMatchObject({ ...UNKNOWN, format: 2 });
  expect(await served(tables, {} as Stamp, never)).toMatchObject(UNKNOWN);
});

test("[M9] a format is stored once, and stays in force", async () => {
  const stored = new Stored();
  const tables = stored.start([one], 2);
  const { transactions } = stored.sql.counts;
  for (const format of [2, 1, 2]) await served(tables, { speaks: 2, format });
  expect(stored.sql.counts.transactions).toBe(transactions + 1);
  expect(stored.start([one], 2).stamp).toEqual({ speaks: 2, format: 2 });
});

test("[M1] [M9] the outcome is unknown if a format that the sender cannot read came meanwhile", async () => {
  const tables = new Stored().start([one], 2);
  const answer = served(tables, { speaks: 1, format: 1 }, async () => {
    await served(tables, { speaks: 2, format: 2 });
    return ok(7);
  });
  await expect(answer).rejects.toThrow("cannot read");
});

test("[M9] an object tells for a minute that it has heard older code", async () => {
  const stored = new Stored();
  const tables = stored.start([one], 2);
  const heard = async (speaks: number) => (await served(tables, { speaks, format: 1 })).hearsOlder;
  expect(await heard(2)).toBeUndefined();
  expect(await heard(1)).toBe(true);
  await stored.clock.pass(59_000);
  expect(await heard(2)).toBe(true);
  await stored.clock.pass(1_000);
  expect(await heard(2)).toBeUndefined();
});

test("[M4] [M9] a clock that goes back does not lengthen that", async () => {
  const stored = new Stored();
  const tables = stored.start([one], 2);
  await stored.clock.pass(3_600_000);
  await served(tables, { speaks: 1, format: 1 });
  stored.clock.jump(-3_600_000);
  expect((await served(tables, { speaks: 2, format: 1 })).hearsOlder).toBeUndefined();
});
