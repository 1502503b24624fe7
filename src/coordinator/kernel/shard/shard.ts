import { keyHash } from "../key-hash.ts";
import type { Limits } from "../../../common/limits.ts";
import type {
  Decision,
  Envelope,
  Exchange,
  ExchangeAnswer,
  HistoryPoint,
  HoldState,
  LookupAnswer,
  LookupFound,
  LookupRequest,
  PingShard,
  Prepare,
  Settle,
  SettleAnswer,
  ShardWork,
  Told,
} from "../messages.ts";
import type { Tables } from "../tables.ts";
import type { ShardMetrics } from "../metrics/messages.ts";
import type { Counted } from "../metrics/shard-counters.ts";
import type { Ports } from "../ports.ts";
import { ok, refused, valuesOf, type Refusal, type Result } from "../refusal.ts";
import type { Handlers, Method } from "../method.ts";
import { shardMethods, type Peers, type ShardCalls } from "../methods.ts";
import { counting, defineServed, type Checked, type Measures, type Work } from "../serve.ts";
import { CHUNK_ROWS, chunksOf } from "./chunks.ts";
import { decides, endedAs, endHolds, type EndedAs } from "./end-holds.ts";
import { Preparation } from "./prepare.ts";
import { nameOf } from "./hold-entries.ts";
import { keyOf, type HoldRow } from "./rows.ts";
import { makePart, readLog, type ShardPart } from "./part.ts";
import { refusalAt, type Checks } from "../order.ts";
import { addHalves, withFields, type Halves } from "../half.ts";
import type { ShardHooks } from "./hooks.ts";

/**
 * The number of parts of one cell's messages that may wait for a transaction. A ledger sends one message at a
 * time, and gives up on it after `exchangeTimeoutMs`. So the queue is this long only if the disk hangs.
 */
const MAX_WAITING_PARTS = 100;

/** The part of the held names of a shard that one cell may have. */
const CELL_PART = 1 / 2;

/** What a part of an exchange has done, to be answered with the others. */
interface CarriedOut {
  /** Present if nothing was carried out: the ledger has not said that it has the stored point (H5). */
  isUnchecked?: true;
  prepares: ExchangeAnswer["prepares"];
  /** The leases whose decisions wait. */
  unapplied: string[];
}

/**
 * Serializes everything that happens to its buckets. The protocol needs nothing that a shard has only in
 * memory: a crash loses answers and nothing else.
 */
// The constructor defines the methods.
// oxlint-disable-next-line typescript/no-unsafe-declaration-merging
export class Shard {
  readonly #part: ShardPart;

  /** @param halves - what capabilities add, by their names */
  constructor(
    index: number,
    ports: Ports,
    limits: Limits,
    peers: Peers,
    halves: Halves<ShardPart, ShardHooks>,
    logOf = readLog,
  ) {
    const part = makePart(index, ports, limits, peers, logOf, halves);
    this.#part = part;
    const checked: Checked = (declared, message, work) => {
      if (declared.admits) return (async () => work())();
      return declared.level === "always"
        ? this.#answerAlways(message, work)
        : this.#answer(declared, message, work);
    };
    defineServed(this, shardMethods, handlersOf(part), measuresOf(part), checked);
    addHalves(this, part, halves, checked);
  }

  get tables(): Tables {
    return this.#part.tables;
  }

  /** What an answer tells besides its content. To be called when the answer is complete. */
  told(): Told {
    return withFields<Told>({}, this.#part.hooks.tell);
  }

  alarm(): Promise<void> {
    this.#part.counters.add("sweeps");
    return this.#part.sweeper.run();
  }

  async #answerAlways<T>(message: Envelope, work: Work<T>): Promise<Result<T>> {
    const refusal = await this.#part.placementGuard.admit(message);
    if (refusal !== undefined) return { ok: false, refusal };
    // A loss that another message has noticed may not be durable yet (H4).
    if (this.#part.standing.current.stopped !== undefined) await this.#part.ports.sql.flush();
    return work();
  }

  /** Carries out a message, unless it does not fit or its sender has seen more than this shard has (H4). */
  async #answer<T>(
    declared: Method<Envelope, unknown>,
    message: Envelope,
    work: Work<T>,
  ): Promise<Result<T>> {
    const { placementGuard, standing, ports } = this.#part;
    const refusal =
      (await placementGuard.admit(message)) ??
      standing.current.admit(message.seen, declared.sender?.(message) ?? "a caller");
    const done =
      refusal === undefined ? await this.#carryOut(declared, work) : { ok: false as const, refusal };
    // During the wait, the names may have moved, and the loss may have been noticed (M1, G3, H4).
    const late = placementGuard.refuseOutdated(message) ?? standing.current.stopped;
    const isLate = refusal === undefined && late !== undefined;
    const reply = isLate ? { ok: false as const, refusal: late } : done;
    // Whoever learns of the loss can rely on it, also after a crash (H4).
    if (standing.current.stopped !== undefined) await ports.sql.flush();
    return reply;
  }

