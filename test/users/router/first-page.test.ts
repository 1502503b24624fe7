/** A sign-up and the first page after it, through a router, with a cell that uses the SDK. */
import type { PGlite } from "@electric-sql/pglite";
import { eq } from "drizzle-orm";
import { pgTable, serial, text } from "drizzle-orm/pg-core";
import { drizzle } from "drizzle-orm/pglite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  claimable,
  createCell,
  mergePositions,
  misdirectedResponse,
  positionCookie,
  type Positions,
} from "../../../src/users/cell/index.ts";
import { postgres } from "../../../src/users/cell/postgres/index.ts";
import { createClient } from "../../../src/users/client/index.ts";
import { compileRuleset, createProxy, createRoutes, type Routes } from "../../../src/users/router/index.ts";
import { startTestCoordinator, type TestCoordinator } from "../../../src/users/testing/index.ts";
import { startPglite } from "../../support/databases/pglite.ts";

const users = pgTable("users", { id: serial("id").primaryKey(), username: text("username").notNull() });

const claimableUsers = claimable(users, {
  source: "RAILS_TABLE_USERS",
  subject: { type: "USER", id: "id" },
  attributes: { username: "USERNAMES" },
});

const ruleset = compileRuleset([
  { id: "sign-up", match: { type: "path", pattern: "/sign-up/*" }, action: "cell", cell: "1" },
  {
    id: "users",
    match: { type: "path", pattern: "/:name" },
    action: "classify",
    classify: { type: "USERNAMES", value: "${name}" },
  },
  { id: "other", action: "not_found" },
]);

let coordinator: TestCoordinator;
let database: PGlite;
let cell: ReturnType<typeof openCell>;
let routes: Routes;
let proxy: ReturnType<typeof createProxy>;

beforeAll(async () => {
  coordinator = await startTestCoordinator({ cells: ["1", "2"] });
  database = await startPglite();
  await database.exec("CREATE TABLE users (id serial PRIMARY KEY, username text NOT NULL UNIQUE)");
  const { url, keys, fetch } = coordinator;
  cell = openCell();
  await cell.install();
  // A router whose time stands still: what it remembers gets no older. It waits for a busy machine.
  const clock = {
    now: () => 0,
    after: (delayMs: number, ring: () => void) => {
      const timer = setTimeout(ring, delayMs);
      return () => clearTimeout(timer);
    },
  };
  routes = createRoutes({ url, key: keys.router, fetch, clock, timeoutMs: 60_000 });
  proxy = createProxy({ routes, ruleset, fetch: application });
});

afterAll(async () => {
  routes.close();
  await cell.flush();
  await database.close();
  await coordinator.close();
});

/** Cell 1. It waits for answers as long as the test does. */
function openCell(chunk = {}) {
  const { url, keys, fetch } = coordinator;
  return createCell({
    client: createClient({ url, key: keys.cell("1"), cell: "1", fetch }),
    database: postgres(drizzle(database)),
    tables: [claimableUsers],
    beginDeadlineMs: 60_000,
    decideDeadlineMs: 60_000,
    chunk,
  });
}

/** The application of cell 1. */
async function application(...given: Parameters<typeof fetch>): Promise<Response> {
  const request = new Request(...given);
  const { pathname } = new URL(request.url);
  const [name = "", isSignUp] = pathname
    .split("/")
    .filter((part) => part !== "")
    .toReversed();
  if (isSignUp !== undefined) return signUp(name);
  const [user] = await drizzle(database).select().from(users).where(eq(users.username, name));
  if (user !== undefined) return new Response(`the page of ${name}`);
  return misdirectedResponse(request.headers) ?? new Response("not found", { status: 404 });
}

async function signUp(username: string): Promise<Response> {
  const headers = new Headers({ location: `/${username}` });
  await cell.transaction((tx) => tx.insert(users, { username }), {
    onPositions: (positions) => headers.append("set-cookie", positionCookie(positions, 5)),
  });
  return new Response(null, { status: 303, headers });
}

const send = (method: string, path: string, cookie?: string): Promise<Response> =>
  proxy(
    new Request(`https://www.example.com${path}`, {
      method,
      headers: cookie === undefined ? {} : { cookie },
    }),
  );

test("[Q9] is found at once by the new user, though the router has just remembered a 404", async () => {
  expect((await send("GET", "/ada")).status).toBe(404);
  const signedUp = await send("POST", "/sign-up/ada");
  expect(signedUp.status).toBe(303);
  const [cookie = ""] = signedUp.headers.getSetCookie();
  expect(cookie).toMatch(/^Leasehold-Position=\d+:\d+; Max-Age=5; Path=\/; HttpOnly; Secure; SameSite=Lax$/);
  // Others get the 404 for as long as the router may remember it.
  expect((await send("GET", "/ada")).status).toBe(404);
  const first = await send("GET", "/ada", `theme=dark; ${cookie.split(";")[0] ?? ""}`);
  expect([first.status, await first.text()]).toEqual([200, "the page of ada"]);
});

describe("[Q9] positions of a lease", () => {
  const positionsOf = async (
    change: (onPositions: (positions: Positions) => void) => Promise<unknown>,
  ): Promise<Positions[]> => {
    const told: Positions[] = [];
    await change((positions) => told.push(positions));
    return told;
  };

  const isFound = async (username: string, minPositions: Positions): Promise<boolean> =>
    (await routes.find({ type: "USERNAMES", value: username }, { minPositions })).kind === "found";

  test("are told before a transaction resolves", async () => {
    const [positions = new Map()] = await positionsOf((onPositions) =>
      cell.transaction((tx) => tx.insert(users, { username: "grace" }), { onPositions }),
    );
    expect(await isFound("grace", positions)).toBe(true);
  });

  test("are told by a preflight", async () => {
    const [positions = new Map()] = await positionsOf((onPositions) =>
      cell.preflight((writes) => writes.insert(users, { id: 1_000, username: "joan" }), undefined, {
        onPositions,
      }),
    );
    expect(await isFound("joan", positions)).toBe(true);
  });

  test("are told for each chunk of a bulk change, and can be joined", async () => {
    const usernames = ["barbara", "frances", "shafi"];
    const chunked = openCell({ records: 1 });
    const rows = usernames.map((username) => ({ username }));
    const told = await positionsOf((onPositions) => chunked.bulkInsert(users, rows, { onPositions }));
    expect(told).toHaveLength(3);
    const all = told.reduce(mergePositions);
    for (const username of usernames) expect(await isFound(username, all)).toBe(true);
    await chunked.flush();
  });

  test("are not told without a lease, and not for rows that were not saved", async () => {
    expect(await positionsOf((onPositions) => cell.transaction(async () => {}, { onPositions }))).toEqual([]);
    const told = await positionsOf((onPositions) =>
      cell
        .transaction(
          async (tx) => {
            await tx.insert(users, { username: "radia" });
            throw new Error("no");
          },
          { onPositions },
        )
        .catch(() => {}),
    );
    expect(told).toEqual([]);
  });

  test("don't fail a saved transaction if the callback throws", async () => {
    const onPositions = (): never => {
      throw new Error("no");
    };
    const saved = await cell.transaction((tx) => tx.insert(users, { username: "sophie" }), { onPositions });
    expect(saved).toMatchObject({ username: "sophie" });
  });
});
