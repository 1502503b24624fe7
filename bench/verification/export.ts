/** Exports all records of a cell once. */
import { serveTask } from "./meter.ts";
import type { ExportResult } from "./program.ts";

const EARLY_RECORDS = 10_000;

serveTask(async ({ url }, meter): Promise<ExportResult> => {
  let records = 0;
  for await (const { source } of meter.client.records.export({ sourceType: "RAILS_TABLE_ROUTES" })) {
    records += 1;
    // The records must arrive once each, in the order of the ids that they were filled with.
    if (source.id !== String(records)) throw new Error(`record ${records} of ${url} is that of ${source.id}`);
    if (records === EARLY_RECORDS) meter.early();
  }
  return { ...meter.used(), records };
});
