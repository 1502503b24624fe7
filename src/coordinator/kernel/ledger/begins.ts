import { fanOut } from "../fan-out.ts";
import type { GroupCommit } from "../group-commit.ts";
import { idleMsOf } from "./idle-time.ts";
import type { Limits } from "../../../common/limits.ts";
import type {
  AttemptId,
  BeginAnswer,
  BeginRequest,
  HeldKey,
  HoldState,
  Op,
  PlacedLease,
} from "../messages.ts";
import { shardsOf } from "../placement.ts";
import { placementMismatch } from "../placement-guard.ts";
import type { Ports } from "../ports.ts";
import { agesIn } from "../metrics/histogram.ts";
import type { LedgerMetrics } from "../metrics/messages.ts";
import { ok, refused, type Conflict, type Refusal, type Result } from "../refusal.ts";
import type { ShardLinks } from "./shard-links.ts";
import type { Instances } from "../instances.ts";
import { encodeExecutions } from "./executions.ts";
import { encodePayload } from "./payload.ts";
import type { Positions } from "./position.ts";
import { plainLease, type LedgerStore } from "./store.ts";
import type { LeaseRow } from "./lease-table.ts";
import type { KindBegin, LeaseKind } from "./lease-kind.ts";
import { Attempt, type AttemptEnd } from "./attempt.ts";
import { CountByCell } from "./count-by-cell.ts";
import { guarded, type HookLists } from "../half.ts";
import { refusalAt, type Checks } from "../order.ts";
import type { LedgerBegin, LedgerHooks } from "./hooks.ts";
import type { OldOutcomes } from "./old-outcomes.ts";
import type { Slot } from "../slot.ts";
import type { Awaited, Waiter, WaitingBegin } from "./waiter.ts";

/**
 * The pause before the next attempt when running begins are in the way (B9). The first pause is a few message
 * times, and it doubles each round.
 */
const FIRST_PAUSE_MS = 5;
const MAX_PAUSE_MS = 250;
/** How long a begin waits for names that are handed over (G5). Its caller would come again after that. */
const HAND_OVER_MS = 1_000;
/**
 * What SQLite may need for a change of one row beyond its text: another overflow page, entries of indexes,
 * and half-filled pages.
 */
const ROW_BYTES = 8_192;
/** The stale leases that a message for metrics counts. */
const MOST_AGES = 1_000;
/** The size of a fence without its reason. */
const FENCE_BYTES = 512;
/** The size of an audit entry about a lease or the cell without its reason. */
const AUDIT_BYTES = 1_024;

interface Running extends WaitingBegin {
  request: LedgerBegin;
  kind: KindBegin | undefined;
  attemptId: AttemptId | undefined;
  payload: string;
  /** The calls that wait for the result. */
  calls: Set<string | undefined>;
  result: Promise<Result<BeginAnswer>>;
}

/** What a shard found out about a name that is in the way. */
interface Settled extends Awaited {
  state: HoldState;
  /** Whether it is a hold of something else, for whose end no begin waits. */
  isOfKind: boolean;
}

/** A begin that is about to start, and the bytes of its payload. */
interface Starting {
  kind: KindBegin | undefined;
  bytes: number;
}

interface Needs {
  readonly cell: string;
  readonly ports: Ports;
  readonly limits: Limits;
  readonly store: LedgerStore;
  readonly links: ShardLinks;
  readonly commits: GroupCommit;
  readonly positions: Positions;
  readonly instances: Instances;
  readonly waiter: Slot<Waiter>;
  readonly kinds: Slot<LeaseKind>;
  readonly hooks: HookLists<LedgerHooks>;
  readonly oldOutcomes: OldOutcomes;
}

/** The running begins of one ledger. They are in memory only (presumed abort, B7). */
export class Begins {
  readonly #part: Needs;
  readonly #running = new Map<string, Running>();
  #attempts = 0;
  #outstanding: number;
  /** The begins that still work, including fenced ones, and the bytes of their payloads. */
  readonly #executing = new CountByCell();
  #executingBytes = 0;
  /** Calls that were given up before they arrived: the last ones, at most `concurrentBegins`. */
  readonly #givenUp = new Set<string>();
  /** The calls that wait for the result of another call's begin. */
  readonly #joined = new CountByCell();