  async #carryOut<T>({ level }: Method<Envelope, unknown>, work: Work<T>): Promise<Result<T>> {
    const { ports } = this.#part;
    const residence = this.#part.residence.current;
    if (level === "peer") return work();
    // Reads of all names of a cell or of this shard need exactly those that it serves (G8).
    const isHere = level !== "whole" || residence.isWhole;
    const reply = isHere ? await work() : { ok: false as const, refusal: residence.notHere() };
    // Answers from the rows, once they are durable.
    await ports.sql.flush();
    return reply;
  }
}

export interface Shard extends ShardCalls {}

/** What carries out the methods of a shard, after their checks. */
function handlersOf(part: ShardPart): Handlers<typeof shardMethods> {
  return {
    exchange: (message) => exchange(part, message),
    settle: (message) => settle(part, message),
    lookup: (message) => lookup(part, message),
    ping: (message) => ok(ping(part, message)),

    /** Returns what this instance has counted. It reads a limited number of rows and writes none. */
    metrics: () =>
      ok(
        withFields<ShardMetrics>(
          {
            startedAtMs: part.startedAtMs,
            sizeBytes: part.ports.sql.sizeBytes(),
            waitingWrites: part.commits.waiting,
            waitingReads: part.reads.waiting,
            holds: part.log.held.size,
            holdsOfOneCell: part.log.held.mostOfOneCell,
            ...part.counters.counts(),
            exchangeDurations: part.exchangeDurations.durations,
          },
          part.hooks.metrics,
        ),
      ),
  };
}

/** What is counted and timed of the methods of a shard. */
function measuresOf({ counters, exchangeDurations }: ShardPart): Measures<typeof shardMethods> {
  const count = (counted: Counted) =>
    counting(() => {
      counters.add(counted);
    });
  return {
    exchange: (_, serve) => {
      counters.add("exchanges");
      return exchangeDurations.time(serve);
    },
    settle: count("settles"),
    lookup: ({ keys }, serve) => {
      counters.add("lookups", keys.length);
      return serve();
    },
  };
}

/**
 * Applies the decisions and then the prepares of any number of leases, in one transaction (N1, N2). It waits
 * for no other object.
 */
async function exchange(part: ShardPart, message: Exchange): Promise<Result<ExchangeAnswer>> {
  if (part.commits.waitingOf(message.cell) >= MAX_WAITING_PARTS) {
    return refused("UNAVAILABLE", "the shard still has earlier messages of this cell to carry out", {
      retryAfterMs: 1_000,
    });
  }
  const wide = part.wide.current;
  const weigh: Weigh = {
    decision: (each) => (wide.isWide(each) ? wide.weightOf(each) : part.store.countHoldsOf(each)),
    // A wide prepare touches many rows, and sees the holds of the parts before it.
    prepare: (each) => (wide.isWide(each) ? CHUNK_ROWS : each.ops.length),
  };
  const parts = partsOf(message, weigh).map((each) =>
    part.commits.submit("exchange", () => ok(carryOut(part, each)), {
      weight: weightOf(each, weigh),
      owner: message.cell,
    }),
  );
  const carriedOut = valuesOf(await Promise.all(parts));
  if (!carriedOut.ok) return carriedOut;
  const done = carriedOut.value;
  const seen = part.log.sightings.current.of(message.cell) ?? null;
  const unchecked = done.filter(({ isUnchecked }) => isUnchecked === true).length;
  if (unchecked === done.length) return ok({ seen, point: pointOf(part), isUnchecked: true, prepares: [] });
  // A message of another instance has come in between, so nobody knows what this one has changed.
  if (unchecked > 0)
    return refused("UNAVAILABLE", "the shard has carried out only a part of the message; retry", {
      retryAfterMs: 1_000,
    });
  const prepares = done.flatMap((each) => each.prepares);
  askBlocking(part, message, prepares);
  const unapplied = [...done.flatMap((each) => each.unapplied), ...unfinishedOf(part, message)];
  return ok({ seen, point: pointOf(part), prepares, ...(unapplied.length === 0 ? {} : { unapplied }) });
}

