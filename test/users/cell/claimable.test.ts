import {
  datetime,
  int,
  date as mysqlDate,
  mysqlTable,
  timestamp as mysqlTimestamp,
} from "drizzle-orm/mysql-core";
import {
  bigint,
  boolean,
  customType,
  date,
  integer,
  pgSchema,
  pgTable,
  serial,
  text,
  time,
  timestamp,
} from "drizzle-orm/pg-core";
import { describe, expect, expectTypeOf, test } from "vitest";
import { claimable, type ClaimableOptions } from "../../../src/users/cell/claimable.ts";
import { ClaimableTables } from "../../../src/users/cell/tables.ts";

const users = pgTable("users", {
  id: serial("id").primaryKey(),
  username: text("username").notNull(),
  phone: bigint("phone", { mode: "bigint" }),
  age: integer("age"),
  confirmed: boolean("confirmed").notNull(),
  createdAt: timestamp("created_at").notNull(),
});
const subject = { type: "USER", id: "id" } as const;
const row = { id: 7, username: "ada", phone: null, age: 36, confirmed: true, createdAt: new Date(0) };

describe("claims of a row", () => {
  const table = claimable(users, {
    source: "RAILS_TABLE_USERS",
    subject,
    attributes: {
      id: "USER_IDS",
      username: { bucket: "USERNAMES", when: ({ confirmed }) => confirmed },
      phone: "EMAILS",
    },
  });

  test("there is one for each column that is not null and applies", () => {
    const its = { subject: { type: "USER", id: "7" }, source: { type: "RAILS_TABLE_USERS", id: "7" } };
    expect(table.claimsOf(row)).toEqual([
      { bucket: { type: "USER_IDS", value: "7" }, attribute: "id", ...its },
      { bucket: { type: "USERNAMES", value: "ada" }, attribute: "username", ...its },
    ]);
    expect(table.claimsOf({ ...row, confirmed: false }).map(({ attribute }) => attribute)).toEqual(["id"]);
    expect(table.claimsOf({ ...row, phone: 12_345_678_901_234_567_890n }).at(-1)?.bucket.value).toBe(
      "12345678901234567890",
    );
  });

  test("`enabled` is read each time, and a subject may be computed", () => {
    let isOn = false;
    const switched = claimable(users, {
      source: "RAILS_TABLE_USERS",
      subject: { type: "NAMESPACE", id: ({ age }) => `age-${age}` },
      attributes: { username: { bucket: "USERNAMES", enabled: () => isOn } },
    });
    expect(switched.claimsOf(row)).toEqual([]);
    isOn = true;
    expect(switched.claimsOf(row)).toMatchObject([{ subject: { type: "NAMESPACE", id: "age-36" } }]);
  });

  test("a row that was read without its id is an error", () => {
    expect(() => table.claimsOf({ username: "ada", confirmed: true })).toThrow(
      "`id` of a row of users is missing",
    );
  });

  test("a number that JavaScript may have rounded is an error, wherever it is used", () => {
    const large = 2 ** 53;
    const options = { source: "RAILS_TABLE_USERS", attributes: { username: "USERNAMES" } } as const;
    const ofAge = claimable(users, { ...options, subject: { type: "USER", id: "age" }, scope: "age" });
    const computed = claimable(users, { ...options, subject: { type: "USER", id: () => large } });
    const scoped = claimable(users, { ...options, subject, scope: () => large });
    expect(() => table.idOf({ ...row, id: large })).toThrow(
      "`id` is 9007199254740992, and JavaScript rounds",
    );
    expect(() => table.claimsOf({ ...row, phone: -large })).toThrow("`phone` is -9007199254740992");
    expect(() => ofAge.checkExact({ ...row, age: large })).toThrow("`age` is 9007199254740992");
    expect(() => computed.claimsOf(row)).toThrow("`subject.id` is 9007199254740992");
    expect(() => scoped.claimsOf(row)).toThrow("`scope` is 9007199254740992");
    for (const phone of [0.1 + 0.2, 12_345_678.123_456_789, Number.NaN, Number.POSITIVE_INFINITY])
      expect(() => table.claimsOf({ ...row, phone })).toThrow("text or bigint");
    for (const phone of [large - 1, 0.1, 1.5e-7, -3, 123_456.123_456_789])
      expect(table.claimsOf({ ...row, phone }).at(-1)?.bucket.value).toBe(String(phone));
    const exact = { ...row, id: String(large), phone: BigInt(large) };
    expect(() => table.checkExact(exact)).not.toThrow();
    expect(() => table.checkExact(exact, true)).toThrow("`phone` is 9007199254740992");
    expect([table.hasLarge(exact), table.hasLarge(row)]).toEqual([true, false]);
    const off = { ...row, username: large, confirmed: false };
    expect(table.claimsOf(off).map(({ attribute }) => attribute)).toEqual(["id"]);
  });

  test("a null subject is undefined, which is enough to destroy a claim", () => {
    const owned = claimable(users, {
      source: "RAILS_TABLE_USERS",
      subject: { type: "USER", id: "age" },
      attributes: { username: "USERNAMES" },
    });
    expect(owned.claimsOf({ ...row, age: null })).toMatchObject([
      { subject: undefined, bucket: { value: "ada" } },
    ]);
  });
});

