import { chunkDefaults } from "../chunks.ts";
import type { Different, Drift, Extra, Missing, SkipReason } from "./compare.ts";
import type { Examined } from "./examine.ts";
import { Repairer, judge, repairQueued, withHolders, type DriftOutcome } from "./repair.ts";
import { keyOfRecord, namesOf } from "./row-names.ts";
import type { Settings } from "./options.ts";
import type { DriftGroup, PendingDrifts } from "./pending-drifts.ts";
import { NeededNames, extendReleaseRange, type Cursor, type TablePass } from "./cursor.ts";
import { releaseKey, rowKey, type QueuedRow, type VerificationPorts, type VerifiedTable } from "./ports.ts";
import type { Counts } from "./counts.ts";

/** Decides what is done about what was found, and has it done. */
export class Decider {
  readonly #ports: VerificationPorts;
  readonly #settings: Settings;
  readonly #cursor: Cursor;
  readonly #counts: Counts;
  readonly #neededNames: NeededNames;
  /** Names of rows of the queue that the report has told of. */
  readonly #reportedFromQueue = new Set<string>();
  approvalReason: string | undefined;

  /** `place` hears of what is left to the second pass. */
  constructor(ports: VerificationPorts, settings: Settings, cursor: Cursor, counts: Counts) {
    this.#ports = ports;
    this.#settings = settings;
    this.#cursor = cursor;
    this.#counts = counts;
    this.#neededNames = new NeededNames(cursor.neededNames);
  }

  get neededNames(): Cursor["neededNames"] {
    return this.#neededNames.stored;
  }

  async repairQueued(rows: readonly QueuedRow[]): Promise<void> {
    const unrepaired = await repairQueued(this.#ports, this.#settings, rows, (source, outcome) =>
      this.#counts.addQueueOutcome(source, outcome),
    );
    for (const { want } of unrepaired) {
      this.#reportedFromQueue.add(reportedKey(want));
      this.#neededNames.add(want.key);
    }
  }

