/** The cell: its client, its database and its claimable tables, and ears at each of them for the panel. */
import { createCell, type Cell } from "leasehold/cell";
import { postgres } from "leasehold/cell/postgres";
import { createClient, type Client } from "leasehold/client";
import { join } from "node:path";
import { acting } from "../protocol/act.ts";
import { Reconciliations } from "../protocol/reconciliations.ts";
import { recordDatabase } from "../protocol/recorded-database.ts";
import { recordedFetch } from "../protocol/recorded-fetch.ts";
import { Recorder } from "../protocol/recorder.ts";
import { sentenceOf } from "../protocol/sentences.ts";
import { openDatabase, type Orm, type Tx } from "./database.ts";
import type { Job } from "./job.ts";
import { claimables } from "./schema.ts";

export interface OpenCell {
  orm: Orm;
  client: Client;
  cell: Cell<Tx>;
  recorder: Recorder;
  reconciliations: Reconciliations;
  close(): Promise<void>;
}

/** In production 250 ms: the local transaction holds its locks meanwhile. Here three databases may share a laptop. */
const BEGIN_DEADLINE_MS = 3_000;

export async function openCell(job: Job): Promise<OpenCell> {
  const recorder = new Recorder(join(job.folder, "events.jsonl"));
  const { orm, close } = await openDatabase(job);
  const client = createClient({
    url: job.coordinator,
    key: job.key,
    cell: job.cell,
    fetch: recordedFetch(recorder),
    hooks: {
      onRetry: ({ operation, why }) =>
        recorder.add({ kind: "notice", text: `${operation} is sent again: ${why}` }),
      onBreaker: ({ state }) =>
        recorder.add({ kind: "notice", text: `the circuit breaker is ${state.replace("_", " ")}` }),
    },
  });
  const database = postgres<Tx>(orm);
  recordDatabase(database, recorder);
  const cell = createCell<Tx>({
    client,
    database,
    tables: claimables,
    beginDeadlineMs: BEGIN_DEADLINE_MS,
    onEvent: (event) => recorder.add({ kind: "notice", text: sentenceOf(event) }),
  });
  await cell.install();
  recorder.add({ kind: "started" });
  const { everyMs, commitGraceMs, staleMs } = job.pace;
  const reconciliations = new Reconciliations();
  const loop = acting({ what: "Reconciliation", isReconciliation: true }, () =>
    cell.startReconciling({ everyMs, commitGraceMs, staleMs, onRun: (run) => reconciliations.add(run) }),
  );
  return {
    orm,
    client,
    cell,
    recorder,
    reconciliations,
    close: async () => {
      await loop.stop();
      await close();
    },
  };
}
