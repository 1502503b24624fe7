import { compareBytes, sourceOrder } from "../../core/source-order.ts";
import { tell } from "../../client/hooks.ts";
import { LocalCommitUnknownError } from "../errors.ts";
import { examine } from "./examine.ts";
import type { Settings, VerificationProgress } from "./options.ts";
import type { Cursor, Pass, TablePass } from "./cursor.ts";
import { PendingDrifts } from "./pending-drifts.ts";
import type { IdRange, QueuedRow, VerificationPorts, VerifiedRow } from "./ports.ts";
import type { VerificationReport, VerificationStatus } from "./report.ts";
import { Decider } from "./decide.ts";
import { compareDigests, type DigestComparison } from "./compare-digests.ts";
import type { HeldSlot } from "./held-slot.ts";
import { Counts } from "./counts.ts";

/** A part of a table that is gone through at once. */
interface Segment extends IdRange {
  ranges: readonly (IdRange & { rows?: VerifiedRow[] })[];
  counts: DigestComparison["counts"];
}

type CursorPosition = Pick<Cursor, "pass" | "source" | "after">;

/** Within a segment: a usual one is shorter, but one with few rows may have any number of records. */
const PAGES_BETWEEN_PAUSES = 16;

const positionOf = ({ pass, source, after }: Cursor): CursorPosition => ({ pass, source, after });

/** From a cursor to the end, or as far as it gets. */
export class VerificationRun {
  readonly #ports: VerificationPorts;
  readonly #settings: Settings;
  readonly #slot: HeldSlot;
  readonly #cursor: Cursor;
  readonly #isResumed: boolean;
  readonly #counts: Counts;
  readonly #decider: Decider;
  readonly #startedAt = new Date();
  readonly #started = performance.now();
  /** As it is stored, and its text: another run would have changed it. */
  #stored: CursorPosition;
  #text: string | undefined;
  /** Changes, with those that are under way. */
  #announcedChanges: number;
  /** Whether the stored cursor may be another run's. */
  #isUnsure = false;
  #hasBegun = false;

  constructor(
    ports: VerificationPorts,
    settings: Settings,
    slot: HeldSlot,
    { cursor, isResumed, text }: { cursor: Cursor; isResumed: boolean; text: string | undefined },
  ) {
    this.#text = text;
    this.#ports = ports;
    this.#settings = settings;
    this.#slot = slot;
    this.#cursor = cursor;
    this.#stored = positionOf(cursor);
    this.#announcedChanges = cursor.changes;
    this.#isResumed = isResumed;
    this.#counts = new Counts(cursor, settings);
    this.#decider = new Decider(ports, settings, cursor, this.#counts);
  }

