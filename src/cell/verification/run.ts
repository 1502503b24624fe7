import { compareBytes, sourceOrder } from "../../core/source-order.ts";
import { callHook } from "../../client/hooks.ts";
import { LocalCommitUnknownError } from "../errors.ts";
import { examine } from "./examine.ts";
import type { Settings } from "./options.ts";
import type { Part, Place } from "./place.ts";
import { Pace } from "./pace.ts";
import { Pending } from "./pending.ts";
import type { IdRange, QueuedRow, VerificationPorts, VerifiedRow } from "./ports.ts";
import type { VerificationReport, VerificationStatus } from "./report.ts";
import { Settler } from "./settler.ts";
import { sift, type Sifted } from "./sift.ts";
import type { Slot } from "./slot.ts";
import { Tally } from "./tally.ts";

/** A part of a table that is gone through at once. */
interface Stretch extends IdRange {
  ranges: readonly (IdRange & { rows?: VerifiedRow[] })[];
  counts: Sifted["counts"];
}

type Where = Pick<Place, "pass" | "source" | "after">;

/** Within a stretch: a usual one is shorter, but one with few rows may have any number of records. */
const PAUSE_PAGES = 16;

const whereOf = ({ pass, source, after }: Place): Where => ({ pass, source, after });

/** From a place to the end, or as far as it gets. */
export class Run {
  readonly #ports: VerificationPorts;
  readonly #settings: Settings;
  readonly #slot: Slot;
  readonly #place: Place;
  readonly #isResumed: boolean;
  readonly #tally: Tally;
  readonly #settler: Settler;
  readonly #startedAt = new Date();
  readonly #started = performance.now();
  /** As it is stored, and its text: another run would have changed it. */
  #stored: Where;
  #text: string | undefined;
  /** Changes, with those that are under way. */
  #announced: number;
  /** Whether the stored place may be another run's. */
  #isUnsure = false;
  #hasBegun = false;

  constructor(
    ports: VerificationPorts,
    settings: Settings,
    slot: Slot,
    { place, isResumed, text }: { place: Place; isResumed: boolean; text: string | undefined },
  ) {
    this.#text = text;
    this.#ports = ports;
    this.#settings = settings;
    this.#slot = slot;
    this.#place = place;
    this.#stored = whereOf(place);
    this.#announced = place.spent;
    this.#isResumed = isResumed;
    this.#tally = new Tally(place, settings);
    this.#settler = new Settler(ports, settings, place, this.#tally);
  }

