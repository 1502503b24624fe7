/**
 * One process of a cell under load: sign-ups, renames and deletions over few names, and a reconcile loop,
 * until SIGTERM or a kill.
 */
import { eq, sql } from "drizzle-orm";
import { v7 as uuidv7 } from "uuid";
import { Random } from "../../../demo/random.ts";
import {
  LocalCommitUnknownError,
  type CellEvent,
  type ClaimTransaction,
} from "../../../src/users/cell/index.ts";
import { isLeaseholdError, type LeaseholdError } from "../../../src/users/client/index.ts";
import { loseAnswers } from "./lose-answers.ts";
import { openCell, type CellConfig } from "./open-cell.ts";
import type { Tx } from "./orm.ts";
import { Recorder, type Kind, type Line } from "./record.ts";
import { journal, users } from "./tables.ts";

export interface SignUpProcessOptions {
  config: CellConfig;
  /** The folder of the records. */
  folder: string;
  name: string;
  seed: number;
  concurrency: number;
  names: number;
}

type User = typeof users.$inferSelect;

/** The application's own refusal: no user exists to rename or delete. */
class NobodyThere extends Error {}

const SIGN_UPS = 0.6;
const RENAMES = 0.15;
const PREFLIGHTS = 0.4;
/** The share of deletions with `deleteLater`. */
const LATER = 0.5;
const SPELLED_OTHERWISE = 0.3;
/** The share of COMMITs whose answer is lost. */
const LOST = 0.01;
/** The pause after a failure that was not about a name, because something is down. */
const PAUSE_MS = 50;
/** Some operations must fail while a server is away, and most must not because the machine is slow. */
const DEADLINE_MS = 5_000;

const { config, folder, name, seed, concurrency, names } = JSON.parse(
  process.argv[2] ?? "{}",
) as SignUpProcessOptions;
const ending = { soon: false };
process.once("SIGTERM", () => (ending.soon = true));

const recorder = new Recorder(folder, name);
const network = new Random(seed, name, "network");
const { cell, orm } = openCell(config, {
  client: {
    retries: 4,
    breaker: { openMs: 200 },
    hooks: { onRetry: ({ operation }) => recorder.write({ line: "retry", operation }) },
  },
  cell: { beginDeadlineMs: DEADLINE_MS, preflightDeadlineMs: DEADLINE_MS, decideDeadlineMs: DEADLINE_MS },
  onConnect: loseAnswers(() => network.chance(LOST)),
  onEvent: (event) => recorder.write(lineOf(event)),
});

function lineOf(event: CellEvent): Line {
  const kind = event.kind === "reconcile_finding" ? event.finding.kind : event.kind;
  return { line: "event", kind, detail: JSON.stringify(event) };
}

/**
 * Runs an operation and records it before and after, as an application reports to its user. Returns true if
 * it failed for another reason than a name.
 */
async function recorded(kind: Kind, work: (op: string) => Promise<unknown>): Promise<boolean> {
  const op = uuidv7();
  recorder.write({ line: "started", op, kind });
  try {
    await work(op);
    recorder.write({ line: "reported", op, outcome: "saved", code: "OK" });
    return false;
  } catch (error) {
    recorder.write({
      line: "reported",
      op,
      outcome: error instanceof LocalCommitUnknownError ? "unknown" : "failed",
      code: codeOf(error),
    });
    return !(error instanceof NobodyThere) && !isAboutNames(error);
  }
}

const isAboutNames = (error: unknown): error is LeaseholdError =>
  isLeaseholdError(error) && error.conflicts.length > 0;

function codeOf(error: unknown): string {
  if (error instanceof NobodyThere) return "NOBODY";
  return isLeaseholdError(error) ? error.code : "DATABASE";
}

const write = (
  tx: ClaimTransaction<Tx>,
  op: string,
  kind: Kind,
  { id: userId, username }: Pick<User, "id" | "username">,
): Promise<unknown> => tx.db.insert(journal).values({ op, kind, userId, username });

function signUp(random: Random): Promise<boolean> {
  const user = {
    id: uuidv7(),
    username: someName(random),
    email: random.chance(0.5) ? `${someName(random)}@x.io` : null,
  };
  const isPreflight = random.chance(PREFLIGHTS);
  return recorded("sign_up", (op) =>
    isPreflight
      ? cell.preflight(
          (plan) => plan.insert(users, user),
          (tx) => write(tx, op, "sign_up", user),
        )
      : cell.transaction(async (tx) => {
          await tx.insert(users, user);
          await write(tx, op, "sign_up", user);
        }),
  );
}

function rename(random: Random): Promise<boolean> {
  const username = someName(random);
  const isPreflight = random.chance(PREFLIGHTS);
  return recorded("rename", async (op) => {
    const user = await someUser();
    if (isPreflight) {
      return cell.preflight(
        (plan) => plan.update(users, user, { username }),
        (tx) => write(tx, op, "rename", { id: user.id, username }),
      );
    }
    return cell.transaction(async (tx) => {
      const [renamed] = await tx.update(users, eq(users.id, user.id), { username });
      if (renamed === undefined) throw new NobodyThere();
      await write(tx, op, "rename", renamed);
    });
  });
}

function remove(random: Random): Promise<boolean> {
  const isLater = random.chance(LATER);
  return recorded("delete", async (op) => {
    const user = await someUser();
    await cell.transaction(async (tx) => {
      const its = eq(users.id, user.id);
      const gone = isLater ? await tx.deleteLater(users, its) : (await tx.delete(users, its)).length;
      if (gone === 0) throw new NobodyThere();
      await write(tx, op, "delete", user);
    });
  });
}

async function someUser(): Promise<User> {
  const [user] = await orm
    .select()
    .from(users)
    .orderBy(sql`random()`)
    .limit(1);
  if (user === undefined) throw new NobodyThere();
  return user;
}

function someName(random: Random): string {
  const chosen = `name-${random.between(1, names)}`;
  return random.chance(SPELLED_OTHERWISE) ? chosen.toUpperCase() : chosen;
}

async function runWorker(worker: number): Promise<void> {
  const random = new Random(seed, name, worker);
  while (!ending.soon) {
    const dice = random.next();
    const act = dice < SIGN_UPS ? signUp : dice < SIGN_UPS + RENAMES ? rename : remove;
    if (await act(random)) await new Promise((resume) => setTimeout(resume, PAUSE_MS));
  }
}

const loop = cell.startReconciling({
  everyMs: 500,
  commitGraceMs: 1_000,
  staleMs: 3_000,
  orphanMs: 5_000,
  fullEveryMs: 5_000,
  onRun: ({ result }) => {
    if (result !== undefined) recorder.write({ line: "reconciled", counters: { ...result.counters } });
  },
});
await Promise.all(Array.from({ length: concurrency }, (_, worker) => runWorker(worker)));
await loop.stop();
process.exit(0);
