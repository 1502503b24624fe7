import type { Types } from "../../../common/types/types.ts";
import type { Source } from "../../client/api-types.ts";
import { isLeaseholdError } from "../../client/errors.ts";
import { chunkDefaults } from "../chunks.ts";
import type { Different, Drift, Extra, Missing, Recency, SkipReason } from "./compare.ts";
import type { Counts } from "./counts.ts";
import type { RunCursor, TablePass } from "./cursor.ts";
import type { Examined } from "./examine.ts";
import type { Settings } from "./options.ts";
import { releaseKey, rowKey, type QueuedRow, type VerificationPorts, type VerifiedTable } from "./ports.ts";
import { judge, Repairer, repairQueued, withHolders, type DriftOutcome, type Skipped } from "./repair.ts";
import { keyOfRecord, namesOf, type NamedClaim } from "./row-names.ts";

interface DriftGroup {
  drifts: Drift[];
  recency: Recency;
}

/** Drifts to be repaired together: a lease costs much the same for one claim as for a few hundred. */
export class PendingDrifts {
  readonly #maxPerGroup: number;
  #drifts: Drift[] = [];
  #recency: Recency | undefined;

  constructor(maxPerGroup: number) {
    this.#maxPerGroup = maxPerGroup;
  }

  get drifts(): readonly Drift[] {
    return this.#drifts;
  }

