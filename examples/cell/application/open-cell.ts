/**
 * Opens the cell: its client, its database and its claimable tables. The panel records what each of them
 * does.
 */
import { createCell, type Cell } from "leasehold/cell";
import { postgres } from "leasehold/cell/postgres";
import { createClient, type Client } from "leasehold/client";
import { join } from "node:path";
import { runAction } from "../protocol/action.ts";
import { Reconciliations } from "../protocol/reconciliations.ts";
import { recordDatabase } from "../protocol/record-database.ts";
import { recordedFetch } from "../protocol/recorded-fetch.ts";
import { Recorder } from "../protocol/recorder.ts";
import { describeEvent } from "../protocol/describe-event.ts";
import { openDatabase, type Orm, type Tx } from "./database.ts";
import type { CellConfig } from "./cell-config.ts";
import { claimables } from "./schema.ts";

export interface OpenCell {
  orm: Orm;
  client: Client;
  cell: Cell<Tx>;
  recorder: Recorder;
  reconciliations: Reconciliations;
  close(): Promise<void>;
}

/**
 * The default is 250 ms, because the local transaction holds its locks during a begin. The example allows
 * more, because three databases may share a laptop.
 */
const BEGIN_DEADLINE_MS = 3_000;

export async function openCell(config: CellConfig): Promise<OpenCell> {
  const recorder = new Recorder(join(config.folder, "events.jsonl"));
  const { orm, close } = await openDatabase(config);
  const client = createClient({
    url: config.coordinator,
    key: config.key,
    cell: config.cell,
    fetch: recordedFetch(recorder),
    hooks: {
      onRetry: ({ operation, error }) =>
        recorder.add({ kind: "notice", text: `${operation} is retried: ${error}` }),
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
    types: config.types,
    beginDeadlineMs: BEGIN_DEADLINE_MS,
    onEvent: (event) => recorder.add({ kind: "notice", text: describeEvent(event) }),
  });
  await cell.install();
  recorder.add({ kind: "started" });
  const { everyMs, commitGraceMs, staleMs } = config.timing;
  const reconciliations = new Reconciliations();
  const loop = runAction({ what: "Reconciliation", isReconciliation: true }, () =>
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
