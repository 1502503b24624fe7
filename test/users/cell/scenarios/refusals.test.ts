/** What the user, the application and the operator learn about a begin that is refused. */
import { drizzle } from "drizzle-orm/pglite";
import { pgTable, serial, text } from "drizzle-orm/pg-core";
import type { PGlite } from "@electric-sql/pglite";
import { afterEach, beforeAll, beforeEach, afterAll, expect, test } from "vitest";
import { createCell, type CellEvent } from "../../../../src/users/cell/cell.ts";
import { claimable } from "../../../../src/users/cell/claimable.ts";
import { patientCell, patientClient } from "../../../../src/users/cell/conformance/target.ts";
import { postgres } from "../../../../src/users/cell/postgres/index.ts";
import { toValidationErrors } from "../../../../src/users/cell/validation.ts";
import { createClient, type ClientOptions } from "../../../../src/users/client/client.ts";
import type { TypesDocument } from "../../../../src/common/types/document.ts";
import { startTestCoordinator, type TestCoordinator } from "../../../../src/users/testing/index.ts";
import { startPglite } from "../../../support/databases/pglite.ts";

const people = pgTable("people", { id: serial("id").primaryKey(), handle: text("handle").notNull() });

const bucketTypes = { HANDLES: { number: 7, max_length: 5 }, NICKNAMES: { number: 8 } };
const types: TypesDocument = {
  bucket_types: bucketTypes,
  subject_types: { PERSON: { number: 3 } },
  source_types: { PEOPLE: { number: 9 } },
};
/** As the deployment has declared it. */
const declared: TypesDocument = { ...types, bucket_types: { HANDLES: bucketTypes.HANDLES } };
/** The compiler only knows the types that Leasehold ships. */
const tableOf = (bucket: string) =>
  claimable(people, {
    source: "PEOPLE" as never,
    subject: { type: "PERSON" as never, id: "id" },
    attributes: { handle: bucket as never },
  });

let database: PGlite;
let coordinator: TestCoordinator;
let events: CellEvent[];

beforeAll(async () => {
  database = await startPglite();
  await postgres(drizzle(database)).install();
  await database.query("CREATE TABLE people (id serial PRIMARY KEY, handle text NOT NULL)");
});
afterAll(() => database.close());
beforeEach(async () => {
  events = [];
  coordinator = await startTestCoordinator({ types: declared });
});
afterEach(() => coordinator.close());

const eventsOf = (kind: CellEvent["kind"]): CellEvent[] => events.filter((event) => event.kind === kind);

interface Options extends Partial<ClientOptions> {
  bucket?: string;
  cellTypes?: TypesDocument;
}

/** Answers the error of a sign-up, and what the form shows. */
async function signUp(
  handle: string,
  { bucket = "HANDLES", cellTypes = declared, ...options }: Options = {},
) {
  const client = createClient({
    url: coordinator.url,
    key: coordinator.keys.cell("1"),
    cell: "1",
    fetch: (to, init) => coordinator.fetch(to, init),
    ...patientClient,
    ...options,
  });
  const cell = createCell({
    client,
    database: postgres(drizzle(database)),
    tables: [tableOf(bucket)],
    types: cellTypes,
    ...patientCell,
    onEvent: (event) => events.push(event),
  });
  const error: unknown = await cell
    .transaction((tx) => tx.insert(people, { handle }))
    .catch((thrown: unknown) => thrown);
  await cell.flush();
  return { error, shown: toValidationErrors(error).map(({ field, problem }) => `${field}: ${problem}`) };
}

test("a bucket type that the coordinator doesn't have is an event, and no mistake of the user", async () => {
  const { error, shown } = await signUp("ada", { bucket: "NICKNAMES", cellTypes: types });
  expect(shown).toEqual([]);
  expect(error).toMatchObject({ code: "INVALID_ARGUMENT", field: "creates[0].bucket.type" });
  expect(eventsOf("begin_refused")).toMatchObject([
    {
      code: "INVALID_ARGUMENT",
      field: "creates[0].bucket.type",
      error: expect.stringContaining("NICKNAMES is none; declared: HANDLES") as string,
    },
  ]);
  await expect
    .poll(() => eventsOf("types_differ"))
    .toEqual([
      { kind: "types_differ", differences: ["bucket_types.NICKNAMES is not declared by the deployment"] },
    ]);
});

test("a field that an older coordinator doesn't know is an event, and no mistake of the user", async () => {
  // As a newer SDK would send it.
  const newer = (body = "") => body.replace('"subject":', '"later":"x","subject":');
  const { error, shown } = await signUp("ada", {
    fetch: (to, init) => coordinator.fetch(to, { ...init, body: newer(init.body) }),
  });
  expect(shown).toEqual([]);
  expect(error).toMatchObject({ code: "INVALID_ARGUMENT", field: "creates[0].later" });
  expect(eventsOf("begin_refused")).toMatchObject([{ field: "creates[0].later" }]);
});

test("a key that is not valid is an event", async () => {
  const { error, shown } = await signUp("ada", { key: "lh_wrong" });
  expect([shown, error]).toMatchObject([[], { code: "UNAUTHENTICATED" }]);
  expect(events).toMatchObject([{ kind: "begin_refused", code: "UNAUTHENTICATED" }]);
});

test("a name that only the coordinator's rule refuses is a mistake of the user", async () => {
  const lax = { ...types, bucket_types: { HANDLES: { number: 7 } } };
  const { error, shown } = await signUp("too-long", { cellTypes: lax });
  expect([shown, error]).toMatchObject([["handle: invalid"], { field: "handle" }]);
  expect(eventsOf("begin_refused")).toEqual([]);
  await expect
    .poll(() => eventsOf("types_differ"))
    .toMatchObject([
      {
        differences: [
          expect.stringMatching(/^bucket_types.HANDLES is .* in this cell, and .*"max_length":5/),
        ],
      },
    ]);
});

test("a frozen or draining cell is shown at the fields, and is no event", async () => {
  const operator = createClient({
    url: coordinator.url,
    key: coordinator.keys.operator,
    fetch: (to, init) => coordinator.fetch(to, init),
  });
  for (const [state, name] of [
    ["freeze", "CellFrozenError"],
    ["drain", "CellDrainingError"],
  ] as const) {
    await operator.cells[state]("1", { reason: "a test" });
    const { error, shown } = await signUp("ada");
    expect([shown, error]).toMatchObject([["handle: failed"], { name }]);
    await operator.cells.unfreeze("1", { reason: "a test" });
  }
  expect(events).toEqual([]);
});