  constructor(part: Needs) {
    this.#part = part;
    this.#outstanding = part.store.count(0);
  }

  readonly #grantChecks: Checks<"grant", LedgerBegin> = {
    caller: (request) =>
      this.#part.kinds.current.of(request)?.isForeign === true
        ? undefined
        : guarded(this.#part.hooks.guardCaller, request.caller),
    capabilities: (request) => guarded(this.#part.hooks.guardGrant, request),
  };

  readonly #limits: Checks<"limits", Starting> = {
    leaseBytes: ({ bytes }) => {
      const { leaseBytes } = this.#part.limits;
      if (bytes <= leaseBytes) return undefined;
      const detail = `the batch needs more than ${leaseBytes} bytes of storage; split it into several leases`;
      return refused("RESOURCE_EXHAUSTED", detail, { reason: "LEASE_TOO_LARGE" }).refusal;
    },
    ledgerBytes: ({ bytes }) => {
      const { ledgerBytes } = this.#part.limits;
      if (this.neededBytes(bytes) <= ledgerBytes) return undefined;
      const detail =
        `the cell's ledger has reached its limit of ${ledgerBytes} bytes, with the space that its ` +
        "open leases need to be decided; decide some, or retry when decided leases are forgotten";
      return refused("RESOURCE_EXHAUSTED", detail, { reason: "LEDGER_FULL", retryAfterMs: 60_000 }).refusal;
    },
    runningBegins: ({ kind, bytes }) => {
      if (kind !== undefined)
        return this.#executing.of(kind.asker) < kind.mostAtOnce ? undefined : kind.tooMany();
      const { concurrentBegins, beginBytes } = this.#part.limits;
      const begins = this.#executing.of(this.#part.cell);
      if (begins < concurrentBegins && this.#executingBytes + bytes <= beginBytes) return undefined;
      const detail =
        `the cell has too many running begins (limit: ${concurrentBegins} begins and ${beginBytes} bytes ` +
        "of payload); retry when some have ended";
      return refused("RESOURCE_EXHAUSTED", detail, { reason: "TOO_MANY_BEGINS", retryAfterMs: 1_000 })
        .refusal;
    },
    outstandingLeases: ({ kind }) => {
      const { outstandingLeases } = this.#part.limits;
      const leases = this.#outstanding + this.#executing.of(this.#part.cell);
      if (kind !== undefined || leases < outstandingLeases) return undefined;
      // Most ledgers are far from the limit, so that their leases of other kinds need not be counted.
      if (leases - this.#part.kinds.current.countOpen() < outstandingLeases) return undefined;
      const detail =
        `the cell has reached its limit of ${outstandingLeases} outstanding leases; ` +
        "commit or roll back some of them";
      return refused("RESOURCE_EXHAUSTED", detail, { reason: "TOO_MANY_LEASES", retryAfterMs: 10_000 })
        .refusal;
    },
  };

  get outstanding(): number {
    return this.#outstanding;
  }

  /** Leases by their age. It reads the oldest `MOST_AGES` rows at most. */
  counts(
    nowMs: number,
  ): Pick<
    LedgerMetrics,
    "outstandingLeases" | "staleLeases" | "oldestLeaseMs" | "leaseAges" | "runningBegins"
  > {
    const leases = this.#part.store.granted(0, MOST_AGES).map((row) => this.#part.store.leaseOf(row, nowMs));
    const agesMs = leases.map(({ ageMs }) => ageMs);
    return {
      outstandingLeases: this.#outstanding,
      staleLeases: leases.filter((lease) => idleMsOf(lease) >= this.#part.limits.staleS * 1_000).length,
      oldestLeaseMs: agesMs[0] ?? 0,
      leaseAges: agesIn(agesMs),
      runningBegins: this.#executing.of(this.#part.cell),
    };
  }

  isRunning(lease: string, attemptId?: AttemptId): boolean {
    const running = this.#running.get(lease);
    if (running === undefined || attemptId === undefined) return running !== undefined;
    return (
      running.attemptId?.incarnation === attemptId.incarnation &&
      running.attemptId.counter === attemptId.counter
    );
  }

  /**
   * Must be called in the transaction that writes the fence of a lease. The running begin ends with a refusal
   * (C7).
   */
  fence(lease: string): void {
    this.#running.get(lease)?.waitTime?.end();
    this.#running.delete(lease);
  }

  /**
   * Ends a begin once nobody waits for its result, because its lease would only be in the way of others. If a
   * call comes again under its UUID, that is another begin. This message may arrive before the begin.
   */
  giveUp(lease: string, call: string): void {
    const running = this.#running.get(lease);
    if (running?.calls.delete(call) !== true) return this.#noteGivenUp(call);
    if (running.calls.size > 0) return;
    running.waitTime?.end();
    this.#running.delete(lease);
  }

  #noteGivenUp(call: string): void {
    this.#givenUp.add(call);
    const [oldest] = this.#givenUp;
    if (oldest !== undefined && this.#givenUp.size > this.#part.limits.concurrentBegins)
      this.#givenUp.delete(oldest);
  }

  /** Ends the waits of begins that can't be granted any more: a key or the cell's state has changed. */
  endUnfitWaits(): void {
    for (const { request, waitTime } of this.#running.values())
      if (waitTime !== undefined && this.grantRefusal(request) !== undefined) waitTime.end();
  }

  /** Must be called in the transaction that decides a granted lease. */
  decided(): void {
    this.#outstanding -= 1;
  }

  /** Must be called in the transaction that writes a lease which was rebuilt from its holds (H7). */
  rebuilt(): void {
    this.#outstanding += 1;
  }

  /**
   * Starts a begin, after the caller has found no row of this lease. Until the begin is running or refused,
   * nothing waits.
   */
  begin(request: LedgerBegin): Promise<Result<BeginAnswer>> | Refusal {
    const { lease, call } = request;
    const kind = this.#part.kinds.current.of(request);
    // What a source asks for uses up none of the limits of this cell (Y2).
    const asker = kind?.asker ?? this.#part.cell;
    if (call !== undefined && this.#givenUp.delete(call)) return givenUp();
    const same = this.#running.get(lease);
    if (same !== undefined) {
      if (same.request.payloadHash !== request.payloadHash) return leaseIdReused();
      if (this.#joined.of(asker) >= (kind?.mostAtOnce ?? this.#part.limits.concurrentBegins))
        return tooManyJoined();
      // A second call that arrives while the first runs gets the same result (B2).
      same.calls.add(request.call);
      return same.result.then(joined).finally(this.#joined.add(asker));
    }
    const payload = encodePayload(request.ops);
    const bytes = new TextEncoder().encode(payload).length;
    const refusal = refusalAt("limits", this.#limits, { kind, bytes });
    if (refusal !== undefined) return refusal;
    const { promise, resolve, reject } = Promise.withResolvers<Result<BeginAnswer>>();
    const waitTime = this.#part.waiter.current.timeFor(request);
    const calls = new Set([request.call]);
    const running: Running = {
      request,
      kind,
      attemptId: undefined,
      payload,
      bytes,
      waitTime,
      calls,
      result: promise,
    };
    this.#running.set(lease, running);
    const stopCounting = this.#executing.add(asker);
    this.#executingBytes += bytes;
    const ended = this.#run(running).finally(() => {
      stopCounting();
      this.#executingBytes -= bytes;
      waitTime?.end();
      if (this.#running.get(lease) === running) this.#running.delete(lease);
    });
    ended.then(resolve, reject);
    return promise;
  }

  /**
   * Returns the size that the database may reach (S3) if one more begin, whose payload has `bytes`, and all
   * running begins are granted, and if then every lease is decided and every fence and every audit entry is
   * written, each with the longest reason. A grant adds a row, and a decision changes one. Fences and entries
   * that were written before are in the database's size and are counted once more here, so the result may be
   * too large.
   *
   * Two things are left to the gap between `ledgerBytes` and the platform's 10 GB: the small tables, with the
   * status of the cell (U1), and one more row of `leaseBytes`, because SQLite writes a changed row before it
   * frees the pages of the old one.
   */
  neededBytes(bytes = 0): number {
    const { auditEntries, fences, reasonBytes } = this.#part.limits;
    const grants = this.#executing.total + 1;
    const decisions = grants + this.#outstanding;
    return (
      this.#part.ports.sql.sizeBytes() +
      this.#executingBytes +
      bytes +
      grants * ROW_BYTES +
      // A lease may have a reason of its last renewal, too.
      decisions * (ROW_BYTES + 2 * reasonBytes) +
      fences * (FENCE_BYTES + reasonBytes) +
      auditEntries * (AUDIT_BYTES + reasonBytes)
    );
  }

  async #run(running: Running): Promise<Result<BeginAnswer>> {
    const startedAtMs = this.#part.ports.clock.now();
    // The time in queues doesn't count.
    let deadlineMs = startedAtMs + this.#part.limits.beginDeadlineMs;
    let offer: Awaited | undefined;
    let hasHadOffer = false;
    /** Since when its names are handed over, without a wait in a queue meanwhile. */
    let movingSinceMs: number | undefined;
    // If the clock went back during the begin, nothing tells how much time has passed, so the begin ends.
    const isOver = (nowMs: number): boolean => nowMs >= deadlineMs || nowMs < startedAtMs;
    // The first transaction of an instance raises its incarnation, which must be durable before the instance
    // starts an attempt, so that attempts are never reused (B3).
    if (!this.#part.instances.isRaised) {
      const raised = await this.#part.commits.submit("raise_incarnation", () => {});
      if (!raised.ok) return raised;
    }
    for (let round = 0; ; round += 1) {
      if (!this.#isCurrent(running)) return rolledBack();
      this.#place(running);
      const attemptId: AttemptId = {
        incarnation: this.#part.instances.incarnation,
        counter: ++this.#attempts,
      };
      running.attemptId = attemptId;
      const attempt = new Attempt(
        this.#part.ports.clock,
        this.#part.links,
        this.#part.limits,
        { cell: this.#part.cell, lease: running.request.lease, ...attemptId },
        running.request,
        running.kind,
      );
      // The first attempt asks all shards at once. Later attempts ask them in ascending order, so that
      // contention has a winner (B9).
      const end = round === 0 ? await attempt.inParallel(deadlineMs) : await attempt.ascending(deadlineMs);
      if (end.kind === "granted") {
        const granted = await this.#part.commits.submit("grant", () => this.#grant(running, attemptId, end));
        if (granted.ok) return ok({ lease: granted.value, created: true });
        running.attemptId = undefined;
        await attempt.release();
        if (this.#isOutdated(running) && !isOver(this.#part.ports.clock.now())) continue;
        return granted;
      }
      // The attempt is over. From here on, an inquiry about it is answered `gone`.
      running.attemptId = undefined;
      // A shard that has carried out the prepare has ended the offer itself.
      if (offer !== undefined && !attempt.hasAnswer(offer.shard))
        this.#part.waiter.current.leave(running.request, offer);
      offer = undefined;
      await attempt.release();
      if (!this.#isCurrent(running)) return rolledBack();
      // Shards refuse the attempt if its names may have other shards by now (G3).
      if (this.#isOutdated(running) && !isOver(this.#part.ports.clock.now())) continue;
      if (end.kind === "refused" && end.refusal.isMoving === true) {
        const nowMs = this.#part.ports.clock.now();
        movingSinceMs ??= nowMs;
        const resumesAtMs = nowMs + this.#pauseMs(round);
        if (!isOver(resumesAtMs) && resumesAtMs < movingSinceMs + HAND_OVER_MS) {
          await this.#until(resumesAtMs);
          continue;
        }
      }
      if (end.kind !== "leased") return { ok: false, refusal: refusalOf(end) };
      movingSinceMs = undefined;
      if (isOver(this.#part.ports.clock.now())) return { ok: false, refusal: conflictRefusal(end.conflicts) };
      const settled = await this.#settle(end.held, running.request);
      const states = new Set(settled.map(({ state }) => state));
      // After an offer, other begins that wait are in the way like those that run. Otherwise, begins of
      // several names could get offers and be in each other's way for ever (B11).
      const lasting = settled.find(
        ({ state }) => state === "granted" || state === "unknown" || (state === "awaited" && !hasHadOffer),
      );
      // A hold that is gone may belong to a decided lease. Another attempt keeps it out of the refusal.
      const mayChange = states.has("free") || lasting === undefined;
      const isBusy = states.has("running") || states.has("awaited");
      const pauseMs = isBusy ? this.#pauseMs(round) : 0;
      const now = this.#part.ports.clock.now();
      if (lasting !== undefined && !mayChange && !isOver(now)) {
        if (lasting.isOfKind) return { ok: false, refusal: conflictRefusal(end.conflicts) };
        const waited = await this.#part.waiter.current.wait(running, lasting);
        deadlineMs += Math.max(0, this.#part.ports.clock.now() - now);
        // It queues again on the shard that has the name now (G3).
        if (waited === "ended" && this.#isOutdated(running) && running.waitTime?.isOver === false) continue;
        if (waited !== "offered") {
          const refusal = this.#isCurrent(running)
            ? this.grantRefusal(running.request)
            : rolledBack().refusal;
          return { ok: false, refusal: refusal ?? conflictRefusal(end.conflicts) };
        }
        offer = lasting;
        hasHadOffer = true;
        continue;
      }
      if (!mayChange || isOver(now) || isOver(now + pauseMs))
        return { ok: false, refusal: conflictRefusal(end.conflicts) };
      await this.#until(now + pauseMs);
    }
  }

  /**
   * Grants the lease in one turn: the begin stops being `running` and the row is written (B5). The grant is
   * refused if, since the begin started, the begin was fenced, the cell was frozen or drained, or the key was
   * revoked. Once a freeze, drain or revocation has been acknowledged, no later begin may be granted.
   */
  #grant(running: Running, attemptId: AttemptId, end: AttemptEnd & { kind: "granted" }): Result<PlacedLease> {
    if (!this.#isCurrent(running)) return rolledBack();
    const { request, kind, payload } = running;
    const { placement } = this.#part.links;
    if (this.#isOutdated(running))
      return { ok: false, refusal: placementMismatch(placement, request.placement) };
    const refusal = this.grantRefusal(request);
    if (refusal !== undefined) return { ok: false, refusal };
    const now = this.#part.ports.clock.now();
    this.#part.store.times.note(now, this.#part.positions.last);
    const position = this.#part.positions.next(now);
    const count = (each: Op["kind"]): number => request.ops.filter((op) => op.kind === each).length;
    const row: LeaseRow = {
      lease: request.lease,
      decided: 0,
      position,
      created_position: position,
      created_at_ms: now,
      decided_at_ms: null,
      state: "GRANTED",
      fence: 0,
      incarnation: attemptId.incarnation,
      counter: attemptId.counter,
      epochs: encodeExecutions(this.#part.links.executions(end.epochs)),
      shards: shardsOf(placement),
      payload,
      payload_hash: request.payloadHash,
      creates: count("create"),
      destroys: count("destroy"),
      replaces: count("replace"),
      missing: end.missing,
      decided_by: null,
      decided_by_key: null,
      reason: null,
      ...plainLease,
      transfer: kind?.stored ?? null,
    };
    this.#running.delete(request.lease);
    this.#part.store.insert(row, this.#part.oldOutcomes.take());
    kind?.granted(request, row, end.answers);
    for (const granted of this.#part.hooks.granted) granted(request, row);
    this.#outstanding += 1;
    // The answer to a begin has no ops, because the caller has just sent them.
    return ok(this.#part.store.placedLeaseOf({ ...row, payload: null }, now));
  }

  /**
   * Returns why a grant is refused as of this turn: the caller's key is revoked, the state of the cell does
   * not allow it (X1), or the entry of an operator's begin has no room (O3).
   */
  grantRefusal(request: LedgerBegin): Refusal | undefined {
    return refusalAt("grant", this.#grantChecks, request);
  }

  /** Whether the names of a begin may have other shards by now (G3). */
  #isOutdated({ request }: Running): boolean {
    return request.placement !== this.#part.links.placement;
  }

  /** Finds the shards of a begin again, if there are more of them by now. */
  #place(running: Running): void {
    if (!this.#isOutdated(running)) return;
    const { placement } = this.#part.links;
    const ops = running.request.ops.map((op) => ({ ...op, shard: this.#part.links.shardNow(op) }));
    running.request = { ...running.request, placement, ops };
    running.payload = encodePayload(ops);
  }

  #isCurrent(running: Running): boolean {
    return this.#running.get(running.request.lease) === running;
  }

  async #settle(
    held: ReadonlyMap<number, HeldKey[]>,
    { placement, traces }: BeginRequest,
  ): Promise<Settled[]> {
    const settled = await fanOut([...held], this.#part.limits.fanOut, async ([shard, keys]) => {
      const answer = await this.#part.links.settle(shard, placement, keys, traces);
      const states = answer.kind === "ok" ? answer.value.states : [];
      return keys.map((key, index): Settled => ({
        shard,
        key: { type: key.type, canonical: key.canonical },
        state: states[index] ?? "unknown",
        isOfKind: this.#part.kinds.current.holds(key),
      }));
    });
    return settled.flat();
  }

  #until(atMs: number): Promise<void> {
    return new Promise((resume) => this.#part.ports.clock.after(atMs - this.#part.ports.clock.now(), resume));
  }

  #pauseMs(round: number): number {
    return (
      Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** round) * (0.5 + this.#part.ports.randomness.fraction())
    );
  }
}

/**
 * Returns the first caller's result to a caller that joined it. The refusal of a revoked key is not passed
 * on, because the second caller may have another key.
 */
function joined(result: Result<BeginAnswer>): Result<BeginAnswer> {
  if (result.ok) return ok({ ...result.value, created: false });
  const { reason } = result.refusal;
  if (reason !== "KEY_REVOKED" && reason !== "KEY_EXPIRED") return result;
  return refused(
    "UNAVAILABLE",
    "another call with the same lease id ended without an outcome; repeat this call with the same lease id",
    { retryAfterMs: 1_000 },
  );
}

/** The begin goes on, so its outcome is unknown to this caller. */
const tooManyJoined = (): Refusal =>
  refused(
    "UNAVAILABLE",
    "too many calls wait for begins with the same lease ids; repeat this call with the same lease id",
    { retryAfterMs: 1_000 },
  ).refusal;

/** It says nothing about the lease: another call under its UUID may be running, or may come. */
const givenUp = (): Refusal =>
  refused("UNAVAILABLE", "the caller closed its connection before the call arrived; repeat the call", {
    retryAfterMs: 1_000,
  }).refusal;

export const leaseIdReused = (): Refusal =>
  refused(
    "FAILED_PRECONDITION",
    "this lease id was used for another batch; begin the new batch with a new lease id",
    { reason: "LEASE_ID_REUSED" },
  ).refusal;

export const rolledBack = (): { ok: false; refusal: Refusal } =>
  refused("FAILED_PRECONDITION", "the lease was rolled back; begin again with a new lease id", {
    reason: "LEASE_ROLLED_BACK",
  });

function refusalOf(end: Exclude<AttemptEnd, { kind: "granted" | "leased" }>): Refusal {
  if (end.kind === "conflicts") return conflictRefusal(end.conflicts);
  if (end.kind === "refused") return end.refusal;
  return end.timedOut
    ? refused("DEADLINE_EXCEEDED", "a shard did not answer in time; repeat the call with the same lease id")
        .refusal
    : refused("UNAVAILABLE", "a shard cannot be reached; repeat the call with the same lease id", {
        retryAfterMs: 1_000,
      }).refusal;
}

/** The most lasting kind of conflict determines the code. */
function conflictRefusal(conflicts: readonly Conflict[]): Refusal {
  const listed = conflicts.toSorted((a, b) => a.list.localeCompare(b.list) || a.index - b.index);
  const taken = conflicts.filter(({ kind }) => kind === "taken").length;
  const leased = conflicts.filter(({ kind }) => kind === "leased").length;
  const others = conflicts.length - taken - leased;
  const summary = [
    ...(taken > 0 ? [`${names(taken)} taken`] : []),
    ...(others > 0 ? [`${names(others)} not in the state that the batch expects`] : []),
    ...(leased > 0 ? [`${names(leased)} currently leased`] : []),
  ].join(", ");
  if (taken > 0) return refused("ALREADY_EXISTS", summary, { conflicts: listed }).refusal;
  if (others > 0) return refused("FAILED_PRECONDITION", summary, { conflicts: listed }).refusal;
  const retryAfterMs = Math.max(...conflicts.map((conflict) => conflict.retryAfterMs ?? 0));
  return refused("ABORTED", `${summary}; retry later`, { conflicts: listed, retryAfterMs }).refusal;
}

const names = (count: number): string => (count === 1 ? "1 name is" : `${count} names are`);
