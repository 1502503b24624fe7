import { compareBytes, sourceOrder } from "../../../common/source-order.ts";
import { callHook } from "../../client/hooks.ts";
import { LocalCommitUnknownError } from "../errors.ts";
import { compareDigests, type DigestComparison } from "./compare-digests.ts";
import { Counts } from "./counts.ts";
import { RunCursor, type Cursor, type Pass, type TablePass } from "./cursor.ts";
import { Decider, PendingDrifts } from "./decide.ts";
import { examine } from "./examine.ts";
import type { Settings, VerificationProgress } from "./options.ts";
import type { IdRange, QueuedRow, VerificationPorts, VerifiedRow } from "./ports.ts";
import type { VerificationReport, VerificationStatus } from "./report.ts";

/**
 * The verification slot of a run. Slots limit how many cells verify at a time, to protect the coordinator
 * from load. Correctness does not depend on them (A3).
 */
export class HeldSlot {
  readonly #slots: VerificationPorts["slots"];
  readonly #uuid: string;
  #takenMs = 0;
  #durationMs = 0;
  /** When to ask again after the slot was lost, because the cell has a place in the queue. */
  retryAfterMs: number | undefined;

  constructor(slots: VerificationPorts["slots"], uuid: string) {
    this.#slots = slots;
    this.#uuid = uuid;
  }

