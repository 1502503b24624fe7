/** A cell compares its types with those of the deployment, whenever the coordinator answers first. */
import { pgTable, serial, text } from "drizzle-orm/pg-core";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { claimable } from "../../../src/users/cell/claimable.ts";
import { TypesCheck, typesToSend } from "../../../src/users/cell/declared-types.ts";
import { NotFoundError, UnavailableError } from "../../../src/users/client/errors.ts";
import { typesOf, type TypesDocument } from "../../../src/common/types/document.ts";
import { gitlabTypes } from "../../../src/common/types/gitlab.ts";
import { Types } from "../../../src/common/types/types.ts";

const document: TypesDocument = {
  bucket_types: { HANDLES: { number: 7 }, STORES: { number: 8, form: "path" } },
  subject_types: { PERSON: { number: 3 } },
  source_types: { PEOPLE: { number: 9 } },
};
const read = (given: unknown): Types => {
  const made = typesOf(given);
  if (!made.ok) throw new Error(made.refusal.detail);
  return new Types(made.value);
};

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Starts a check as calls do, one a second, and answers what was reported when, in seconds. */
async function checked(answers: readonly (() => unknown)[], seconds: number) {
  const reported: { atS: number; differences: string[] }[] = [];
  let reads = 0;
  const startedMs = performance.now();
  const check = new TypesCheck(
    read(document).entries,
    async () => answers[(reads += 1) - 1]?.(),
    (differences) => reported.push({ atS: Math.round((performance.now() - startedMs) / 1_000), differences }),
  );
  for (let second = 0; second < seconds; second += 1) {
    check.start();
    await vi.advanceTimersByTimeAsync(1_000);
  }
  return { reported, reads };
}

const down = (): never => {
  throw new UnavailableError("down", { code: "UNAVAILABLE" });
};
const changed = {
  bucket_types: { HANDLES: { number: 7, max_length: 9 } },
  subject_types: { PERSON: { number: 4 }, OTHER: { number: 3 } },
  source_types: document.source_types,
};

test("says once what the deployment lacks, and which numbers and rules are others", async () => {
  const { reported, reads } = await checked([() => changed, () => changed], 200);
  const rule = '"number":7,"form":"plain","script":"single","case":"folded"';
  expect(reported).toEqual([
    {
      atS: 0,
      differences: [
        `bucket_types.HANDLES is {${rule}} in this cell, and {${rule},"max_length":9} in the deployment`,
        "bucket_types.STORES is not declared by the deployment",
        'subject_types.PERSON is {"number":3} in this cell, and {"number":4} in the deployment',
      ],
    },
  ]);
  expect(reads).toBe(1);
});

test("says nothing of types that only the deployment has, which cells get later", async () => {
  const newer = { ...document, subject_types: { ...document.subject_types, FIRM: { number: 5 } } };
  expect(await checked([() => newer], 200)).toEqual({ reported: [], reads: 1 });
});

test("waits for a coordinator that doesn't answer, and asks at most once a minute", async () => {
  const { reported, reads } = await checked([down, down, () => changed], 200);
  expect(reported).toMatchObject([{ atS: 120 }]);
  expect(reads).toBe(3);
});

test("gives up with a coordinator that cannot list its types", async () => {
  const old = (): never => {
    throw new NotFoundError("no such route", { code: "NOT_FOUND", reason: "ROUTE_UNKNOWN" });
  };
  expect(await checked([old, () => changed], 200)).toEqual({ reported: [], reads: 1 });
});

test("says that a newer deployment's types cannot be read", async () => {
  const newer = { ...document, bucket_types: { HANDLES: { number: 7, case: "upper" } } };
  const { reported } = await checked([() => newer], 1);
  expect(reported[0]?.differences).toEqual([
    "the types of the deployment cannot be read: `bucket_types.HANDLES.case` must be one of folded, exact",
  ]);
});

test("without a document of its own, a cell may only send the types of its tables", () => {
  const users = pgTable("users", { id: serial("id").primaryKey(), username: text("username").notNull() });
  const table = claimable(users, {
    source: "RAILS_TABLE_USERS",
    subject: { type: "USER", id: "id" },
    attributes: { username: "USERNAMES" },
  });
  const names = (hasDocument: boolean) =>
    typesToSend(read(gitlabTypes), hasDocument, [table, table]).map(({ name }) => name);
  expect(names(false)).toEqual(["RAILS_TABLE_USERS", "USER", "USERNAMES"]);
  expect(names(true)).toEqual(expect.arrayContaining(["ROUTES", "EMAILS"]));
});
