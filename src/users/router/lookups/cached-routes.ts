import { callHook, type RouterHooks } from "../hooks.ts";
import { mergePositions, type Positions } from "../positions.ts";
import { CellsCopy } from "./cells-copy.ts";
import { inBackground, waitFor, type RouterClock } from "./clock.ts";
import { BoundedMap, bytesOf, type Entry, type FoundEntry } from "./entries.ts";
import { Floors } from "./floors.ts";
import {
  faultOf,
  originOf,
  type CellAddress,
  type CellsOptions,
  type FindOptions,
  type InvalidName,
  type Name,
  type RouteAnswer,
  type RouteLayer,
  type Routes,
  type RouteUnavailable,
  type WrongRoute,
} from "./routes.ts";
import { ShardPositions } from "./shard-positions.ts";
import { ShardReports } from "./shard-reports.ts";
import { SharedEntries, type SharedCache } from "./shared-cache.ts";
import { answerOf, Breaker, type Source, type SourceAnswer, type SourceFailure } from "./source.ts";

export interface LookupOptions {
  source: Source;
  clock: RouterClock;
  /** See `RoutesOptions` for these. */
  maxAgeMs: number;
  reports: boolean;
  reportedMaxAgeMs: number;
  boundMs: number;
  negativeMaxAgeMs: number;
  graceMs: number;
  memoryBytes: number;
  /** The longest time that the source takes for an answer. */
  timeoutMs: number;
  sharedCache?: { cache: SharedCache; coordinator: string } | undefined;
  hooks: RouterHooks;
  /** Draws a number below 2^32 that nobody can guess. Only a simulation sets it. */
  drawSalt?: (() => number) | undefined;
}

/** A question to the coordinator, which several calls may wait for. */
interface Question {
  /** Calls that want the same name, at least as new, have the same id. */
  id: string;
  asked: Promise<Asked>;
  sentMs: number;
  /** Questions are numbered in the order of sending. */
  number: number;
}

/** An answer of the coordinator. It isn't shown yet. */
type Asked = Entry | InvalidName | SourceFailure;

/** The last answer about a name that a cell has refused. */
interface Misdirected {
  position: number;
  atMs: number;
}

/** One call of `find`. */
interface Lookup {
  name: Name;
  /** What the name is remembered under. */
  id: string;
  min: Positions;
  /** How many questions had been sent when the call began. */
  asked: number;
  /** True after an answer that was too old, but does not prove that the caller's positions are wrong. */
  insists: boolean;
  startedMs: number;
  era: number;
  options: FindOptions;
  /** An entry of the shared cache that is too old, except for an outage. */
  spare: Entry | undefined;
  /** False after a wrong answer: an outage must not bring it back. */
  mayBeStale: boolean;
  shown: Entry | undefined;
}

/** A call, and what it is to be answered. */
interface Answered {
  lookup: Lookup;
  answer: RouteAnswer;
}

/** In a row, for one shard. A single lost answer must not stop the questions for a whole shard. */
const SHARD_FAILURES = 3;
/** In a row, for all shards. Any answer starts the count again. */
const FAILURES = 5;
const RETRY_AFTER_MS = 1_000;
/** Questions that run at the same time. A coordinator that hangs must not collect more. */
const MAX_QUESTIONS = 1_024;
const MAX_SHARDS = 1_024;
const MAX_CELLS = 10_000;
/** How often one call asks, if other calls show newer answers meanwhile. */
const MAX_ASKS = 3;
/** A copy of the cells that is not older than this is used while it is refreshed. */
const CELLS_SOON_MS = 30_000;
/** A question is taken for lost if it takes that much longer than its time. */
const SLACK_MS = 250;
/** The numbers of a refused answer. */
const MISDIRECTED_BYTES = 16;
const NO_POSITIONS: Positions = new Map();

/** The layers of lookups over a source: memory with reports, a shared cache, and the coordinator. */
export class CachedRoutes implements Routes {
  readonly #options: LookupOptions;
  readonly #memory: BoundedMap<Entry>;
  readonly #floors: Floors;
  /** The answers that a cell has refused with 421, by key and by name. They are not used again (Q8). */
  readonly #misdirected: BoundedMap<Misdirected>;
  readonly #reports: ShardReports | undefined;
  readonly #shared: SharedEntries | undefined;
  readonly #cells: CellsCopy;
  /** The last question of each id, which other calls may join. */
  readonly #questions = new Map<string, Question>();
  /** All questions without an answer, also those that a call could not join. */
  readonly #unanswered = new Set<Question>();
  readonly #breaker = new Breaker(FAILURES);
  readonly #shardBreakers = new Map<number, Breaker>();
  readonly #positions = new ShardPositions();
  /** The newest known address of each cell: entries live longer than addresses. */
  readonly #addresses = new Map<string, { cell: CellAddress; sinceMs: number }>();
  /** Entries live up to this age without a report. */
  readonly #plainMaxAgeMs: number;
  #lastMs = -Infinity;
  /** Counts the questions. */
  #asked = 0;
  /** Counts how often the clock was set back. */
  #era = 0;
  #isClosed = false;

