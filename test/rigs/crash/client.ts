/**
 * One process of a cell under load: begins, local transactions, commits, rollbacks and lookups until SIGTERM.
 * SIGUSR2 aborts everything.
 */
import { openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { patience } from "../../../demo/patience.ts";
import { Random } from "../../../demo/random.ts";
import { lookUp } from "../../../demo/records.ts";
import { ClientLeases } from "../../../src/users/cell/remote-leases.ts";
import { describeFailure, type Answer } from "../../../src/users/client/answer.ts";
import {
  createClient,
  type Batch,
  type Client,
  type ClientOptions,
  type Fetch,
} from "../../../src/users/client/index.ts";
import { claimOf, LocalDatabase, type NameType, type Row } from "./local-database.ts";
import { Recorder as History } from "../../../src/users/conformance/history/history.ts";
import { nowMs, Recorder, type Answered, type Called, type Kind } from "./record.ts";
import { recordingFetch } from "./recording-fetch.ts";

export interface LoadClientOptions {
  url: string;
  /** The folder with `cells` for the databases and `records` for the records. */
  folder: string;
  cell: string;
  client: string;
  keys: { cell: string; router: string };
  seed: number;
  concurrency: number;
  names: number;
  /** The deadline of a call with all its attempts. */
  deadlineMs: number;
}

const MOST_OPS = 5;
const LOOKUPS = 0.15;
/** The share of granted leases that the cell rolls back on purpose. */
const GIVEN_UP = 0.08;
/** The share of local transactions that fail. */
const LOCAL_FAILURES = 0.04;
/** The share of begins without an answer that are left alone, as by a cell that forgot them. */
const FORGOTTEN = 0.5;

interface NameBucket {
  type: NameType;
  value: string;
}

interface Change {
  batch: Batch;
  apply: (database: LocalDatabase) => void;
}

const options = JSON.parse(process.argv[2] ?? "{}") as LoadClientOptions;
const { cell, client, folder, keys, url } = options;
const ending = { soon: false };
const cut = new AbortController();
process.once("SIGTERM", () => (ending.soon = true));
process.once("SIGUSR2", () => {
  ending.soon = true;
  cut.abort();
});

const database = new LocalDatabase(join(folder, "cells", `cell-${cell}.sqlite`));
const recorder = new Recorder(join(folder, "records"), client);
const historyFile = openSync(join(folder, "history", `${client}.ndjson`), "a");
const history = new History({
  name: `${client}/${process.pid}/`,
  now: nowMs,
  write: (line) => void writeSync(historyFile, line),
});
const fetchAndRecord = recordingFetch(history, client, (to, init) => fetch(to, init));

/** Counts the attempts of one logical call. */
function counting(): { fetch: Fetch; tries: () => number } {
  let tries = 0;
  return { fetch: (to, init) => ((tries += 1), fetchAndRecord(to, init)), tries: () => tries };
}

function connect(who: Pick<ClientOptions, "key" | "cell">, fetchOnce: Fetch): Client {
  return createClient({
    ...patience,
    ...who,
    url,
    fetch: fetchOnce,
    deadlineMs: options.deadlineMs,
    signal: cut.signal,
  });
}

async function decide(kind: "commit" | "rollback", lease: string): Promise<Answered> {
  return recorded({ cell, kind, lease }, (leases) => leases[kind](lease));
}

function recorded(
  called: Omit<Called, "client">,
  work: (leases: ClientLeases) => Promise<Answer<string>>,
): Promise<Answered> {
  return recorder.call(called, async () => {
    const { fetch: fetchOnce, tries } = counting();
    const answer = await work(new ClientLeases(connect({ key: keys.cell, cell }, fetchOnce)));
    return { tries: tries(), answer: answeredOf(called.kind, answer) };
  });
}

function answeredOf(kind: Kind, answer: Answer<string>): Answered {
  if (answer.kind === "ok") return { kind: "ok", state: answer.value };
  // The begin was refused after an attempt without an answer, which may still be carried out. Decisions are
  // final however often they are sent.
  if (kind === "begin" && !answer.outcomeKnown) return { kind: "unknown", error: describeFailure(answer) };
  if (answer.kind === "unknown") return { kind: "unknown", error: answer.error };
  const { code, reason, conflicts } = answer;
  return {
    kind: "refused",
    code,
    conflicts,
    error: describeFailure(answer),
    ...(reason === undefined ? {} : { reason }),
  };
}

async function lookUpSome(random: Random): Promise<void> {
  const buckets = someBuckets(random);
  await recorder.call({ cell, kind: "lookup", buckets }, async () => {
    const { fetch: fetchOnce, tries } = counting();
    try {
      const found = await lookUp(connect({ key: keys.router }, fetchOnce), buckets);
      const answer: Answered = {
        kind: "ok",
        found: found.map((record) => (record === undefined ? null : foundOf(record))),
      };
      return { tries: tries(), answer };
    } catch (error) {
      return { tries: tries(), answer: { kind: "unknown", error: String(error) } };
    }
  });
}

const foundOf = ({
  cell: owner,
  status,
  lease,
}: {
  cell: string;
  status: string;
  lease: string | undefined;
}) => ({ cell: owner, status, lease });

/** Draws different names, half of them in another spelling. */
function someBuckets(random: Random): NameBucket[] {
  const count = random.between(1, MOST_OPS);
  const picked = new Map<string, NameBucket>();
  while (picked.size < count) {
    const type = random.chance(0.7) ? "ROUTES" : "USERNAMES";
    const name = `name-${random.between(1, options.names)}`;
    picked.set(`${type} ${name}`, { type, value: random.chance(0.5) ? name : name.toUpperCase() });
  }
  return [...picked.values()];
}

/** Destroys or replaces names that the cell owns, and creates all others. A rename is one of each. */
function makeChange(random: Random): Change {
  const creates: Row[] = [];
  const destroys: Row[] = [];
  const replaces: Row[] = [];
  for (const { type, value } of someBuckets(random)) {
    const row = database.find(type, value);
    const fresh = { type, value, subject: random.between(1, 50), source: database.nextId() };
    if (row === undefined) creates.push(fresh);
    else if (random.chance(0.6)) destroys.push(row);
    else replaces.push(fresh);
  }
  const batch = {
    creates: creates.map(claimOf),
    destroys: destroys.map(claimOf),
    replaces: replaces.map(claimOf),
  };
  const apply = (here: LocalDatabase): void => {
    for (const row of destroys) here.delete(row);
    for (const row of creates) here.insert(row);
    for (const row of replaces) here.replace(row);
  };
  return { batch, apply };
}

class SimulatedFailure extends Error {}

/** Saves the rows and the lease's UUID in one transaction. Returns false if nothing was saved. */
function save(lease: string, { apply }: Change, shouldFail: boolean): boolean {
  try {
    database.transaction(() => {
      apply(database);
      database.insertLease(lease);
      if (shouldFail) throw new SimulatedFailure();
    });
    return true;
  } catch (error) {
    // While the lease is granted, no one else can have changed these rows.
    if (!(error instanceof SimulatedFailure))
      recorder.problem(`lease ${lease} was granted, but the rows do not match: ${String(error)}`);
    return false;
  }
}

async function change(random: Random): Promise<void> {
  const made = makeChange(random);
  const lease = random.uuid();
  const begun = await recorded({ cell, kind: "begin", lease, batch: made.batch }, (leases) =>
    leases.begin(lease, made.batch),
  );
  if (begun.kind === "refused") return;
  if (begun.kind === "unknown") {
    if (!cut.signal.aborted && !random.chance(FORGOTTEN)) await decide("rollback", lease);
    return;
  }
  if (random.chance(GIVEN_UP) || !save(lease, made, random.chance(LOCAL_FAILURES))) {
    if (!cut.signal.aborted) await decide("rollback", lease);
    return;
  }
  // An aborted cell has saved its rows here, so its recovery commits the lease.
  if (cut.signal.aborted) return;
  const committed = await decide("commit", lease);
  if (committed.kind === "ok") await database.remove(lease);
  else if (committed.kind === "refused")
    recorder.problem(`the commit of lease ${lease}, which was granted, was refused: ${committed.error}`);
}

async function runWorker(worker: number): Promise<void> {
  const random = new Random(options.seed, client, worker);
  while (!ending.soon) {
    if (random.chance(LOOKUPS)) await lookUpSome(random);
    else await change(random);
  }
}

await Promise.all(Array.from({ length: options.concurrency }, (_, worker) => runWorker(worker)));
recorder.close();
database.close();
process.exit(0);
