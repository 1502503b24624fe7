import { eq, inArray } from "drizzle-orm";
import { v7 as uuidv7 } from "uuid";
import type { Cell } from "../../../src/users/cell/index.ts";
import { callOf } from "./call-of.ts";
import type { OpenCell, OpenOptions } from "./open-cell.ts";
import type { Tx } from "./orm.ts";
import {
  catchingUp,
  deferred,
  finishing,
  givingUp,
  inTransaction,
  preflight,
  tidying,
  undoing,
  type Points,
} from "./points.ts";
import { once, organizations, users } from "./tables.ts";

/** A failure that is injected so that the flow is undone. */
export type Fault = "lost begin" | "no row";

/** Opens the cell for one piece of work, with changed options. */
type Opens = <T>(work: (open: OpenCell) => Promise<T>, options?: OpenOptions) => Promise<T>;

/**
 * One operation of a cell, with the points that it reaches. `old` and `fresh` are names of this case alone.
 */
export interface Flow {
  points: Points;
  fault?: Fault;
  /** Which hit of a point counts. Later hits belong to the second chunk. */
  hit?: number;
  /** The flow first reads its row in a separate local transaction. */
  readsFirst?: boolean;
  /** Prepares the state before the flow. */
  prepare?: (opens: Opens, names: Names) => Promise<unknown>;
  act: (cell: Cell<Tx>, names: Names) => Promise<unknown>;
  /** The names that the cell has after the change was undone, and after it was saved. */
  undone: (names: Names) => string[];
  saved: (names: Names) => string[];
}

export interface Names {
  old: string;
  fresh: string;
}

const CHUNK = 2;

const nothing = (): string[] => [];
const justOld = ({ old }: Names): string[] => [old];
const justFresh = ({ fresh }: Names): string[] => [fresh];
const chunked = ({ fresh }: Names): string[] =>
  Array.from({ length: 2 * CHUNK }, (_, index) => `${fresh}-${index}`);

const newUser = (username: string): typeof users.$inferInsert => ({
  id: uuidv7(),
  username,
  email: `${username}@x.io`,
});

const signUp = (cell: Cell<Tx>, { fresh }: Names): Promise<unknown> =>
  cell.transaction((tx) => tx.insert(users, newUser(fresh)));
const withOld = (opens: Opens, { old }: Names): Promise<unknown> =>
  opens(({ cell }) => signUp(cell, { old: "", fresh: old }));
const its = ({ old }: Names) => eq(users.username, old);

async function readOld(cell: Cell<Tx>, names: Names): Promise<typeof users.$inferSelect> {
  const [row] = await cell.transaction((tx) => tx.db.select().from(users).where(its(names)));
  if (row === undefined) throw new Error(`${names.old} is not there`);
  return row;
}

/** A fetch that fails for one kind of call. */
const cutting = (operation: "begin" | "commit"): OpenOptions => ({
  client: {
    fetch: async (url, init) => {
      if (callOf(init.method, new URL(url).pathname).operation === operation)
        throw new TypeError("fetch failed");
      return fetch(url, init);
    },
  },
});

/** A reconciliation that includes everything, however recent. */
const reconcileAll = (cell: Cell<Tx>): Promise<unknown> =>
  cell.reconcile({ full: true, commitGraceMs: 0, staleMs: 0, orphanMs: 0 });

const throwing = (): never => {
  throw new Error("the application changed its mind");
};

const signUps = { act: signUp, undone: nothing, saved: justFresh };