  /** Puts what is to be done with what waits. True: somebody has to be asked first. */
  async collect(
    tablePass: TablePass,
    from: string,
    { comparison, ...examined }: Examined,
    pending: PendingDrifts,
  ): Promise<boolean> {
    const { pass, table } = tablePass;
    const { apply } = this.#settings;
    const drifts = comparison.drifts.filter(
      (drift) => drift.action === "destroy" || !this.#reportedFromQueue.has(reportedKey(drift.want)),
    );
    if (pass === "claim")
      this.#counts.addPage(table.source, { ...examined, comparison: { ...comparison, drifts } });
    if (apply && pass === "claim") {
      for (const key of comparison.neededKeys) this.#neededNames.add(key);
      for (const drift of drifts)
        if (drift.action === "destroy")
          extendReleaseRange(this.#cursor, table.source, from, drift.record.source.id);
    }
    const todo = apply
      ? drifts.filter((drift) => (pass === "release") === (drift.action === "destroy"))
      : drifts;
    pending.add(await this.#withoutKept(table, todo), examined.recency);
    return apply && (await this.#needsApproval(table, pending));
  }

  /** Only about what would really change: names that somebody has are looked up before. */
  async #needsApproval({ source }: VerifiedTable, pending: PendingDrifts): Promise<boolean> {
    if (this.#counts.approvalReasonFor(pending.drifts.length) === undefined) return false;
    const { todo, skipped } = await preview(this.#ports, pending.drifts);
    for (const each of skipped) this.#recordOutcome(source, { ...each, done: false });
    pending.replace(todo);
    this.approvalReason = this.#counts.approvalReasonFor(todo.length);
    return this.approvalReason !== undefined;
  }

  async apply({ table }: TablePass, { drifts, recency }: DriftGroup): Promise<void> {
    if (this.#settings.apply) await this.#repairer(table).repair(drifts, recency);
    else await this.#planOnly(table, drifts);
  }

  async #planOnly({ source }: VerifiedTable, drifts: readonly Drift[]): Promise<void> {
    const { todo, skipped } = await preview(this.#ports, drifts);
    for (const each of skipped) this.#counts.addOutcome(source, { ...each, done: false });
    for (const drift of todo) this.#counts.addPlanned(drift);
  }

  #repairer({ source }: VerifiedTable): Repairer {
    const limits = { ...chunkDefaults, ops: this.#settings.leaseOps };
    return new Repairer(this.#ports, limits, this.#settings.recentMs, (outcome) =>
      this.#recordOutcome(source, outcome),
    );
  }

  #recordOutcome(source: string, outcome: DriftOutcome): void {
    this.#counts.addOutcome(source, outcome);
    const { drift } = outcome;
    // Whatever kept the row from its name: as long as it has none, no claim on it may go.
    if (!outcome.done && outcome.skipReason !== "other_cell" && drift.action !== "destroy")
      this.#neededNames.add(drift.want.key);
  }

  /** Without claims that somebody needs, or will give up by himself. */
  async #withoutKept({ source }: VerifiedTable, drifts: readonly Drift[]): Promise<Drift[]> {
    const claims = new Map(
      drifts.flatMap((drift): [Drift, Release][] =>
        drift.action === "destroy" ? [[drift, releaseOf(drift)]] : [],
      ),
    );
    if (claims.size === 0) return [...drifts];
    // After the rows were read: a deletion that was saved before is either in here, or done.
    const later = await this.#ports.deferredReleases(
      new Set([...claims.values()].map(({ deferredKey }) => deferredKey)),
    );
    return drifts.filter((drift) => {
      const claim = claims.get(drift);
      const skipReason = claim && this.#skipReasonOf(claim, later);
      if (skipReason !== undefined) this.#counts.addOutcome(source, { drift, done: false, skipReason });
      return skipReason === undefined;
    });
  }

  #skipReasonOf({ key, deferredKey }: Release, later: ReadonlySet<string>): SkipReason | undefined {
    if (this.#neededNames.has(key)) return "needed";
    return later.has(deferredKey) ? "leased" : undefined;
  }
}

/** A claim that is to be given up: its name, and what a deletion to come would know it by. */
interface Release {
  key: string;
  deferredKey: string;
}

function releaseOf({ record }: Extra): Release {
  const key = keyOfRecord(record);
  return { key, deferredKey: releaseKey(key, record.source) };
}

const reportedKey = ({ key, source }: { key: string; source: { type: string; id: string } }): string =>
  `${rowKey(source)}\n${key}`;

interface Preview {
  /** What would be changed. */
  todo: Drift[];
  skipped: { drift: Drift; skipReason: SkipReason }[];
}

/** What would come of drifts: who has the names that are missing is asked. Nothing is locked, so it may come otherwise. */
async function preview(
  ports: Pick<VerificationPorts, "records" | "tables" | "limits">,
  drifts: readonly Drift[],
): Promise<Preview> {
  const previewed: Preview = { todo: drifts.filter(({ action }) => action !== "create"), skipped: [] };
  const missing = drifts.filter((drift): drift is Missing => drift.action === "create");
  const needed = new Set<string>();
  for await (const [drift, holder] of withHolders(ports, missing)) {
    const judged = holder === undefined ? drift : judge(drift, holder, ports.tables);
    if (typeof judged === "string") previewed.skipped.push({ drift, skipReason: judged });
    else if (needed.has(drift.want.key) || (await isUsedByHolder(ports, judged)))
      previewed.skipped.push({ drift, skipReason: "duplicate" });
    else previewed.todo.push(judged);
    needed.add(drift.want.key);
  }
  return previewed;
}

/** The row that has the claim still has the name. */
async function isUsedByHolder(
  { tables }: Pick<VerificationPorts, "tables">,
  drift: Missing | Different,
): Promise<boolean> {
  if (drift.action === "create" || drift.reason !== "row") return false;
  const table = tables.find(({ source }) => source === drift.record.source.type);
  const [row] = (await table?.read([drift.record.source.id])) ?? [];
  return row !== undefined && namesOf(row.claims).keys.has(drift.want.key);
}