/**
 * Asks about the holds of names that are in the way of wide holds: their leases may be over (B8). The next
 * try then finds them gone.
 */
function askBlocking(
  part: ShardPart,
  { prepares, traces }: Exchange,
  answers: ExchangeAnswer["prepares"],
): void {
  const wide = part.wide.current;
  for (const [index, request] of prepares.entries())
    if (wide.isWide(request) && answers[index]?.granted === false)
      part.inquirer.inquire(wide.blocking(request), traces).catch(() => {});
}

/** Returns the leases whose decisions take more transactions. */
function unfinishedOf(part: ShardPart, { decisions }: Exchange): string[] {
  const wide = part.wide.current;
  return decisions.flatMap((each) =>
    wide.isWide(each) && wide.isUnfinished(each.lease) ? [each.lease] : [],
  );
}

function carryOut(part: ShardPart, message: Exchange): CarriedOut {
  const { placementGuard, log, queues, sweeper } = part;
  const residence = part.residence.current;
  const wide = part.wide.current;
  const { cell, point, confirmed, decisions, prepares } = message;
  // The placement may have changed while the message waited for its transaction (M1, G3).
  if (placementGuard.refuseOutdated(message) !== undefined) return { prepares: [], unapplied: [] };
  const now = part.ports.clock.now();
  if (!log.sightings.current.note(cell, point, confirmed))
    return { isUnchecked: true, prepares: [], unapplied: [] };
  const missing = decide(part, decisions, now);
  // A decision stays unapplied until its names that may be handed over are here (G5).
  const waiting = decisions.filter((decision) => !residence.hasAllOf(decision));
  if (waiting.length > 0) residence.askForNames();
  const { incomplete } = part.standing.current;
  const full = prepares.length > 0 ? fullRefusal(part) : undefined;
  const unserved = new Set(prepares.filter(({ ops }) => !ops.every((op) => residence.serves(op))));
  const preparation = new Preparation(part, now, prepares);
  const checks: Checks<"prepare", Prepare> = {
    residence: (request) => (unserved.has(request) ? residence.notHere() : undefined),
    // Names whose claims are lost look free, and only their owners' verification may take them (H6).
    completeness: (request) =>
      wide.isWide(request) || request.isVerification === true ? undefined : incomplete,
    // Only destroys make room.
    room: ({ ops }) => (ops.some(({ kind }) => kind !== "destroy") ? full : undefined),
    holds: (request) => (wide.isWide(request) ? undefined : holdsRefusal(part, request, preparation.made)),
  };
  const answers = prepares.map((request) => {
    const refusal = refusalAt("prepare", checks, request);
    if (refusal !== undefined) return { granted: false as const, refusal };
    return wide.isWide(request) ? wide.prepare(request, now, incomplete) : preparation.carryOut(request);
  });
  for (const hold of preparation.write())
    log.noteHeld(keyHash({ type: hold.bucket_type, canonical: hold.canonical }));
  for (const [index, request] of prepares.entries())
    queues.current.prepared(request, answers[index]?.granted ?? false);
  // Refused prepares also arm the alarm: they met a hold, and its alarm may have been lost (M3).
  // Urgent work may have waited for a hold that has ended.
  if (prepares.length > 0 || sweeper.isUrgent(now)) sweeper.arm();
  return { prepares: answers, unapplied: [...waiting.map(({ lease }) => lease), ...missing] };
}

/** Why a shard without room for more names refuses a prepare. Only destroys make room. */
function fullRefusal(part: ShardPart): Refusal | undefined {
  if (!part.isFull()) return undefined;
  return refused(
    "RESOURCE_EXHAUSTED",
    `a shard has reached its limit of ${part.limits.shardBytes} bytes; release names, and retry`,
    { reason: "SHARD_FULL", retryAfterMs: 60_000 },
  ).refusal;
}

/**
 * Why a shard that holds too many names refuses a prepare. They are in memory, and no cell takes all room.
 *
 * @param made the holds that the message has made so far, all of the same cell
 */
function holdsRefusal(part: ShardPart, { cell, ops }: Prepare, made: number): Refusal | undefined {
  const { heldNames } = part.limits;
  const { held } = part.log;
  const more = made + ops.length;
  const ofCell = heldNames * CELL_PART;
  if (held.size + more <= heldNames && held.countOf(cell) + more <= ofCell) return undefined;
  return refused(
    "RESOURCE_EXHAUSTED",
    `open leases hold as many names on a shard as it may have in all (${heldNames}), or as one cell may ` +
      `hold there (${ofCell}); commit or roll back some of them, and retry`,
    { reason: "SHARD_HOLDS_FULL", retryAfterMs: 1_000 },
  ).refusal;
}