  async take(): ReturnType<VerificationPorts["slots"]["take"]> {
    const requestedMs = performance.now();
    const taken = await this.#slots.take(this.#uuid);
    if (taken.isTaken) [this.#takenMs, this.#durationMs] = [requestedMs, taken.expiresInMs];
    return taken;
  }

  /** By this process's clock, without asking the coordinator. */
  get isHeld(): boolean {
    return performance.now() - this.#takenMs < this.#durationMs;
  }

  /** `reacquired`: the slot had expired, and another run may have held it in between. */
  async renew(): Promise<"held" | "reacquired" | "lost"> {
    if (performance.now() - this.#takenMs < this.#durationMs / 4) return "held";
    const endMs = this.#takenMs + this.#durationMs;
    const taken = await this.take();
    if (!taken.isTaken) {
      this.retryAfterMs = taken.retryAfterMs;
      return "lost";
    }
    return performance.now() < endMs ? "held" : "reacquired";
  }

  /** If this fails, the slot expires by itself. */
  async release(): Promise<void> {
    try {
      await this.#slots.release(this.#uuid);
    } catch {
      // There is nothing to do about it.
    }
  }
}

/** The part of a table between two saves of the cursor. */
interface Segment extends IdRange {
  /** The ranges whose records have to be compared. */
  ranges: readonly (IdRange & { rows?: VerifiedRow[] })[];
  counts: DigestComparison["counts"];
}

/**
 * A segment has few rows, but may have any number of records. After so many pages a run may pause within it.
 */
const PAGES_BETWEEN_PAUSES = 16;

/** Runs verification from a saved cursor until it finishes or is stopped. */
export class VerificationRun {
  readonly #ports: VerificationPorts;
  readonly #settings: Settings;
  readonly #slot: HeldSlot;
  readonly #cursor: RunCursor;
  readonly #isResumed: boolean;
  readonly #counts: Counts;
  readonly #decider: Decider;
  readonly #startedAt = new Date();
  readonly #started = performance.now();
  #hasBegun = false;

  constructor(
    ports: VerificationPorts,
    settings: Settings,
    slot: HeldSlot,
    { cursor, isResumed, text }: { cursor: Cursor; isResumed: boolean; text: string | undefined },
  ) {
    this.#ports = ports;
    this.#settings = settings;
    this.#slot = slot;
    this.#isResumed = isResumed;
    this.#counts = new Counts(cursor, settings);
    const isDryRun = !settings.apply;
    this.#cursor = new RunCursor(ports.progress, this.#counts, { cursor, text, isDryRun });
    this.#decider = new Decider(ports, settings, this.#cursor, this.#counts);
  }

  async run(): Promise<VerificationReport> {
    this.#hasBegun = true;
    if (this.#isStopped) return this.report("stopped");
    const early =
      (this.#settings.apply ? await this.#repairQueue() : undefined) ?? (await this.#runTablePasses());
    if (early !== undefined) return this.report(early);
    if (!(await this.#isSlotHeld())) return this.report("slot_lost");
    await this.#cursor.finish();
    return this.report("done");
  }

  /** Repairs count toward the limits even if the run fails. */
  async abandon(cause: unknown): Promise<void> {
    if (this.#hasBegun && this.#slot.isHeld)
      await this.#cursor.abandon(cause instanceof LocalCommitUnknownError);
  }

  report(status: VerificationStatus): VerificationReport {
    const isOver = status === "done" || status === "no_slot" || status === "not_due" || !this.#settings.apply;
    const { approvalReason } = this.#decider;
    const { retryAfterMs } = this.#slot;
    return {
      status,
      applied: this.#settings.apply,
      cell: this.#ports.cell,
      resumed: this.#isResumed,
      startedAt: this.#startedAt.toISOString(),
      durationMs: Math.round(performance.now() - this.#started),
      counts: this.#counts.total,
      tables: this.#counts.tables,
      ...this.#counts.reported,
      ...(isOver ? {} : { next: this.#cursor.savedPosition }),
      ...(approvalReason === undefined ? {} : { approvalReason }),
      ...(status === "slot_lost" && retryAfterMs !== undefined ? { retryAfterMs } : {}),
    };
  }

  /** Page by page, so that rows that need a person don't keep the rows after them waiting. */
  async #repairQueue(): Promise<VerificationStatus | undefined> {
    const limit = this.#settings.pageRows;
    for (let after: QueuedRow | undefined; ;) {
      const rows = await this.#ports.queue.list({ after, limit });
      await this.#decider.repairQueued(rows);
      after = rows.at(-1);
      if (after === undefined || rows.length < limit) return undefined;
      // `maxMs` doesn't end the run here, because each run has to complete at least one segment.
      if (this.#isStopped) return "stopped";
      if (!(await this.#isSlotHeld())) return "slot_lost";
    }
  }

  /** A dry run changes nothing, so it needs no second pass. */
  async #runTablePasses(): Promise<VerificationStatus | undefined> {
    const passes = this.#settings.apply ? (["claim", "release"] as const) : (["claim"] as const);
    const tablePasses = passes.flatMap((pass) =>
      this.#ports.tables.map((table): TablePass => ({ pass, table })),
    );
    const first = tablePasses.findIndex((each) => this.#cursor.isAt(each));
    let isFirst = true;
    for (const tablePass of tablePasses.slice(Math.max(0, first))) {
      const bounds = this.#cursor.boundsOf(tablePass);
      if (bounds === undefined) continue;
      this.#cursor.enter(tablePass);
      // Not before the first one: each run has to complete at least one segment, however short `maxMs` is.
      const status =
        (isFirst ? undefined : await this.#advance()) ?? (await this.#runTablePass(tablePass, bounds));
      if (status !== undefined) return status;
      isFirst = false;
    }
    return undefined;
  }

  /** Answers undefined at the end of the table, otherwise why the run ends early. */
  async #runTablePass(tablePass: TablePass, bounds: IdRange): Promise<VerificationStatus | undefined> {
    let after = this.#cursor.after === "" ? bounds.after : this.#cursor.after;
    const meter = await this.#meterOf(tablePass, { after, upTo: bounds.upTo });
    for (;;) {
      const segment = await this.#nextSegment(tablePass, { after, upTo: bounds.upTo }, meter);
      const early = await this.#processSegment(tablePass, segment, meter);
      if (early !== undefined) return early;
      if (segment.upTo === undefined || segment.upTo === bounds.upTo) return undefined;
      after = segment.upTo;
      const status = await this.#advance(after);
      if (status !== undefined) return status;
    }
  }

  async #nextSegment(
    { pass, table }: TablePass,
    { after, upTo: end }: IdRange,
    meter: ProgressMeter,
  ): Promise<Segment> {
    const { records, types } = this.#ports;
    const { recentMs, pageRows, rangeRows, digestRanges } = this.#settings;
    if (this.#cursor.isFull) {
      const page = await table.page({ after, upTo: end, limit: pageRows });
      const upTo = page.length < pageRows ? end : page.at(-1)?.id;
      return { after, upTo, ranges: [{ after, upTo, rows: page }], counts: [] };
    }
    const { unequal, counts, upTo } = await compareDigests({
      records,
      types,
      table,
      after,
      end,
      recentMs,
      pageRows,
      rangeRows,
      ranges: digestRanges,
    });
    if (pass === "claim") this.#counts.addRanges(table.source, counts);
    for (const { rows } of counts) meter.add(rows);
    return { after, upTo, ranges: unequal, counts };
  }

  /** Answers undefined at the end of the segment, otherwise why the run ends early. */
  async #processSegment(
    tablePass: TablePass,
    { after, ranges, counts }: Segment,
    meter: ProgressMeter,
  ): Promise<VerificationStatus | undefined> {
    const { pass, table } = tablePass;
    const { records, types } = this.#ports;
    const { recentMs, pageRows, leaseOps } = this.#settings;
    // Drifts don't wait beyond the segment: nothing may be pending when the cursor advances past their rows.
    const pending = new PendingDrifts(leaseOps);
    let pages = 0;
    for (const range of ranges) {
      for await (const examined of examine({ records, types, table, recentMs, pageRows, ...range })) {
        const needsApproval = await this.#decider.collect(tablePass, after, examined, pending);
        if (needsApproval) return this.#requestApproval(pending);
        if (!(await this.#applyPending(tablePass, pending, false))) return "slot_lost";
        meter.add(examined.rows);
        meter.report(this.#changes);
        const { through } = examined;
        pages += 1;
        // A page and its leases can take longer than the slot lasts.
        if (!(await this.#isSlotHeld())) return "slot_lost";
        const isWithin =
          through !== undefined && through !== range.upTo && pages % PAGES_BETWEEN_PAUSES === 0;
        if (!isWithin || this.#endStatus === undefined) continue;
        if (!(await this.#applyPending(tablePass, pending, true))) return "slot_lost";
        // The next run compares the digests of the ranges ahead again, and counts them then.
        if (pass === "claim") {
          const ahead = counts.filter(({ upTo }) => isAhead(upTo, through));
          this.#counts.addRanges(table.source, ahead, -1);
        }
        return this.#advance(through);
      }
    }
    if (!(await this.#applyPending(tablePass, pending, true))) return "slot_lost";
    meter.report(this.#changes);
    return undefined;
  }

  /** Answers false if the slot is lost. */
  async #applyPending(tablePass: TablePass, pending: PendingDrifts, isLast: boolean): Promise<boolean> {
    for (const group of pending.take(isLast)) {
      if (!(await this.#isSlotHeld())) return false;
      await this.#cursor.announce(group.drifts.length);
      await this.#decider.apply(tablePass, group);
    }
    return true;
  }

  async #requestApproval(pending: PendingDrifts): Promise<VerificationStatus> {
    for (const drift of pending.drifts) this.#counts.addPlanned(drift);
    if (!(await this.#isSlotHeld())) return "slot_lost";
    await this.#cursor.requestApproval();
    return "needs_approval";
  }

  /** Checks the slot before it saves: if another run holds the slot now, the saved cursor is that run's. */
  async #advance(after?: string): Promise<VerificationStatus | undefined> {
    if (!(await this.#isSlotHeld())) return "slot_lost";
    const status = this.#endStatus;
    await this.#cursor.advance(after);
    return status;
  }

  get #endStatus(): VerificationStatus | undefined {
    if (this.#isStopped) return "stopped";
    return performance.now() - this.#started >= this.#settings.maxMs ? "out_of_time" : undefined;
  }

  get #isStopped(): boolean {
    return this.#settings.signal?.aborted === true;
  }

  /**
   * If the slot expired but the saved cursor is unchanged, no other run has used it, so this run may
   * continue.
   */
  async #isSlotHeld(): Promise<boolean> {
    const held = await this.#slot.renew();
    if (held !== "reacquired" || !this.#settings.apply) return held !== "lost";
    return this.#cursor.isStillSaved();
  }

  async #meterOf({ pass, table }: TablePass, range: IdRange): Promise<ProgressMeter> {
    const { onProgress } = this.#settings;
    const before = pass === "claim" ? this.#counts.rowsOf(table.source) : 0;
    // Counting reads the whole range, so it is skipped when there is no `onProgress`.
    const totalRows = onProgress === undefined ? 0 : before + (await table.count(range));
    return new ProgressMeter(pass, table.source, { totalRows, rowsBefore: before }, (progress) =>
      callHook(onProgress, progress),
    );
  }

  get #changes(): number {
    const { created, replaced, destroyed } = this.#counts.total;
    return created + replaced + destroyed;
  }
}

/** Whether a range ends ahead of a source id. An undefined end is the end of the table. */
const isAhead = (upTo: string | undefined, id: string): boolean =>
  upTo === undefined || compareBytes(sourceOrder(upTo), sourceOrder(id)) > 0;

/** Measures how far a pass over a table is, and how fast. */
class ProgressMeter {
  readonly #pass: Pass;
  readonly #source: string;
  readonly #totalRows: number;
  readonly #onProgress: (progress: VerificationProgress) => void;
  readonly #started = performance.now();
  /** Rows that earlier runs of this verification have already passed. */
  readonly #rowsBefore: number;
  #rows = 0;

  constructor(
    pass: Pass,
    source: string,
    { totalRows, rowsBefore }: { totalRows: number; rowsBefore: number },
    onProgress: (progress: VerificationProgress) => void,
  ) {
    this.#pass = pass;
    this.#source = source;
    this.#totalRows = totalRows;
    this.#rowsBefore = rowsBefore;
    this.#onProgress = onProgress;
  }

  add(rows: number): void {
    this.#rows += rows;
  }

  report(changes: number): void {
    const seconds = (performance.now() - this.#started) / 1_000;
    const rowsPerSecond = seconds > 0 ? this.#rows / seconds : 0;
    const rows = this.#rowsBefore + this.#rows;
    const remaining = Math.max(0, this.#totalRows - rows);
    this.#onProgress({
      pass: this.#pass,
      source: this.#source,
      rows,
      totalRows: this.#totalRows,
      changes,
      rowsPerSecond,
      remainingMs: rowsPerSecond > 0 ? (remaining / rowsPerSecond) * 1_000 : undefined,
    });
  }
}