export const flows = {
  /** Inserts two rows, one of which gets its id from the database. */
  "a sign-up": {
    points: inTransaction,
    act: (cell, { fresh }) =>
      cell.transaction(async (tx) => {
        await tx.insert(organizations, { path: `${fresh}-group` });
        await tx.insert(users, newUser(fresh));
      }),
    undone: nothing,
    saved: ({ fresh }) => [fresh, `${fresh}-group`],
  },
  "a rename": {
    points: inTransaction,
    prepare: withOld,
    act: (cell, names) => cell.transaction((tx) => tx.update(users, its(names), { username: names.fresh })),
    undone: justOld,
    saved: justFresh,
  },
  "a deletion": {
    points: inTransaction,
    prepare: withOld,
    act: (cell, names) => cell.transaction((tx) => tx.delete(users, its(names))),
    undone: justOld,
    saved: nothing,
  },
  "a pre-flight sign-up": {
    points: preflight,
    act: (cell, { fresh }) => cell.preflight((plan) => plan.insert(users, newUser(fresh))),
    undone: nothing,
    saved: justFresh,
  },
  "a pre-flight rename": {
    points: preflight,
    readsFirst: true,
    prepare: withOld,
    act: async (cell, names) => {
      const row = await readOld(cell, names);
      await cell.preflight((plan) => plan.update(users, row, { username: names.fresh }));
    },
    undone: justOld,
    saved: justFresh,
  },
  "a pre-flight deletion": {
    points: preflight,
    readsFirst: true,
    prepare: withOld,
    act: async (cell, names) => {
      const row = await readOld(cell, names);
      await cell.preflight((plan) => plan.delete(users, row));
    },
    undone: justOld,
    saved: nothing,
  },
  "the second chunk of a bulk insert": {
    points: inTransaction,
    hit: 2,
    act: (cell, names) =>
      cell.bulkInsert(
        organizations,
        chunked(names).map((path) => ({ path })),
      ),
    undone: (names) => chunked(names).slice(0, CHUNK),
    saved: chunked,
  },
  "the second chunk of a bulk deletion": {
    points: inTransaction,
    hit: 2,
    prepare: (opens, names) =>
      opens(({ cell }) =>
        cell.transaction((tx) =>
          tx.insertMany(
            organizations,
            chunked(names).map((path) => ({ path })),
          ),
        ),
      ),
    act: (cell, names) => cell.bulkDelete(organizations, inArray(organizations.path, chunked(names))),
    undone: (names) => chunked(names).slice(CHUNK),
    saved: nothing,
  },
  "a deletion whose names are given up later": {
    points: deferred,
    prepare: withOld,
    act: (cell, names) => cell.transaction((tx) => tx.deleteLater(users, its(names))),
    undone: justOld,
    saved: nothing,
  },
  "a sign-up whose begin is not answered": { ...signUps, points: undoing, fault: "lost begin" },
  "a sign-up whose outstanding row cannot be written": { ...signUps, points: undoing, fault: "no row" },
  "a sign-up that is refused at COMMIT": {
    points: undoing,
    act: (cell, { fresh }) =>
      cell.transaction(async (tx) => {
        await tx.insert(users, newUser(fresh));
        await tx.db.insert(once).values([{ name: fresh }, { name: fresh }]);
      }),
    undone: nothing,
    saved: nothing,
  },
  "a pre-flight sign-up whose body throws": {
    points: undoing,
    act: (cell, { fresh }) => cell.preflight((plan) => plan.insert(users, newUser(fresh)), throwing),
    undone: nothing,
    saved: nothing,
  },
  "the reconciliation of a lease without its row": {
    points: givingUp,
    prepare: (opens, { fresh }) =>
      opens(({ client }) =>
        client.leases.begin({
          creates: [
            {
              bucket: { type: "USERNAMES", value: fresh },
              subject: { type: "USER", id: fresh },
              source: { type: "RAILS_TABLE_USERS", id: fresh },
            },
          ],
        }),
      ),
    act: reconcileAll,
    undone: nothing,
    saved: nothing,
  },
  "the reconciliation of a lease with its row": {
    points: finishing,
    prepare: (opens, names) => opens(({ cell }) => signUp(cell, names), cutting("commit")),
    act: reconcileAll,
    undone: nothing,
    saved: justFresh,
  },
  "the reconciliation of a row whose lease is committed": {
    points: tidying,
    prepare: (opens, names) =>
      opens(({ cell, database }) => {
        database.remove = () => Promise.reject(new Error("not now"));
        return signUp(cell, names);
      }),
    act: reconcileAll,
    undone: nothing,
    saved: justFresh,
  },
  "the reconciliation of a deletion whose names are to be given up": {
    points: catchingUp,
    prepare: async (opens, names) => {
      await withOld(opens, names);
      await opens(
        ({ cell }) => cell.transaction((tx) => tx.deleteLater(users, its(names))),
        cutting("begin"),
      );
    },
    act: reconcileAll,
    undone: justOld,
    saved: nothing,
  },
} satisfies Record<string, Flow>;

export type FlowName = keyof typeof flows;

export const CHUNK_OF_FLOWS = { records: CHUNK };