  constructor(options: LookupOptions) {
    const { source, clock, hooks, memoryBytes, timeoutMs, sharedCache } = options;
    const { maxAgeMs, boundMs, reportedMaxAgeMs } = options;
    this.#options = options;
    this.#plainMaxAgeMs = options.reports ? Math.min(maxAgeMs, boundMs) : maxAgeMs;
    this.#memory = new BoundedMap(memoryBytes * 0.55);
    this.#misdirected = new BoundedMap(memoryBytes * 0.05);
    this.#floors = new Floors(memoryBytes * 0.2, options.drawSalt ?? randomSalt);
    const now = (): number => this.#now();
    if (options.reports)
      this.#reports = new ShardReports({
        source,
        now,
        reportedMaxAgeMs,
        boundMs,
        maxBytes: memoryBytes * 0.2,
        pollTimeoutMs: 2 * timeoutMs,
        hooks,
      });
    if (sharedCache !== undefined) {
      const ttlMs = options.reports ? Math.max(maxAgeMs, reportedMaxAgeMs) : maxAgeMs;
      const after: RouterClock["after"] = (delayMs, ring) => clock.after(delayMs, ring);
      this.#shared = new SharedEntries({ ...sharedCache, clock: { now, after }, ttlMs, hooks });
    }
    const { graceMs } = options;
    this.#cells = new CellsCopy({ source, now, graceMs, refreshTimeoutMs: 2 * timeoutMs, hooks });
  }

  /** How much memory the entries, the floors and the reports take, in bytes. */
  get bytes(): number {
    const kept = this.#memory.bytes + this.#misdirected.bytes;
    return kept + this.#floors.bytes + (this.#reports?.bytes ?? 0);
  }

  async find(name: Name, options: FindOptions = {}): Promise<RouteAnswer> {
    return this.#tell(await this.#find(this.#lookup(name, options)));
  }

  async findMany(names: readonly Name[], options: FindOptions = {}): Promise<RouteAnswer[]> {
    const lookups = names.map((name) => this.#lookup(name, options));
    const kept = await Promise.all(lookups.map((lookup) => this.#fromLayers(lookup)));
    this.#askTogether(lookups.filter((_, index) => kept[index] === undefined));
    let batch = await Promise.all(
      lookups.map(async (lookup, index) => ({
        lookup,
        answer: kept[index] ?? (await this.#fromCoordinator(lookup)),
      })),
    );
    // While the others were asked, an answer may have become too old, or a newer one may have been shown.
    for (let asks = 0; asks < MAX_ASKS && !batch.every((each) => this.#isInTime(each)); asks += 1)
      batch = await Promise.all(
        batch.map(async (each) =>
          this.#isInTime(each) ? each : { ...each, answer: await this.#find(each.lookup) },
        ),
      );
    return batch.map((each) => this.#tell(this.#isInTime(each) ? this.#withAge(each) : unavailable(TOO_OLD)));
  }

  async refresh(name: Name, wrong: WrongRoute, options: FindOptions = {}): Promise<RouteAnswer> {
    callHook(this.#options.hooks.onMisdirected, { shard: wrong.shard });
    const minPositions = mergePositions(
      options.minPositions ?? new Map(),
      new Map([[wrong.shard, wrong.position]]),
    );
    const lookup = this.#lookup(name, { ...options, minPositions });
    const kept = this.#memory.get(lookup.id);
    if (kept !== undefined && kept.shard === wrong.shard && kept.position > wrong.position)
      return this.find(name, { ...options, minPositions });
    this.#memory.delete(lookup.id);
    this.#misdirect(lookup, wrong, kept);
    lookup.mayBeStale = false;
    return this.#tell(this.#refused(lookup) ?? (await this.#fromCoordinator(lookup)));
  }

  async cells(options: CellsOptions = {}): Promise<ReadonlyMap<string, CellAddress>> {
    options.signal?.throwIfAborted();
    const mustBeNew = options.mustBeNew === true;
    const maxAgeMs = this.#cells.maxAgeMs(mustBeNew);
    const nowMs = this.#now();
    if (!this.#isClosed && this.#cells.isDue(nowMs)) {
      const refresh = this.#cells.refresh();
      inBackground(refresh, options);
      if (nowMs - (this.#cells.newest?.askedMs ?? -Infinity) > Math.min(CELLS_SOON_MS, maxAgeMs))
        await this.#wait(refresh, options);
    }
    return this.#cells.usable(mustBeNew);
  }

  refreshCells(options: Pick<FindOptions, "waitUntil"> = {}): void {
    if (!this.#isClosed && this.#cells.mayRefresh(this.#now())) inBackground(this.#cells.refresh(), options);
  }

  close(): void {
    this.#isClosed = true;
    this.#options.source.close();
    this.#forgetTimes();
  }

  /** The clock's time. If it was set back, the age of everything remembered is unknown. */
  #now(): number {
    const nowMs = this.#options.clock.now();
    if (nowMs < this.#lastMs) {
      this.#lastMs = nowMs;
      this.#forgetTimes();
    }
    this.#lastMs = nowMs;
    return nowMs;
  }

  #forgetTimes(): void {
    this.#era += 1;
    this.#floors.forgetTimes();
    this.#memory.clear();
    this.#misdirected.clear();
    this.#reports?.clear();
    this.#shared?.endPause();
    this.#cells.clear();
    this.#addresses.clear();
    this.#questions.clear();
    this.#unanswered.clear();
    this.#positions.clear();
    this.#breaker.succeeded();
    this.#shardBreakers.clear();
  }

  #lookup(name: Name, options: FindOptions): Lookup {
    options.signal?.throwIfAborted();
    const id = `${name.type.length}:${name.type}${name.value}`;
    const min = options.minPositions ?? NO_POSITIONS;
    const startedMs = this.#now();
    const once = { insists: false, spare: undefined, mayBeStale: true, shown: undefined };
    return { name, id, min, asked: this.#asked, startedMs, era: this.#era, options, ...once };
  }

  async #find(lookup: Lookup): Promise<RouteAnswer> {
    return (await this.#fromLayers(lookup)) ?? this.#fromCoordinator(lookup);
  }

  /** Whether an answer that was found earlier in the same call can still be given. */
  #isInTime({ lookup, answer }: Answered): boolean {
    const { shown } = lookup;
    if (shown === undefined || !("layer" in answer)) return true;
    if (!this.#isAllowed(lookup, shown)) return false;
    if (answer.layer !== "coordinator" && lookup.era !== this.#era) return false;
    if (answer.kind === "found" && answer.isStale) return this.#isInGrace(shown, this.#now());
    // An answer to a question from before the call counts like an entry.
    const isOwn = lookup.era !== this.#era || shown.sinceMs >= lookup.startedMs;
    return (answer.layer === "coordinator" && isOwn) || this.#isFresh(shown, this.#now());
  }

  /** The answer with its age as of now: it was shown earlier if others of its batch took longer. */
  #withAge({ lookup: { shown, era }, answer }: Answered): RouteAnswer {
    if (shown === undefined || !("layer" in answer) || era !== this.#era) return answer;
    return { ...answer, ageMs: this.#ageOf(shown) };
  }

  /** What can be said without asking anybody. */
  #refused({ name }: Lookup): InvalidName | RouteUnavailable | undefined {
    if (this.#isClosed)
      return { kind: "unavailable", detail: "the router is closed", retryAfterMs: RETRY_AFTER_MS };
    return faultOf(name);
  }

  /** Looks into memory and the shared cache. Returns undefined if the coordinator has to be asked. */
  async #fromLayers(lookup: Lookup): Promise<RouteAnswer | undefined> {
    const refused = this.#refused(lookup);
    if (refused !== undefined) return refused;
    // A clock that was set back is noticed before the memory is read.
    this.#now();
    const kept = this.#memory.get(lookup.id);
    const answer = kept && (await this.#ifUsable(lookup, kept, "memory"));
    if (answer !== undefined || this.#shared === undefined) return answer;
    const shared = await this.#wait(this.#shared.get(lookup.name.type, lookup.name.value), lookup.options);
    this.#now();
    // If the clock was set back since the call began, the entry's age is unknown.
    if (shared === undefined || lookup.era !== this.#era) return undefined;
    lookup.spare = shared;
    const found = await this.#ifUsable(lookup, shared, "shared_cache");
    if (found !== undefined) this.#keep(lookup.id, shared);
    return found;
  }

  /** Uses an entry if rule Q5 allows it, and waits for a report if that can make the difference. */
  async #ifUsable(lookup: Lookup, entry: Entry, layer: RouteLayer): Promise<RouteAnswer | undefined> {
    const nowMs = this.#now();
    if (!this.#isAllowed(lookup, entry)) return undefined;
    if (this.#isFresh(entry, nowMs)) {
      this.#refreshSoon(lookup, entry, nowMs);
      return this.#show(lookup, entry, layer);
    }
    if (!this.#mayBecomeFresh(entry, nowMs)) return undefined;
    const poll = this.#reports?.poll(entry.shard);
    if (poll === undefined) return undefined;
    const era = this.#era;
    inBackground(poll, lookup.options);
    await this.#wait(poll, lookup.options);
    const laterMs = this.#now();
    const isUsable = era === this.#era && this.#isAllowed(lookup, entry) && this.#isFresh(entry, laterMs);
    return isUsable ? this.#show(lookup, entry, layer) : undefined;
  }

  #misdirect(lookup: Lookup, { position }: WrongRoute, kept: Entry | undefined): void {
    const atMs = this.#now();
    const running = this.#questions.get(this.#questionId(lookup));
    for (const key of refusalKeys(lookup.id, kept)) {
      const earlier = this.#misdirected.peek(key);
      // Several requests may have gone to the wrong cell. They can share the question after the first one.
      if (earlier !== undefined && running !== undefined && running.sentMs >= earlier.atMs) continue;
      this.#misdirected.set(key, { position, atMs }, MISDIRECTED_BYTES);
    }
  }

  /** Whether an answer may be the one that a cell has refused. */
  #isMisdirected(id: string, entry: Entry): boolean {
    if (this.#misdirected.size === 0) return false;
    return refusalKeys(id, entry).some(
      (key) => entry.sinceMs < (this.#misdirected.peek(key)?.atMs ?? -Infinity),
    );
  }

  /** Whether an entry is at least as new as what was shown (Q6), and as what the caller wants (Q9). */
  #isAllowed({ id, min }: Lookup, entry: Entry): boolean {
    if (this.#isMisdirected(id, entry)) return false;
    return entry.position >= (min.get(entry.shard) ?? 0) && !this.#floors.isBelow(id, entry);
  }

  /** Rules Q5 and Q7. */
  #isFresh(entry: Entry, nowMs: number): boolean {
    if (!entry.settled) return false;
    const ageMs = nowMs - entry.sinceMs;
    const { negativeMaxAgeMs, reportedMaxAgeMs } = this.#options;
    const plainMaxAgeMs =
      entry.kind === "none" ? Math.min(negativeMaxAgeMs, this.#plainMaxAgeMs) : this.#plainMaxAgeMs;
    if (ageMs <= plainMaxAgeMs) return true;
    return ageMs <= reportedMaxAgeMs && this.#reports?.proves(entry, nowMs) === true;
  }

  #mayBecomeFresh(entry: Entry, nowMs: number): boolean {
    return (
      entry.settled &&
      nowMs - entry.sinceMs <= this.#options.reportedMaxAgeMs &&
      this.#reports?.mayProve(entry, nowMs) === true
    );
  }

  /** Polls in the background what the next lookups need, so that they don't have to wait. */
  #refreshSoon({ options }: Lookup, { shard, sinceMs }: Entry, nowMs: number): void {
    if (this.#reports?.isDue(shard, nowMs) === true) {
      const poll = this.#reports.poll(shard);
      if (poll !== undefined) inBackground(poll, options);
    }
    // Entries that live for minutes must not keep an old address.
    if (nowMs - sinceMs > CELLS_SOON_MS && this.#cells.isDue(nowMs))
      inBackground(this.#cells.refresh(), options);
  }

  /** Asks the coordinator, or waits for somebody else's question. */
  async #fromCoordinator(lookup: Lookup): Promise<RouteAnswer> {
    const stale = this.#isFailing(lookup) ? this.#stale(lookup) : undefined;
    if (stale !== undefined) {
      const probe = this.#question(lookup);
      if (!("kind" in probe)) inBackground(probe.asked, lookup.options);
      return stale;
    }
    let wasBackwards = false;
    for (let asks = 0; asks < MAX_ASKS; asks += 1) {
      const refused = await this.#awaitTurn(lookup);
      if (refused !== undefined) return refused;
      const question = this.#question(lookup);
      if ("kind" in question) return this.#withoutCoordinator(lookup, question);
      const isOwn = question.sentMs >= lookup.startedMs || lookup.era !== this.#era;
      const leftMs = question.sentMs + this.#options.timeoutMs + SLACK_MS - this.#now();
      const asked = await this.#wait(question.asked, lookup.options, leftMs);
      if (asked === undefined && !isOwn) continue;
      if (asked === undefined) return this.#withoutCoordinator(lookup, LOST);
      if (asked === UNUSABLE) return unavailable(UNUSABLE);
      if (asked.kind === "failed") {
        return asked.isBehind === true
          ? this.#notReached(lookup, asked.shard ?? this.#shardOf(lookup))
          : this.#withoutCoordinator(lookup, asked);
      }
      if (asked.kind === "invalid") return asked;
      // An answer to an older question counts like an entry, and so does one from an HTTP cache.
      const isFromCache = question.sentMs - asked.sinceMs > this.#plainMaxAgeMs;
      if ((!isOwn || isFromCache) && !this.#isFresh(asked, this.#now())) {
        lookup.insists = true;
        continue;
      }
      if (this.#isAllowed(lookup, asked)) {
        this.#refreshSoon(lookup, asked, this.#now());
        return this.#show(lookup, asked, "coordinator");
      }
      if (this.#isRefuted(lookup, asked.shard)) return this.#notReached(lookup, asked.shard);
      if (wasBackwards) break;
      wasBackwards = true;
      lookup.insists = true;
      this.#demandNewer(lookup, asked);
    }
    return unavailable(TOO_OLD);
  }

  /** The position of a shard that the caller wants, which comes from a client (Q9). */
  #wanted({ options }: Lookup, shard: number | undefined): number | undefined {
    return shard === undefined ? undefined : options.minPositions?.get(shard);
  }

  #isRefuted(lookup: Lookup, shard: number): boolean {
    const wanted = this.#wanted(lookup, shard);
    return wanted !== undefined && this.#positions.isRefuted(shard, wanted, lookup.asked);
  }

  /** Whether only a question can tell if the shard of a name has reached what the caller wants. */
  #isUnproven(lookup: Lookup): boolean {
    const shard = this.#shardOf(lookup);
    const wanted = this.#wanted(lookup, shard);
    return shard !== undefined && wanted !== undefined && !this.#positions.isProven(shard, wanted);
  }

  /**
   * Waits until a question may check the position that the caller wants (Q9). Returns an answer if none can
   * be sent, or if none is needed, because the answer to somebody else has shown meanwhile that the position
   * is wrong.
   */
  async #awaitTurn(lookup: Lookup): Promise<RouteAnswer | undefined> {
    const untilMs = this.#now() + this.#options.timeoutMs;
    const shard = this.#shardOf(lookup);
    if (shard === undefined) return undefined;
    while (this.#isUnproven(lookup)) {
      if (this.#isRefuted(lookup, shard)) return this.#notReached(lookup, shard);
      const refusal = this.#refusal(lookup);
      if (refusal !== undefined) return this.#withoutCoordinator(lookup, refusal);
      const nowMs = this.#now();
      if (nowMs > untilMs) return this.#withoutCoordinator(lookup, LOST);
      const delayMs = this.#positions.takeTurn(shard, nowMs);
      if (delayMs === 0) return undefined;
      await this.#wait(new Promise(() => {}), lookup.options, delayMs);
    }
    return undefined;
  }

  /** Answers a caller who wants a position that the shard has not reached. */
  #notReached(lookup: Lookup, shard: number | undefined): RouteAnswer {
    if (shard !== undefined) {
      this.#positions.refuted(shard, this.#now());
      callHook(this.#options.hooks.onPositionRefused, { shard });
    }
    return this.#withoutCoordinator(lookup, NOT_REACHED);
  }

  #demandNewer(lookup: Lookup, { shard, key }: Entry): void {
    const floor = this.#floors.position({ shard, key });
    lookup.min = mergePositions(lookup.min, new Map([[shard, floor]]));
  }

  /** Joins the running question of a name, or sends one. */
  #question(lookup: Lookup): Question | SourceFailure {
    const id = this.#questionId(lookup);
    const running = this.#questions.get(id);
    if (running !== undefined && this.#isRunning(running) && this.#isNewEnough(lookup, running))
      return running;
    const refusal = this.#refusal(lookup);
    if (refusal !== undefined) return refusal;
    const sentMs = this.#now();
    const { traceparent } = lookup.options;
    const asked = this.#options.source.find(lookup.name, this.#knownMin(lookup), traceparent);
    const answer = answerOf(asked).then((each) => {
      this.#noteFailures([lookup], [each]);
      return each;
    });
    return this.#send(lookup, answer, sentMs);
  }

  /** Whether the answer to a question that already runs can be as new as the caller wants. */
  #isNewEnough(lookup: Lookup, { number }: Question): boolean {
    if (number > lookup.asked || lookup.min.size === 0) return true;
    if (this.#shardOf(lookup) !== undefined) return !this.#isUnproven(lookup);
    return [...lookup.min].every(
      ([shard, position]) => !this.#positions.knows(shard) || this.#positions.isProven(shard, position),
    );
  }

  /** Sends the questions of several lookups in one message. The lookups then join them. */
  #askTogether(lookups: readonly Lookup[]): void {
    const unasked = new Map(lookups.map((lookup) => [this.#questionId(lookup), lookup] as const));
    for (const [id, lookup] of unasked) {
      const running = this.#questions.get(id);
      const isAsked = running !== undefined && this.#isRunning(running) && this.#isNewEnough(lookup, running);
      if (
        isAsked ||
        this.#isUnproven(lookup) ||
        this.#isFailing(lookup) ||
        this.#refusal(lookup) !== undefined
      )
        unasked.delete(id);
    }
    const [first, ...others] = unasked.values();
    if (first === undefined || others.length === 0) return;
    const together = [first, ...others];
    const names = together.map(({ name }) => name);
    const sentMs = this.#now();
    const { traceparent } = first.options;
    const asked = this.#options.source.findMany(names, this.#knownMin(first), traceparent);
    const answers = answerOf(asked).then((all) => {
      const each = together.map((_, index) => ("kind" in all ? all : (all[index] ?? INCOMPLETE)));
      this.#noteFailures(together, each);
      return each;
    });
    for (const [index, lookup] of together.entries())
      this.#send(
        lookup,
        answers.then((all) => all[index] ?? INCOMPLETE),
        sentMs,
      );
  }

  #send(lookup: Lookup, answer: Promise<SourceAnswer>, sentMs: number): Question {
    const era = this.#era;
    const id = this.#questionId(lookup);
    const number = (this.#asked += 1);
    this.#breaker.sent(sentMs);
    this.#shardBreaker(this.#shardOf(lookup))?.sent(sentMs);
    const asked = answer.then((each) => {
      this.#forget(question);
      return each.kind === "failed" ? each : this.#received(lookup, each, { sentMs, number }, era);
    });
    const question = { id, asked, sentMs, number };
    this.#questions.set(id, question);
    this.#unanswered.add(question);
    return question;
  }

  #forget(question: Question): void {
    this.#unanswered.delete(question);
    if (this.#questions.get(question.id) === question) this.#questions.delete(question.id);
  }

  #received(
    lookup: Lookup,
    answer: Exclude<SourceAnswer, SourceFailure>,
    { sentMs, number }: Pick<Question, "sentMs" | "number">,
    era: number,
  ): Asked {
    const nowMs = this.#now();
    this.#breaker.succeeded();
    if (answer.kind === "invalid") return answer;
    const { ageMs, ...read } = answer;
    // If the clock was set back meanwhile, the answer's age is unknown, and it must not be kept.
    const entry: Entry =
      era === this.#era
        ? { ...read, sinceMs: sentMs - ageMs }
        : { ...read, settled: false, sinceMs: nowMs - ageMs };
    this.#positions.told(entry.shard, entry.position, ageMs === 0 ? number : undefined);
    this.#shardBreaker(entry.shard)?.succeeded();
    this.#reports?.saw(entry.shard, entry.position);
    // A newer answer heals the name. From here on, its position keeps the wrong one away (Q6).
    for (const key of refusalKeys(lookup.id, entry)) {
      const refused = this.#misdirected.peek(key);
      if (refused !== undefined && sentMs >= refused.atMs && entry.position > refused.position)
        this.#misdirected.delete(key);
    }
    if (entry.kind === "found" && !this.#hasUsableAddress(entry)) return UNUSABLE;
    if (this.#floors.isBackwards(lookup.id, entry))
      callHook(this.#options.hooks.onBackwards, { shard: entry.shard });
    else if (this.#keep(lookup.id, entry) && this.#shared !== undefined) {
      const { type, value } = lookup.name;
      inBackground(this.#shared.put(type, value, entry), lookup.options);
    }
    return entry;
  }

  /**
   * Counts what failed of the questions that were sent together. A message that is lost is one failure for
   * the coordinator, and one for each shard that it was for. If a part of it was answered, the coordinator
   * works.
   */
  #noteFailures(lookups: readonly Lookup[], answers: readonly SourceAnswer[]): void {
    const told = new Set<string>();
    const failing = new Set<number>();
    let isAnswered = false;
    for (const [index, answer] of answers.entries()) {
      // The shard was read. Any client can ask for a position that it has not reached.
      if (answer.kind !== "failed" || answer.isBehind === true) isAnswered = true;
      if (answer.kind !== "failed") continue;
      const shard = answer.shard ?? this.#shardOf(lookups[index]);
      if (answer.isBehind === true) this.#wasBehind(shard);
      else if (shard !== undefined) failing.add(shard);
      this.#tellFailure(answer, told);
    }
    const nowMs = this.#now();
    if (isAnswered) this.#breaker.succeeded();
    else this.#breaker.failed(nowMs);
    for (const shard of failing) this.#shardFailed(shard, nowMs);
  }

  #wasBehind(shard: number | undefined): void {
    if (shard === undefined) return;
    this.#positions.fellBehind(shard, this.#now());
    this.#shardBreaker(shard)?.succeeded();
  }

  /** Tells the hook once what several names of a message share. */
  #tellFailure({ detail, status }: SourceFailure, told: Set<string>): void {
    if (told.has(detail)) return;
    told.add(detail);
    callHook(this.#options.hooks.onFailure, {
      operation: "route",
      detail,
      ...(status === undefined ? {} : { status }),
    });
  }

  #shardFailed(shard: number, nowMs: number): void {
    if (!this.#shardBreakers.has(shard) && this.#shardBreakers.size < MAX_SHARDS)
      this.#shardBreakers.set(shard, new Breaker(SHARD_FAILURES));
    this.#shardBreaker(shard)?.failed(nowMs);
  }

  /** Checks the address, and remembers it for the older entries of the cell. */
  #hasUsableAddress(entry: FoundEntry): boolean {
    const address = originOf(entry.cell.address);
    if (address === undefined) {
      callHook(this.#options.hooks.onUnusableAddress, { cell: entry.cell.id });
      return false;
    }
    const { id } = entry.cell;
    const known = this.#addresses.get(id);
    // One object for all entries of a cell.
    entry.cell = known?.cell.address === address ? known.cell : { id, address };
    if (known === undefined ? this.#addresses.size < MAX_CELLS : known.sinceMs < entry.sinceMs)
      this.#addresses.set(id, { cell: entry.cell, sinceMs: entry.sinceMs });
    return true;
  }

  /** Keeps an entry if it may be used again. */
  #keep(id: string, entry: Entry): boolean {
    if (this.#isMisdirected(id, entry)) return false;
    if (!entry.settled || this.#floors.isBelow(id, entry)) return false;
    this.#memory.set(id, entry, bytesOf(entry));
    return true;
  }

  /** Why no question may be sent now, or undefined. */
  #refusal(lookup: Lookup): SourceFailure | undefined {
    const nowMs = this.#now();
    const breakers = [this.#breaker, this.#shardBreaker(this.#shardOf(lookup))];
    for (const breaker of breakers) {
      if (breaker?.allows(nowMs) === false)
        return { ...PAUSED, retryAfterMs: Math.max(1, breaker.remainingMs(nowMs)) };
    }
    if (this.#unanswered.size < MAX_QUESTIONS) return undefined;
    for (const question of this.#unanswered) if (!this.#isRunning(question)) this.#forget(question);
    return this.#unanswered.size < MAX_QUESTIONS ? undefined : TOO_MANY;
  }

  #isRunning({ sentMs }: Question): boolean {
    return this.#now() - sentMs < this.#options.timeoutMs + SLACK_MS;
  }

  /** Whether the last questions about the name's shard have failed. */
  #isFailing(lookup: Lookup): boolean {
    return this.#breaker.isOpen || this.#shardBreaker(this.#shardOf(lookup))?.isOpen === true;
  }

  #shardBreaker(shard: number | undefined): Breaker | undefined {
    return shard === undefined ? undefined : this.#shardBreakers.get(shard);
  }

  /** The shard of a name, as far as it is known. */
  #shardOf(lookup: Lookup | undefined): number | undefined {
    return lookup && (this.#memory.peek(lookup.id) ?? lookup.spare)?.shard;
  }

  /**
   * The positions that a question carries. Clients can send any, so the answer is compared with those that no
   * shard has told yet: calls that differ only in them share a question. The coordinator would also refuse
   * shards that it does not have.
   */
  #knownMin({ min, insists }: Lookup): Positions {
    if (min.size === 0) return min;
    const isKnown = ([shard, position]: [number, number]): boolean =>
      insists ? this.#positions.knows(shard) : this.#positions.isProven(shard, position);
    return new Map([...min].filter(isKnown));
  }

  #questionId(lookup: Lookup): string {
    const min = [...this.#knownMin(lookup)].map((pair) => pair.join(":"));
    return `${min.join(",")}|${lookup.id}`;
  }

  #withoutCoordinator(lookup: Lookup, failure: SourceFailure): RouteAnswer {
    return this.#stale(lookup) ?? unavailable(failure);
  }

  /** Rule Q8: what an outage allows. */
  #stale(lookup: Lookup): RouteAnswer | undefined {
    if (!lookup.mayBeStale || this.#isClosed) return undefined;
    const nowMs = this.#now();
    const spare = lookup.era === this.#era ? lookup.spare : undefined;
    const entry = [this.#memory.get(lookup.id), spare].find(
      (each) =>
        each !== undefined &&
        each.kind === "found" &&
        this.#isInGrace(each, nowMs) &&
        this.#isAllowed(lookup, each),
    );
    if (entry === undefined) return undefined;
    return this.#show(lookup, entry, entry === lookup.spare ? "shared_cache" : "memory", true);
  }

  #isInGrace({ sinceMs }: Entry, nowMs: number): boolean {
    return nowMs - sinceMs <= this.#options.graceMs;
  }

  #ageOf({ sinceMs }: Entry): number {
    return Math.max(0, this.#now() - sinceMs);
  }

  /** From here on, no older answer about the key is shown (Q6). */
  #show(lookup: Lookup, entry: Entry, layer: RouteLayer, isStale = false): RouteAnswer {
    this.#floors.raise(lookup.id, entry, this.#now());
    lookup.shown = entry;
    const { shard, position, settled } = entry;
    const ageMs = this.#ageOf(entry);
    if (entry.kind === "none") return { kind: "none", shard, position, settled, ageMs, layer };
    const cell = { ...this.#newestAddress(entry) };
    return { kind: "found", cell, epoch: entry.epoch, shard, position, settled, ageMs, layer, isStale };
  }

  #newestAddress({ cell, sinceMs }: FoundEntry): CellAddress {
    const known = this.#addresses.get(cell.id);
    let newest = known !== undefined && known.sinceMs > sinceMs ? known : { cell, sinceMs };
    const copy = this.#cells.newest;
    const listed = copy?.cells.get(cell.id);
    const address = listed && originOf(listed.address);
    if (copy !== undefined && copy.askedMs > newest.sinceMs && address !== undefined)
      newest = { cell: { id: cell.id, address }, sinceMs: copy.askedMs };
    return newest.cell;
  }

  #tell(answer: RouteAnswer): RouteAnswer {
    const result = answer.kind === "found" && answer.isStale ? "stale" : answer.kind;
    const { layer, ageMs } = "layer" in answer ? answer : NO_LAYER;
    callHook(this.#options.hooks.onRoute, { result, layer, ageMs });
    return answer;
  }

  /** Returns undefined if the work was lost. */
  #wait<Result>(
    work: Promise<Result>,
    options: Pick<FindOptions, "signal">,
    timeoutMs = this.#options.timeoutMs + SLACK_MS,
  ): Promise<Result | undefined> {
    return waitFor(work, options, this.#options.clock, timeoutMs, undefined);
  }
}

const NO_LAYER = { layer: "none", ageMs: 0 } as const;
const LOST: SourceFailure = { kind: "failed", detail: "the coordinator did not answer in time" };
const TOO_OLD: SourceFailure = {
  kind: "failed",
  detail: "the coordinator's answers are older than they may be",
};
const INCOMPLETE: SourceFailure = {
  kind: "failed",
  detail: "the coordinator has not answered every name",
};
const NOT_REACHED: SourceFailure = {
  kind: "failed",
  detail: "the shard has not reached the position that the caller wants",
};
const PAUSED: SourceFailure = { kind: "failed", detail: "the coordinator does not answer" };
const TOO_MANY: SourceFailure = { kind: "failed", detail: "too many questions wait for the coordinator" };
const UNUSABLE: SourceFailure = { kind: "failed", detail: "the cell has no address that a router may use" };

const unavailable = ({ detail, retryAfterMs = RETRY_AFTER_MS }: SourceFailure): RouteUnavailable => ({
  kind: "unavailable",
  detail,
  retryAfterMs,
});

/** A name, and the key that all its spellings have if it is known. */
const refusalKeys = (id: string, entry: Entry | undefined): string[] =>
  entry === undefined ? [id] : [id, `${entry.shard}/${entry.key}`];

function randomSalt(): number {
  const [salt = 0] = crypto.getRandomValues(new Uint32Array(1));
  return salt;
}