/**
 * Applies each decision to its own holds of names that this shard serves, and to nothing else. If a hold is
 * missing, the decision was applied before (C2). Returns the leases whose decisions must be sent again.
 */
function decide(part: ShardPart, decisions: readonly Decision[], now: number): string[] {
  const missing: string[] = [];
  const { isWhole } = part.residence.current;
  const wide = part.wide.current;
  const ended = new Map<string, { hold: HoldRow; as: EndedAs }>();
  for (const decision of decisions) {
    if (wide.isWide(decision)) {
      if (!wide.decide(decision, now)) missing.push(decision.lease);
      continue;
    }
    for (const hold of part.store.holdsOf(decision))
      if (decides(decision, hold) && (isWhole || part.residence.current.serves(keyOf(hold))))
        ended.set(nameOf(hold), { hold, as: endedAs(decision) });
  }
  endHolds(part.store, part.log, [...ended.values()], !isWhole, now);
  return missing;
}

/**
 * Inquires about the holds on these keys and clears those that are over (B8). Returns one state per key.
 */
async function settle(part: ShardPart, message: Settle): Promise<Result<SettleAnswer>> {
  // A name that gets here during the wait was not read (G5).
  const residence = part.residence.current;
  const wasHere = message.keys.map((key) => residence.serves(key));
  const settled = await part.inquirer.settle(message.keys, message.traces);
  const states = settled.map((state, index): HoldState => {
    const key = message.keys[index];
    return key === undefined || (wasHere[index] === true && residence.serves(key)) ? state : "unknown";
  });
  const isAwaited = (index: number): boolean => {
    const key = message.keys[index];
    return key !== undefined && part.queues.current.isAwaited(key);
  };
  return ok({
    states: states.map((state, index) => (state === "free" && isAwaited(index) ? "awaited" : state)),
    point: pointOf(part),
  });
}

async function lookup(part: ShardPart, message: LookupRequest): Promise<Result<LookupAnswer>> {
  const { position } = part.log;
  // A name that gets here during the wait has rows that were read too early (R2, G5).
  const residence = part.residence.current;
  const wasHere = message.keys.map((key) => residence.serves(key));
  const answers = await part.reader.lookup(message.keys, message.traces);
  // A claim that is not there may be lost (R2, H6).
  const isReconciling = part.standing.current.incomplete !== undefined;
  const isHere = message.keys.map((key, index) => wasHere[index] === true && residence.serves(key));
  if (isHere.includes(false)) residence.askForNames();
  return ok({
    found: answers.map(({ found }, index) =>
      isHere[index] === false ? NOT_KNOWN : isReconciling ? neverNone(found) : found,
    ),
    settled: answers.map(({ isSettled }, index) => isSettled && isHere[index] === true),
    position,
  });
}

/**
 * Called by the readiness check and by the cron. Confirms the placement, reads the disk, and sets the alarm
 * again if it was lost (M3), or if a capability has work that is due.
 */
function ping(part: ShardPart, message: PingShard): ShardWork {
  part.sweeper.arm();
  return withFields<ShardWork, [PingShard]>({}, part.hooks.pinged, message);
}

const pointOf = ({ instances }: ShardPart): HistoryPoint | null => instances.point ?? null;

const NOT_KNOWN: LookupFound = { kind: "unknown" };

const neverNone = (found: LookupFound): LookupFound => (found.kind === "none" ? { kind: "unknown" } : found);

interface Weigh {
  readonly decision: (decision: Decision) => number;
  readonly prepare: (prepare: Prepare) => number;
}

const weightOf = ({ decisions, prepares }: Exchange, weigh: Weigh): number =>
  decisions.reduce((sum, each) => sum + weigh.decision(each), 0) +
  prepares.reduce((sum, each) => sum + weigh.prepare(each), 0) +
  1;

/**
 * Cuts a large message into parts, so that the messages of other cells get their turns in between. The leases
 * of a message are independent. The decisions stay before the prepares (N2).
 */
function partsOf(message: Exchange, weigh: Weigh): Exchange[] {
  if (weightOf(message, weigh) <= CHUNK_ROWS) return [message];
  const decisions = chunksOf(message.decisions, CHUNK_ROWS, weigh.decision);
  const prepares = chunksOf(message.prepares, CHUNK_ROWS, weigh.prepare);
  return [
    ...decisions.map((part) => ({ ...message, decisions: part, prepares: [] })),
    ...prepares.map((part) => ({ ...message, decisions: [], prepares: part })),
  ];
}