  async run(): Promise<VerificationReport> {
    this.#hasBegun = true;
    if (this.#isStopped) return this.report("stopped");
    const early =
      (this.#settings.apply ? await this.#repairQueue() : undefined) ?? (await this.#runTablePasses());
    if (early !== undefined) return this.report(early);
    if (!(await this.#isSlotHeld())) return this.report("slot_lost");
    await this.#save({ isDone: true, needsApproval: false });
    return this.report("done");
  }

  /** What was mended counts, also when a run ends where it did not mean to: the next one has so much less to spend. */
  async abandon(cause: unknown): Promise<void> {
    if (!this.#hasBegun || !this.#slot.isHeld || this.#isUnsure) return;
    await this.#saveChanges(cause instanceof LocalCommitUnknownError ? this.#announcedChanges : undefined);
  }

  report(status: VerificationStatus): VerificationReport {
    const isOver = status === "done" || status === "no_slot" || status === "not_due" || !this.#settings.apply;
    return {
      status,
      applied: this.#settings.apply,
      cell: this.#ports.cell,
      resumed: this.#isResumed,
      startedAt: this.#startedAt.toISOString(),
      durationMs: Math.round(performance.now() - this.#started),
      counts: this.#counts.total,
      tables: this.#counts.tables,
      items: this.#counts.items,
      itemsOmitted: this.#counts.itemsOmitted,
      ...(isOver ? {} : { next: this.#stored }),
      ...(this.#decider.approvalReason === undefined ? {} : { approvalReason: this.#decider.approvalReason }),
    };
  }

  /** Page by page: rows that only a person can settle keep no other from its turn. */
  async #repairQueue(): Promise<VerificationStatus | undefined> {
    const limit = this.#settings.pageRows;
    for (let after: QueuedRow | undefined; ;) {
      const rows = await this.#ports.queue.list({ after, limit });
      await this.#decider.repairQueued(rows);
      after = rows.at(-1);
      if (after === undefined || rows.length < limit) return undefined;
      // Not for the time: a run goes on by a segment at least.
      if (this.#isStopped) return "stopped";
      if (!(await this.#isSlotHeld())) return "slot_lost";
    }
  }

  /** Those that are still to be done. A dry run changes nothing, so it has no use for a second pass. */
  async #runTablePasses(): Promise<VerificationStatus | undefined> {
    const passes = this.#settings.apply ? (["claim", "release"] as const) : (["claim"] as const);
    const tablePasses = passes.flatMap((pass) =>
      this.#ports.tables.map((table): TablePass => ({ pass, table })),
    );
    const first = tablePasses.findIndex(
      ({ pass, table }) => pass === this.#cursor.pass && table.source === this.#cursor.source,
    );
    let isFirst = true;
    for (const tablePass of tablePasses.slice(Math.max(0, first))) {
      const bounds = this.#boundsOf(tablePass);
      if (bounds === undefined) continue;
      const { pass, table } = tablePass;
      if (pass !== this.#cursor.pass || table.source !== this.#cursor.source)
        Object.assign(this.#cursor, { pass, source: table.source, after: "" });
      // Not before the first: a run goes on by a segment at least, however little time it has.
      const status =
        (isFirst ? undefined : await this.#storeAndPause()) ?? (await this.#runTablePass(tablePass, bounds));
      if (status !== undefined) return status;
      isFirst = false;
    }
    return undefined;
  }

  /** Undefined: there is nothing to do. */
  #boundsOf({ pass, table }: TablePass): IdRange | undefined {
    if (table.bucketTypes.length === 0) return undefined;
    return pass === "claim" ? { after: "", upTo: undefined } : this.#cursor.releaseRanges[table.source];
  }

  /** Segment by segment. Undefined: to its end. */
  async #runTablePass(tablePass: TablePass, bounds: IdRange): Promise<VerificationStatus | undefined> {
    let after = this.#cursor.after === "" ? bounds.after : this.#cursor.after;
    const meter = await this.#meterOf(tablePass, { after, upTo: bounds.upTo });
    for (;;) {
      const segment = await this.#nextSegment(tablePass, { after, upTo: bounds.upTo }, meter);
      const early = await this.#processSegment(tablePass, segment, meter);
      if (early !== undefined) return early;
      if (segment.upTo === undefined || segment.upTo === bounds.upTo) return undefined;
      after = segment.upTo;
      const status = await this.#storeAndPause(after);
      if (status !== undefined) return status;
    }
  }

  /** The next segment, and what of it has to be looked at. */
  async #nextSegment(
    { pass, table }: TablePass,
    { after, upTo: end }: IdRange,
    meter: ProgressMeter,
  ): Promise<Segment> {
    const { records } = this.#ports;
    const { recentMs, pageRows, rangeRows, digestRanges } = this.#settings;
    if (this.#cursor.isFull) {
      const page = await table.page({ after, upTo: end, limit: pageRows });
      const upTo = page.length < pageRows ? end : page.at(-1)?.id;
      return { after, upTo, ranges: [{ after, upTo, rows: page }], counts: [] };
    }
    const { unequal, counts, upTo } = await compareDigests({
      records,
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

  /** Page by page, because there can be any number of records in it. Undefined: to its end. */
  async #processSegment(
    tablePass: TablePass,
    { after, ranges, counts }: Segment,
    meter: ProgressMeter,
  ): Promise<VerificationStatus | undefined> {
    const { pass, table } = tablePass;
    const { records } = this.#ports;
    const { recentMs, pageRows, leaseOps } = this.#settings;
    // Within a segment only: what is behind the stored cursor is done.
    const pending = new PendingDrifts(leaseOps);
    let pages = 0;
    for (const range of ranges) {
      for await (const examined of examine({ records, table, recentMs, pageRows, ...range })) {
        const isApprovalNeeded = await this.#decider.collect(tablePass, after, examined, pending);
        if (isApprovalNeeded) return this.#requestApproval(pending);
        if (!(await this.#applyPending(tablePass, pending, false))) return "slot_lost";
        meter.add(examined.rows);
        meter.report(this.#changes);
        const { through } = examined;
        pages += 1;
        // A page with its leases may take long.
        if (!(await this.#isSlotHeld())) return "slot_lost";
        const isWithin =
          through !== undefined && through !== range.upTo && pages % PAGES_BETWEEN_PAUSES === 0;
        if (!isWithin || this.#isOver === undefined) continue;
        if (!(await this.#applyPending(tablePass, pending, true))) return "slot_lost";
        if (pass === "claim")
          this.#counts.addRanges(
            table.source,
            counts.filter(({ upTo }) => isAfter(upTo, through)),
            -1,
          );
        return this.#storeAndPause(through);
      }
    }
    if (!(await this.#applyPending(tablePass, pending, true))) return "slot_lost";
    meter.report(this.#changes);
    return undefined;
  }

  /** What is about to change counts before it does: a run that dies has changed no more than is counted (rule V5). False: the slot is lost. */
  async #applyPending(tablePass: TablePass, pending: PendingDrifts, isLast: boolean): Promise<boolean> {
    for (const group of pending.take(isLast)) {
      if (!(await this.#isSlotHeld())) return false;
      this.#announcedChanges = this.#counts.current.changes + group.drifts.length;
      await this.#saveChanges(this.#announcedChanges);
      await this.#decider.apply(tablePass, group);
    }
    return true;
  }

  /** The next run asks again, with what this one has changed counted. */
  async #requestApproval(pending: PendingDrifts): Promise<VerificationStatus> {
    for (const drift of pending.drifts) this.#counts.addPlanned(drift);
    if (!(await this.#isSlotHeld())) return "slot_lost";
    this.#cursor.needsApproval = true;
    await this.#saveChanges();
    return "needs_approval";
  }

  /** The slot first: whoever has it now has a cursor of its own. */
  async #storeAndPause(after = this.#cursor.after): Promise<VerificationStatus | undefined> {
    const status = await this.#pause();
    if (status !== "slot_lost") await this.#store(after);
    return status;
  }

  async #store(after: string): Promise<void> {
    await this.#save({ after, ...this.#counts.current });
    this.#counts.checkpoint();
    this.#cursor.after = after;
    if (this.#settings.apply) this.#stored = positionOf(this.#cursor);
  }

  /** The cursor stays where it was stored last, behind which all will be looked at again. */
  async #saveChanges(changes = this.#counts.current.changes): Promise<void> {
    await this.#save({ ...this.#stored, changes });
  }

  async #save(more: Partial<Cursor>): Promise<void> {
    if (!this.#settings.apply) return;
    const cursor: Cursor = {
      ...this.#cursor,
      ...this.#counts.stored,
      neededNames: this.#decider.neededNames,
      ...more,
    };
    const text = JSON.stringify(cursor);
    await this.#ports.progress.save(text);
    this.#text = text;
  }

  /** Between two pages. */
  async #pause(): Promise<VerificationStatus | undefined> {
    return (await this.#isSlotHeld()) ? this.#isOver : "slot_lost";
  }

  get #isOver(): VerificationStatus | undefined {
    if (this.#isStopped) return "stopped";
    return performance.now() - this.#started >= this.#settings.maxMs ? "out_of_time" : undefined;
  }

  get #isStopped(): boolean {
    return this.#settings.signal?.aborted === true;
  }

  /** A slot that had run out and is to be had again was nobody's, if the cursor is as this run has left it. */
  async #isSlotHeld(): Promise<boolean> {
    const held = await this.#slot.renew();
    if (held !== "reacquired" || !this.#settings.apply) return held !== "lost";
    this.#isUnsure = true;
    const isOurs = (await this.#ports.progress.load())?.text === this.#text;
    this.#isUnsure = !isOurs;
    return isOurs;
  }

  async #meterOf({ pass, table }: TablePass, range: IdRange): Promise<ProgressMeter> {
    const { onProgress } = this.#settings;
    const before = pass === "claim" ? this.#counts.rowsOf(table.source) : 0;
    // Counting reads the whole range: not for nobody.
    const totalRows = onProgress === undefined ? 0 : before + (await table.count(range));
    return new ProgressMeter(pass, table.source, { totalRows, rowsBefore: before }, (progress) =>
      tell(onProgress, progress),
    );
  }

  get #changes(): number {
    const { created, replaced, destroyed } = this.#counts.total;
    return created + replaced + destroyed;
  }
}

/** Whether a range ends behind a source id; undefined: at the end of all. */
const isAfter = (upTo: string | undefined, id: string): boolean =>
  upTo === undefined || compareBytes(sourceOrder(upTo), sourceOrder(id)) > 0;

/** How far a pass over a table is, and how fast. */
export class ProgressMeter {
  readonly #pass: Pass;
  readonly #source: string;
  readonly #totalRows: number;
  readonly #onProgress: (progress: VerificationProgress) => void;
  readonly #started = performance.now();
  /** By earlier runs, from which this one goes on. */
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
