import { chunkDefaults } from "../chunks.ts";
import type { Different, Missing } from "./drift.ts";
import { withHolders } from "./holders.ts";
import { Repairer, type DriftOutcome } from "./repair.ts";
import { isSame, namesOf } from "./row-names.ts";
import type { Settings } from "./options.ts";
import {
  rowKey,
  type QueuedRow,
  type VerificationPorts,
  type VerifiedRow,
  type VerifiedTable,
} from "./ports.ts";

/**
 * Rows that were saved although their lease was rolled back: they are known to lack their claims, so nobody waits until they are old, nor is asked.
 * Those whose names are theirs in the end leave the queue; the rest stays in it, for a person. Answers what could not be mended.
 */
export async function repairQueued(
  ports: VerificationPorts,
  settings: Settings,
  queued: readonly QueuedRow[],
  report: (source: string, outcome: DriftOutcome) => void,
): Promise<(Missing | Different)[]> {
  // What a column that is switched off was about has to wait for it.
  const tables = ports.tables.filter(({ hasEveryAttribute }) => hasEveryAttribute);
  const unrepaired: (Missing | Different)[] = [];
  for (const table of tables) {
    const ids = queued.filter(({ type }) => type === table.source).map(({ id }) => id);
    if (ids.length === 0) continue;
    await repairRows(ports, settings, table, await table.read(ids), (outcome) => {
      report(table.source, outcome);
      if (!outcome.done && outcome.drift.action !== "destroy") unrepaired.push(outcome.drift);
    });
  }
  const sources = new Set<string>(tables.map(({ source }) => source));
  const open = new Set(unrepaired.map(({ want }) => rowKey(want.source)));
  const repaired = queued.filter((row) => sources.has(row.type) && !open.has(rowKey(row)));
  if (repaired.length > 0) await ports.queue.remove(repaired);
  return unrepaired;
}

async function repairRows(
  ports: VerificationPorts,
  settings: Settings,
  { source, bucketTypes }: VerifiedTable,
  rows: readonly VerifiedRow[],
  report: (outcome: DriftOutcome) => void,
): Promise<void> {
  const needed = rows
    .flatMap(({ claims }) => namesOf(claims).names)
    .map((want): Missing => ({ action: "create", kind: "missing", reason: "no_claim", want }));
  const drifts: Missing[] = [];
  for await (const [drift, holder] of withHolders(ports, needed)) {
    if (holder !== undefined && holder !== "other" && isSame(drift.want, holder)) continue;
    drifts.push(drift);
  }
  if (drifts.length === 0) return;
  const limits = { ...chunkDefaults, ops: settings.leaseOps };
  // For the coordinator's clock: claims of other rows that were changed just now are left alone here as well.
  const { asOfMs } = await ports.records.list({
    source,
    bucketTypes,
    after: "",
    upTo: undefined,
    pageSize: 1,
  });
  await new Repairer(ports, limits, 0, report).repair(drifts, { recentMs: settings.recentMs, asOfMs });
}