  async run(): Promise<VerificationReport> {
    this.#hasBegun = true;
    if (this.#isStopped) return this.report("stopped");
    const early = (this.#settings.apply ? await this.#queue() : undefined) ?? (await this.#parts());
    if (early !== undefined) return this.report(early);
    if (!(await this.#isSlotHeld())) return this.report("slot_lost");
    await this.#save({ isDone: true, isAsking: false });
    return this.report("done");
  }

  /** What was mended counts, also when a run ends where it did not mean to: the next one has so much less to spend. */
  async abandon(cause: unknown): Promise<void> {
    if (!this.#hasBegun || !this.#slot.isHeld || this.#isUnsure) return;
    await this.#saveBehind(cause instanceof LocalCommitUnknownError ? this.#announced : undefined);
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
      counts: this.#tally.total,
      tables: this.#tally.tables,
      items: this.#tally.items,
      itemsLeftOut: this.#tally.itemsLeftOut,
      ...(isOver ? {} : { next: this.#stored }),
      ...(this.#settler.question === undefined ? {} : { question: this.#settler.question }),
    };
  }

  /** Page by page: rows that only a person can settle keep no other from its turn. */
  async #queue(): Promise<VerificationStatus | undefined> {
    const limit = this.#settings.pageRows;
    for (let after: QueuedRow | undefined; ;) {
      const rows = await this.#ports.queue.list({ after, limit });
      await this.#settler.queued(rows);
      after = rows.at(-1);
      if (after === undefined || rows.length < limit) return undefined;
      // Not for the time: a run goes on by a stretch at least.
      if (this.#isStopped) return "stopped";
      if (!(await this.#isSlotHeld())) return "slot_lost";
    }
  }

  /** Those that are still to be done. A dry run changes nothing, so it has no use for a second pass. */
  async #parts(): Promise<VerificationStatus | undefined> {
    const passes = this.#settings.apply ? (["names", "extras"] as const) : (["names"] as const);
    const parts = passes.flatMap((pass) => this.#ports.tables.map((table): Part => ({ pass, table })));
    const first = parts.findIndex(
      ({ pass, table }) => pass === this.#place.pass && table.source === this.#place.source,
    );
    let isFirst = true;
    for (const part of parts.slice(Math.max(0, first))) {
      const bounds = this.#boundsOf(part);
      if (bounds === undefined) continue;
      const { pass, table } = part;
      if (pass !== this.#place.pass || table.source !== this.#place.source)
        Object.assign(this.#place, { pass, source: table.source, after: "" });
      // Not before the first: a run goes on by a stretch at least, however little time it has.
      const status = (isFirst ? undefined : await this.#storeAndPause()) ?? (await this.#part(part, bounds));
      if (status !== undefined) return status;
      isFirst = false;
    }
    return undefined;
  }

  /** Undefined: there is nothing to do. */
  #boundsOf({ pass, table }: Part): IdRange | undefined {
    if (table.bucketTypes.length === 0) return undefined;
    return pass === "names" ? { after: "", upTo: undefined } : this.#place.extras[table.source];
  }

  /** Stretch by stretch. Undefined: to its end. */
  async #part(part: Part, bounds: IdRange): Promise<VerificationStatus | undefined> {
    let after = this.#place.after === "" ? bounds.after : this.#place.after;
    const pace = await this.#paceOf(part, { after, upTo: bounds.upTo });
    for (;;) {
      const stretch = await this.#next(part, { after, upTo: bounds.upTo }, pace);
      const early = await this.#through(part, stretch, pace);
      if (early !== undefined) return early;
      if (stretch.upTo === undefined || stretch.upTo === bounds.upTo) return undefined;
      after = stretch.upTo;
      const status = await this.#storeAndPause(after);
      if (status !== undefined) return status;
    }
  }

  /** The next stretch, and what of it has to be looked at. */
  async #next({ pass, table }: Part, { after, upTo: end }: IdRange, pace: Pace): Promise<Stretch> {
    const { records } = this.#ports;
    const { recentMs, pageRows, rangeRows, digestRanges } = this.#settings;
    if (this.#place.isWhole) {
      const page = await table.page({ after, upTo: end, limit: pageRows });
      const upTo = page.length < pageRows ? end : page.at(-1)?.id;
      return { after, upTo, ranges: [{ after, upTo, rows: page }], counts: [] };
    }
    const { unequal, counts, upTo } = await sift({
      records,
      table,
      after,
      end,
      recentMs,
      pageRows,
      rangeRows,
      ranges: digestRanges,
    });
    if (pass === "names") this.#tally.sifted(table.source, counts);
    for (const { rows } of counts) pace.add(rows);
    return { after, upTo, ranges: unequal, counts };
  }

  /** Page by page, because there can be any number of records in it. Undefined: to its end. */
  async #through(
    part: Part,
    { after, ranges, counts }: Stretch,
    pace: Pace,
  ): Promise<VerificationStatus | undefined> {
    const { pass, table } = part;
    const { records } = this.#ports;
    const { recentMs, pageRows, leaseOps } = this.#settings;
    // Within a stretch only: what is behind the stored place is done.
    const pending = new Pending(leaseOps);
    let pages = 0;
    for (const range of ranges) {
      for await (const examined of examine({ records, table, recentMs, pageRows, ...range })) {
        const asks = await this.#settler.collect(part, after, examined, pending);
        if (asks) return this.#ask(pending);
        if (!(await this.#settle(part, pending, false))) return "slot_lost";
        pace.add(examined.rows);
        pace.tell(this.#changes);
        const { through } = examined;
        pages += 1;
        // A page with its leases may take long.
        if (!(await this.#isSlotHeld())) return "slot_lost";
        const isWithin = through !== undefined && through !== range.upTo && pages % PAUSE_PAGES === 0;
        if (!isWithin || this.#isOver === undefined) continue;
        if (!(await this.#settle(part, pending, true))) return "slot_lost";
        if (pass === "names")
          this.#tally.sifted(
            table.source,
            counts.filter(({ upTo }) => isBehind(upTo, through)),
            -1,
          );
        return this.#storeAndPause(through);
      }
    }
    if (!(await this.#settle(part, pending, true))) return "slot_lost";
    pace.tell(this.#changes);
    return undefined;
  }

  /** What is about to change counts before it does: a run that dies has changed no more than is counted (rule V5). False: the slot is lost. */
  async #settle(part: Part, pending: Pending, isLast: boolean): Promise<boolean> {
    for (const together of pending.take(isLast)) {
      if (!(await this.#isSlotHeld())) return false;
      this.#announced = this.#tally.now.spent + together.drifts.length;
      await this.#saveBehind(this.#announced);
      await this.#settler.settle(part, together);
    }
    return true;
  }

  /** The next run asks again, with what this one has changed counted. */
  async #ask(pending: Pending): Promise<VerificationStatus> {
    for (const drift of pending.drifts) this.#tally.planned(drift);
    if (!(await this.#isSlotHeld())) return "slot_lost";
    this.#place.isAsking = true;
    await this.#saveBehind();
    return "needs_approval";
  }

  /** The slot first: whoever has it now has a place of its own. */
  async #storeAndPause(after = this.#place.after): Promise<VerificationStatus | undefined> {
    const status = await this.#pause();
    if (status !== "slot_lost") await this.#store(after);
    return status;
  }

  async #store(after: string): Promise<void> {
    await this.#save({ after, ...this.#tally.now });
    this.#tally.mark();
    this.#place.after = after;
    if (this.#settings.apply) this.#stored = whereOf(this.#place);
  }

  /** The place stays where it was stored last, behind which all will be looked at again. */
  async #saveBehind(spent = this.#tally.now.spent): Promise<void> {
    await this.#save({ ...this.#stored, spent });
  }

  async #save(more: Partial<Place>): Promise<void> {
    if (!this.#settings.apply) return;
    const place: Place = { ...this.#place, ...this.#tally.stored, wanted: this.#settler.wanted, ...more };
    const text = JSON.stringify(place);
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

  /** A slot that had run out and is to be had again was nobody's, if the place is as this run has left it. */
  async #isSlotHeld(): Promise<boolean> {
    const held = await this.#slot.renew();
    if (held !== "again" || !this.#settings.apply) return held !== "lost";
    this.#isUnsure = true;
    const isOurs = (await this.#ports.progress.load())?.text === this.#text;
    this.#isUnsure = !isOurs;
    return isOurs;
  }

  async #paceOf({ pass, table }: Part, range: IdRange): Promise<Pace> {
    const { onProgress } = this.#settings;
    const before = pass === "names" ? this.#tally.rowsOf(table.source) : 0;
    // Counting reads the whole range: not for nobody.
    const ofRows = onProgress === undefined ? 0 : before + (await table.count(range));
    return new Pace(pass, table.source, { ofRows, before }, (progress) => callHook(onProgress, progress));
  }

  get #changes(): number {
    const { created, replaced, destroyed } = this.#tally.total;
    return created + replaced + destroyed;
  }
}

/** Whether a range ends behind a source id; undefined: at the end of all. */
const isBehind = (upTo: string | undefined, id: string): boolean =>
  upTo === undefined || compareBytes(sourceOrder(upTo), sourceOrder(id)) > 0;
