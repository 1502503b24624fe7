import { v7 as uuidv7 } from "uuid";
import {
  finishing,
  givingUp,
  tidying,
  undoing,
  inTransaction,
  type Points,
} from "../../rigs/cell-crash/points.ts";
import type { PythonTable } from "./python-process.ts";

/** The declarations of test/rigs/cell-crash/tables.ts. */
export const crashTables: readonly PythonTable[] = [
  {
    name: "users",
    source: "RAILS_TABLE_USERS",
    subject: "USER",
    columns: { username: "USERNAMES", email: "EMAILS" },
    integer_ids: false,
  },
  {
    name: "organizations",
    source: "RAILS_TABLE_ORGANIZATIONS",
    subject: "ORGANIZATION",
    columns: { path: "ORGANIZATION_PATH" },
  },
];

/** A failure that is injected so that the flow is undone. */
type Fault = "lost begin";

export interface Request {
  op: "transaction" | "reconcile";
  options: Record<string, unknown>;
}

/** The names of one case, and the id of the row that has the old one. */
interface CrashNames {
  old: string;
  fresh: string;
  id: string;
}

/** What a case needs before its process starts. */
interface Preparation {
  /** Runs a request in another process of the cell, with a fault. */
  run: (request: Request, fault?: "lost commit" | "no removal") => Promise<unknown>;
  /** Begins a lease on a username, without a row. */
  beginOnly: (name: string) => Promise<unknown>;
}

export interface CrashFlow {
  points: Points;
  fault?: Fault;
  prepare?: (preparation: Preparation, names: CrashNames) => Promise<unknown>;
  act: (names: CrashNames) => Request;
  /** The names that the cell has after the change was undone, and after it was saved. */
  undone: (names: CrashNames) => string[];
  saved: (names: CrashNames) => string[];
}

const insert = (username: string, id = uuidv7()) =>
  ["insert", "users", { id, username, email: `${username}@x.io` }] as const;
const transaction = (...steps: readonly unknown[]): Request => ({ op: "transaction", options: { steps } });

const signUp = ({ fresh }: CrashNames): Request => transaction(insert(fresh));
const withOld = ({ run }: Preparation, { old, id }: CrashNames): Promise<unknown> =>
  run(transaction(insert(old, id)));
/** A reconciliation that includes everything, however recent. */
export const reconcileAll: Request = {
  op: "reconcile",
  options: { full: true, commit_grace_s: 0, stale_s: 0, orphan_s: 0 },
};

const nothing = (): string[] => [];
const justOld = ({ old }: CrashNames): string[] => [old];
const justFresh = ({ fresh }: CrashNames): string[] => [fresh];

/** The points of a change that differ in what is saved, or in what the coordinator knows. */
const changing: Points = Object.fromEntries(
  Object.entries(inTransaction).filter(([point]) =>
    /^(?:begin|commit|COMMIT) (?:sent|answered)$|^(?:row before begin|after COMMIT|after remove)$/.test(
      point,
    ),
  ),
);

/** The flows of the SDK's rig (test/rigs/cell-crash/flows.ts) that the example has. */
export const crashFlows = {
  "a sign-up": {
    points: inTransaction,
    act: ({ fresh }) => transaction(["insert", "organizations", { path: `${fresh}-group` }], insert(fresh)),
    undone: nothing,
    saved: ({ fresh }) => [fresh, `${fresh}-group`],
  },
  "a rename": {
    points: changing,
    prepare: withOld,
    act: ({ id, fresh }) => transaction(["update", "users", id, { username: fresh }]),
    undone: justOld,
    saved: justFresh,
  },
  "a deletion": {
    points: changing,
    prepare: withOld,
    act: ({ id }) => transaction(["delete", "users", id]),
    undone: justOld,
    saved: nothing,
  },
  "a sign-up whose begin is not answered": {
    points: undoing,
    fault: "lost begin",
    act: signUp,
    undone: nothing,
    saved: justFresh,
  },
  "a sign-up that is refused at COMMIT": {
    points: undoing,
    act: ({ fresh }) => transaction(insert(fresh), ["sql", "INSERT INTO once VALUES ('x'), ('x')"]),
    undone: nothing,
    saved: justFresh,
  },
  "the reconciliation of a lease without its row": {
    points: givingUp,
    prepare: ({ beginOnly }, { fresh }) => beginOnly(fresh),
    act: () => reconcileAll,
    undone: nothing,
    saved: nothing,
  },
  "the reconciliation of a lease with its row": {
    points: finishing,
    prepare: ({ run }, names) => run(signUp(names), "lost commit"),
    act: () => reconcileAll,
    undone: nothing,
    saved: justFresh,
  },
  "the reconciliation of a row whose lease is committed": {
    points: tidying,
    prepare: ({ run }, names) => run(signUp(names), "no removal"),
    act: () => reconcileAll,
    undone: nothing,
    saved: justFresh,
  },
} satisfies Record<string, CrashFlow>;

export type CrashFlowName = keyof typeof crashFlows;