describe("a declaration", () => {
  test("refuses missing columns, columns of other types, and unknown bucket types", () => {
    const declare = (): unknown[] => [
      // @ts-expect-error -- the table has no such column
      claimable(users, { source: "RAILS_TABLE_USERS", subject, attributes: { nickname: "USERNAMES" } }),
    ];
    expect(declare).toThrow("names nickname, which is not a column of users");
    // @ts-expect-error -- a timestamp cannot be a name
    claimable(users, { source: "RAILS_TABLE_USERS", subject, attributes: { createdAt: "USERNAMES" } });
    // @ts-expect-error -- a boolean cannot be a name
    claimable(users, { source: "RAILS_TABLE_USERS", subject, attributes: { confirmed: "USERNAMES" } });
    // @ts-expect-error -- no such bucket type
    claimable(users, { source: "RAILS_TABLE_USERS", subject, attributes: { username: "NICKNAMES" } });
    // @ts-expect-error -- no such source type
    claimable(users, { source: "USERS", subject, attributes: { username: "USERNAMES" } });
    claimable(users, {
      source: "RAILS_TABLE_USERS",
      // @ts-expect-error -- a subject's id must be text or a number
      subject: { type: "USER", id: "confirmed" },
      attributes: { username: "USERNAMES" },
    });
  });

  test("takes only a column with a time for `changedAt`", () => {
    const options = { source: "RAILS_TABLE_USERS", subject, attributes: { username: "USERNAMES" } } as const;
    expect(claimable(users, { ...options, changedAt: "createdAt" }).changedAt).toBe("createdAt");
    // @ts-expect-error -- text is not a time
    expect(() => claimable(users, { ...options, changedAt: "username" })).toThrow(
      "`changedAt` names username, which must be a timestamp or datetime, not text",
    );
    const times = {
      day: date("day"),
      clock: time("clock"),
      zoned: timestamp("zoned", { withTimezone: true, mode: "string" }),
      own: customType<{ data: Date }>({ dataType: () => "timestamp(3)" })("own"),
    };
    const timed = pgTable("timed", { id: serial("id").primaryKey(), ...times });
    type OfPostgres = NonNullable<ClaimableOptions<typeof timed>["changedAt"]>;
    expectTypeOf<OfPostgres>().toEqualTypeOf<"zoned" | "own">();
    const inMysql = mysqlTable("timed", {
      id: int("id").primaryKey(),
      day: mysqlDate("day"),
      zoned: mysqlTimestamp("zoned"),
      local: datetime("local"),
      text: datetime("text", { mode: "string" }),
    });
    type OfMysql = NonNullable<ClaimableOptions<typeof inMysql>["changedAt"]>;
    expectTypeOf<OfMysql>().toEqualTypeOf<"zoned" | "local" | "text">();
  });

  test("needs the `id` of a table that has no column `id`", () => {
    const stores = pgTable("stores", {
      number: integer("number").primaryKey(),
      slug: text("slug").notNull(),
    });
    const options = {
      source: "RAILS_TABLE_USERS",
      subject: { type: "USER", id: "number" },
      attributes: { slug: "USERNAMES" },
    } as const;
    // @ts-expect-error -- `id` is missing
    expect(() => claimable(stores, options)).toThrow(
      "`id` must name the column that identifies a row, as stores has no `id`",
    );
    expect(claimable(stores, { ...options, id: "number" }).idName).toBe("number");
    // A column `id` that cannot identify a row does not count.
    const odd = pgTable("odd", { id: boolean("id"), slug: text("slug").notNull() });
    expectTypeOf<ClaimableOptions<typeof odd>["id"]>().toEqualTypeOf<"slug">();
    expectTypeOf<ClaimableOptions<typeof users>["id"]>().toEqualTypeOf<
      "id" | "username" | "phone" | "age" | undefined
    >();
  });

  test("needs at least one attribute, an existing id column, and its own source type", () => {
    expect(() => claimable(users, { source: "RAILS_TABLE_USERS", subject, attributes: {} })).toThrow(
      "must name at least one column",
    );
    expect(() =>
      claimable(users, {
        source: "RAILS_TABLE_USERS",
        id: "uuid" as "id",
        subject,
        attributes: { username: "USERNAMES" },
      }),
    ).toThrow("`id` names uuid");
    const declared = claimable(users, {
      source: "RAILS_TABLE_USERS",
      subject,
      attributes: { username: "USERNAMES" },
    });
    const other = pgTable("people", { id: serial("id").primaryKey(), name: text("name") });
    const same = claimable(other, {
      source: "RAILS_TABLE_USERS",
      subject,
      attributes: { name: "USERNAMES" },
    });
    expect(() => new ClaimableTables([declared, same])).toThrow(
      "RAILS_TABLE_USERS twice, for users and people",
    );
    const emails = { source: "RAILS_TABLE_EMAILS", subject, attributes: { username: "EMAILS" } } as const;
    const again = pgTable("users", { id: serial().primaryKey(), username: text() });
    for (const table of [users, again] as const)
      expect(() => new ClaimableTables([declared, claimable(table as typeof users, emails)])).toThrow(
        "`tables` has users twice: name all its columns in one claimable()",
      );
    const elsewhere = pgSchema("crm").table("users", { id: serial().primaryKey(), username: text() });
    expect(() => new ClaimableTables([declared, claimable(elsewhere, emails)])).not.toThrow();
    expect(() => new ClaimableTables([declared]).of(other)).toThrow("people is not among the cell's tables");
  });
});