  /** The ages of all pending drifts are measured from their earliest reading. */
  add(drifts: readonly Drift[], recency: Recency): void {
    this.#drifts.push(...drifts);
    if (drifts.length > 0 && (this.#recency === undefined || recency.asOfMs < this.#recency.asOfMs))
      this.#recency = recency;
  }

  replace(drifts: Drift[]): void {
    this.#drifts = drifts;
    if (drifts.length === 0) this.#recency = undefined;
  }

  /** Takes full groups, and with `isLast` also the rest. */
  *take(isLast: boolean): Generator<DriftGroup> {
    while (this.#recency !== undefined && this.#drifts.length >= (isLast ? 1 : this.#maxPerGroup)) {
      const drifts = this.#drifts.splice(0, this.#maxPerGroup);
      const group = { drifts, recency: this.#recency };
      if (this.#drifts.length === 0) this.#recency = undefined;
      yield group;
    }
  }
}

/** Decides which drifts are repaired, which are skipped, and when a run needs approval. */
export class Decider {
  readonly #ports: VerificationPorts;
  readonly #settings: Settings;
  readonly #cursor: RunCursor;
  readonly #counts: Counts;
  /** Names of queued rows that the report already contains. */
  readonly #reportedFromQueue = new Set<string>();
  readonly #plannedNames = new PlannedNames();
  approvalReason: string | undefined;

  constructor(ports: VerificationPorts, settings: Settings, cursor: RunCursor, counts: Counts) {
    this.#ports = ports;
    this.#settings = settings;
    this.#cursor = cursor;
    this.#counts = counts;
  }

  /**
   * A shard that is reconciled does not say that a name is free (H6). Then the rows stay in the queue, and
   * the passes over the tables claim their names. If the coordinator cannot be reached, the passes fail too.
   */
  async repairQueued(rows: readonly QueuedRow[]): Promise<void> {
    let unrepaired: Awaited<ReturnType<typeof repairQueued>>;
    try {
      unrepaired = await repairQueued(this.#ports, this.#settings, rows, (source, outcome) =>
        this.#counts.addQueueOutcome(source, outcome),
      );
    } catch (error) {
      if (isLeaseholdError(error) && error.code === "UNAVAILABLE") return;
      throw error;
    }
    for (const { want } of unrepaired) {
      this.#reportedFromQueue.add(reportedKey(want));
      this.#cursor.neededNames.add(want.key);
    }
  }

  /** Adds the drifts of a page that this pass repairs to the pending ones. True if the run needs approval. */
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
      for (const key of comparison.neededKeys) this.#cursor.neededNames.add(key);
      for (const drift of drifts)
        if (drift.action === "destroy")
          this.#cursor.extendReleaseRange(table.source, from, drift.record.source.id);
    }
    const todo = apply
      ? drifts.filter((drift) => (pass === "release") === (drift.action === "destroy"))
      : drifts;
    pending.add(await this.#withoutKept(table, todo), examined.recency);
    return apply && (await this.#needsApproval(table, pending));
  }

  /** Looks up who holds the missing names first, so that only real changes count toward the limits. */
  async #needsApproval({ source }: VerifiedTable, pending: PendingDrifts): Promise<boolean> {
    if (this.#counts.approvalReasonFor(pending.drifts.length) === undefined) return false;
    const { todo, skipped } = await preview(this.#ports, pending.drifts, new PlannedNames());
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
    const { todo, skipped } = await preview(this.#ports, drifts, this.#plannedNames);
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
    // As long as the row lacks its name, for whatever reason, no claim on that name may be destroyed.
    if (!outcome.done && outcome.skipReason !== "other_cell" && drift.action !== "destroy")
      this.#cursor.neededNames.add(drift.want.key);
  }

  /** Leaves out claims that a row needs, and claims that a deferred lease is going to destroy. */
  async #withoutKept({ source }: VerifiedTable, drifts: readonly Drift[]): Promise<Drift[]> {
    const claims = new Map(
      drifts.flatMap((drift): [Drift, Release][] =>
        drift.action === "destroy" ? [[drift, releaseOf(this.#ports.types, drift)]] : [],
      ),
    );
    if (claims.size === 0) return [...drifts];
    // Read after the rows: a deletion that was saved before that is either listed here or finished.
    const deferred = await this.#ports.deferredReleases(
      new Set([...claims.values()].map(({ deferredKey }) => deferredKey)),
    );
    return drifts.filter((drift) => {
      const claim = claims.get(drift);
      const skipReason = claim && this.#skipReasonOf(claim, deferred);
      if (skipReason !== undefined) this.#counts.addOutcome(source, { drift, done: false, skipReason });
      return skipReason === undefined;
    });
  }

  #skipReasonOf({ key, deferredKey }: Release, deferred: ReadonlySet<string>): SkipReason | undefined {
    if (this.#cursor.neededNames.has(key)) return "needed";
    return deferred.has(deferredKey) ? "leased" : undefined;
  }
}

/** A claim to be destroyed. */
interface Release {
  /** The key of its name. */
  key: string;
  /** The key under which `deferredReleases` lists it. */
  deferredKey: string;
}

function releaseOf(types: Types, { record }: Extra): Release {
  const key = keyOfRecord(types, record);
  return { key, deferredKey: releaseKey(key, record.source) };
}

const reportedKey = ({ key, source }: { key: string; source: { type: string; id: string } }): string =>
  `${rowKey(source)}\n${key}`;

interface Preview {
  /** Drifts that would be repaired. */
  todo: Drift[];
  skipped: (Skipped & { drift: Drift })[];
}

/** How many names a dry run remembers, so that its memory stays limited. */
const MAX_PLANNED_NAMES = 100_000;

/** The rows that a dry run would claim missing names for. A second row with the same name is a duplicate. */
class PlannedNames {
  readonly #rows = new Map<string, Source>();

  rowOf(key: string): Source | undefined {
    return this.#rows.get(key);
  }

  add({ key, source }: NamedClaim): void {
    if (this.#rows.size < MAX_PLANNED_NAMES) this.#rows.set(key, source);
  }
}

/** Predicts which drifts could be repaired. It locks nothing, so the outcome may differ. */
async function preview(
  ports: Pick<VerificationPorts, "records" | "tables" | "limits" | "types">,
  drifts: readonly Drift[],
  planned: PlannedNames,
): Promise<Preview> {
  const previewed: Preview = { todo: drifts.filter(({ action }) => action !== "create"), skipped: [] };
  const missing = drifts.filter((drift): drift is Missing => drift.action === "create");
  for await (const [drift, holder] of withHolders(ports, missing)) {
    const judged = holder === undefined ? drift : judge(drift, holder, ports.tables);
    if ("skipReason" in judged) previewed.skipped.push({ drift, ...judged });
    else {
      const otherRow = planned.rowOf(drift.want.key) ?? (await holderThatUses(ports, judged));
      if (otherRow !== undefined) previewed.skipped.push({ drift, skipReason: "duplicate", otherRow });
      else {
        previewed.todo.push(judged);
        planned.add(drift.want);
      }
    }
  }
  return previewed;
}

/** The row that has the claim, if it still uses the name. */
async function holderThatUses(
  { tables, types }: Pick<VerificationPorts, "tables" | "types">,
  drift: Missing | Different,
): Promise<Source | undefined> {
  if (drift.action === "create" || drift.reason !== "row") return undefined;
  const holder = drift.record.source;
  const table = tables.find(({ source }) => source === holder.type);
  const [row] = (await table?.read([holder.id])) ?? [];
  return row !== undefined && namesOf(types, row.claims).keys.has(drift.want.key) ? holder : undefined;
}
