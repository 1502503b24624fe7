import { fanOut } from "../fan-out.ts";
import type { GroupCommit } from "../group-commit.ts";
import type { Limits } from "../limits.ts";
import type { AttemptId, BeginAnswer, BeginRequest, BucketKey, HoldState, Lease, Op } from "../messages.ts";
import type { Ports } from "../ports.ts";
import { ok, refused, type Conflict, type Refusal, type Result } from "../refusal.ts";
import type { ShardLinks } from "./shard-links.ts";
import { encodePayload } from "./payload.ts";
import type { Positions } from "./position.ts";
import type { LeaseRow, LedgerStore } from "./store.ts";
import { Attempt, type AttemptEnd } from "./attempt.ts";

/** The pause before an attempt is repeated because of running ones: a few message times, doubled each round. */
const FIRST_PAUSE_MS = 5;
const MAX_PAUSE_MS = 250;

interface Running {
  request: BeginRequest;
  attemptId: AttemptId | undefined;
  payload: string;
  result: Promise<Result<BeginAnswer>>;
}

/** The begins of one ledger that are under way. They live in memory only: presumed abort (rule B7). */
export class Begins {
  readonly #ports: Ports;
  readonly #limits: Limits;
  readonly #store: LedgerStore;
  readonly #links: ShardLinks;
  readonly #commits: GroupCommit;
  readonly #positions: Positions;
  readonly #cell: string;
  readonly #running = new Map<string, Running>();
  #incarnation: number;
  /** Raised by this instance: it may start attempts. */
  #ownIncarnation: Promise<void> | undefined;
  #attempts = 0;
  #outstanding: number;
  /** Begins whose work goes on, fenced ones included, and the bytes of their payloads. */
  #executing = 0;
  #executingBytes = 0;

  constructor(
    ports: Ports,
    limits: Limits,
    store: LedgerStore,
    links: ShardLinks,
    commits: GroupCommit,
    positions: Positions,
    cell: string,
  ) {
    this.#ports = ports;
    this.#limits = limits;
    this.#store = store;
    this.#links = links;
    this.#commits = commits;
    this.#positions = positions;
    this.#cell = cell;
    this.#incarnation = store.number("incarnation");
    this.#outstanding = store.countGranted();
  }

  get outstanding(): number {
    return this.#outstanding;
  }

  /** Attempts up to this incarnation are known here: of a newer one this instance must not speak (rule B8). */
  get incarnation(): number {
    return this.#incarnation;
  }

  isRunning(lease: string, attemptId?: AttemptId): boolean {
    const running = this.#running.get(lease);
    if (running === undefined || attemptId === undefined) return running !== undefined;
    return (
      running.attemptId?.incarnation === attemptId.incarnation &&
      running.attemptId.counter === attemptId.counter
    );
  }

  /** In the transaction that writes its fence: the begin ends refused (rule C7). */
  fence(lease: string): void {
    this.#running.delete(lease);
  }

  /** In the transaction that decides a granted lease. */
  decided(): void {
    this.#outstanding -= 1;
  }

  /** The caller has found no row of this lease. Synchronous up to the point where the begin is running, or refused. */
  begin(request: BeginRequest): Promise<Result<BeginAnswer>> | Refusal {
    const { lease } = request;
    const same = this.#running.get(lease);
    if (same !== undefined) {
      if (same.request.payloadHash !== request.payloadHash) return leaseIdReused();
      // A second call while the first runs gets what the first gets (rule B2).
      return same.result.then(joined);
    }
    const payload = encodePayload(request.ops);
    const bytes = new TextEncoder().encode(payload).length;
    const refusal = this.#refuseOverLimits(bytes);
    if (refusal !== undefined) return refusal;
    const { promise, resolve, reject } = Promise.withResolvers<Result<BeginAnswer>>();
    const running: Running = { request, attemptId: undefined, payload, result: promise };
    this.#running.set(lease, running);
    this.#executing += 1;
    this.#executingBytes += bytes;
    const ended = this.#run(running).finally(() => {
      this.#executing -= 1;
      this.#executingBytes -= bytes;
      if (this.#running.get(lease) === running) this.#running.delete(lease);
    });
    ended.then(resolve, reject);
    return promise;
  }

  #refuseOverLimits(bytes: number): Refusal | undefined {
    const { concurrentBegins, outstandingLeases, leaseBytes, beginBytes } = this.#limits;
    if (bytes > leaseBytes) {
      return refused(
        "RESOURCE_EXHAUSTED",
        `the batch takes more than ${leaseBytes} bytes to store; split it`,
        { reason: "LEASE_TOO_LARGE" },
      ).refusal;
    }
    if (this.#executing >= concurrentBegins || this.#executingBytes + bytes > beginBytes) {
      const detail = `the cell has as much of begins under way as it may: ${concurrentBegins}, or ${beginBytes} bytes of payload`;
      return refused("RESOURCE_EXHAUSTED", detail, { reason: "TOO_MANY_BEGINS", retryAfterMs: 1_000 })
        .refusal;
    }
    if (this.#outstanding + this.#executing >= outstandingLeases) {
      const detail = `the cell has ${outstandingLeases} leases outstanding, which is its limit; commit or roll back some`;
      return refused("RESOURCE_EXHAUSTED", detail, { reason: "TOO_MANY_LEASES", retryAfterMs: 10_000 })
        .refusal;
    }
    return undefined;
  }

  async #run(running: Running): Promise<Result<BeginAnswer>> {
    const deadlineMs = this.#ports.clock.now() + this.#limits.beginDeadlineMs;
    await this.#raiseIncarnation();
    for (let round = 0; ; round += 1) {
      if (!this.#isCurrent(running)) return rolledBack();
      const attemptId: AttemptId = { incarnation: this.#incarnation, counter: ++this.#attempts };
      running.attemptId = attemptId;
      const attempt = new Attempt(
        this.#ports.clock,
        this.#links,
        this.#limits,
        { cell: this.#cell, lease: running.request.lease, ...attemptId },
        running.request,
      );
      // The first attempt asks all shards at once; later ones in ascending order, so that contention has a winner (rule B9).
      const end = round === 0 ? await attempt.inParallel(deadlineMs) : await attempt.ascending(deadlineMs);
      if (end.kind === "granted") {
        const granted = await this.#commits.submit("grant", () => this.#grant(running, attemptId, end));
        if (granted.ok) return ok({ lease: granted.value, created: true });
        running.attemptId = undefined;
        await attempt.release();
        return granted;
      }
      // Over: from here on an inquiry about this attempt is answered "gone".
      running.attemptId = undefined;
      await attempt.release();
      if (!this.#isCurrent(running)) return rolledBack();
      if (end.kind !== "leased") return { ok: false, refusal: refusalOf(end) };
      if (this.#ports.clock.now() >= deadlineMs)
        return { ok: false, refusal: conflictRefusal(end.conflicts) };
      const states = await this.#settle(end.held);
      const temporary = !states.includes("granted") && !states.includes("unknown");
      const pauseMs = states.includes("running") ? this.#pauseMs(round) : 0;
      if (!temporary || this.#ports.clock.now() + pauseMs >= deadlineMs)
        return { ok: false, refusal: conflictRefusal(end.conflicts) };
      await new Promise<void>((resume) => this.#ports.clock.after(pauseMs, resume));
    }
  }

  /**
   * The grant, in one turn: leaves `running` and writes the row (rule B5). Refused when the begin was fenced meanwhile, or the cell frozen or
   * the key revoked: whoever was told so must not see a lease granted afterwards.
   */
  #grant(running: Running, attemptId: AttemptId, end: AttemptEnd & { kind: "granted" }): Result<Lease> {
    if (!this.#isCurrent(running)) return rolledBack();
    const { request, payload } = running;
    const refusal = this.grantRefusal(request);
    if (refusal !== undefined) return { ok: false, refusal };
    const now = this.#ports.clock.now();
    const position = this.#positions.next(now);
    const count = (kind: Op["kind"]): number => request.ops.filter((op) => op.kind === kind).length;
    const row: LeaseRow = {
      lease: request.lease,
      decided: 0,
      position,
      created_position: position,
      state: "GRANTED",
      fence: 0,
      incarnation: attemptId.incarnation,
      counter: attemptId.counter,
      epochs: JSON.stringify(Object.fromEntries(end.epochs)),
      payload,
      payload_hash: request.payloadHash,
      creates: count("create"),
      destroys: count("destroy"),
      replaces: count("replace"),
      missing: end.missing,
      decided_by: null,
      reason: null,
    };
    this.#running.delete(request.lease);
    this.#store.insert(row);
    this.#outstanding += 1;
    // Without the ops: whoever asked for them has them.
    return ok(this.#store.leaseOf({ ...row, payload: null }, now));
  }

  /** Whether the caller's key and the cell's state allow a grant, as of this turn. */
  grantRefusal({ caller }: BeginRequest): Refusal | undefined {
    if (caller.role === "cell" && this.#store.isRevoked(caller.keyId)) return keyRevoked();
    if (this.#store.cellState() === "ACTIVE") return undefined;
    return refused("FAILED_PRECONDITION", "the cell is frozen: it cannot begin leases", {
      reason: "CELL_FROZEN",
    }).refusal;
  }

  #isCurrent(running: Running): boolean {
    return this.#running.get(running.request.lease) === running;
  }

  /** A row that every instance raises before its first attempt, so that attempts are never reused (rule B3). */
  #raiseIncarnation(): Promise<void> {
    this.#ownIncarnation ??= this.#raise();
    return this.#ownIncarnation;
  }

  async #raise(): Promise<void> {
    const raised = await this.#commits.submit("raise_incarnation", () => {
      const next = this.#store.number("incarnation") + 1;
      this.#store.setNumber("incarnation", next);
      return next;
    });
    // Only what is durable is its own: while the row is on its way another instance may be given the same number.
    this.#incarnation = raised;
  }

  async #settle(held: ReadonlyMap<number, BucketKey[]>): Promise<HoldState[]> {
    const answers = await fanOut([...held], this.#limits.fanOut, ([shard, keys]) =>
      this.#links.settle(shard, keys),
    );
    return answers.flatMap((answer): HoldState[] =>
      answer.kind === "ok" ? answer.value.states : ["unknown"],
    );
  }

  #pauseMs(round: number): number {
    return Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** round) * (0.5 + this.#ports.randomness.fraction());
  }
}

/** What the first caller gets, except for what concerns its key: the one who joined may have another. */
function joined(result: Result<BeginAnswer>): Result<BeginAnswer> {
  if (result.ok) return ok({ ...result.value, created: false });
  if (result.refusal.reason !== "KEY_REVOKED") return result;
  return refused(
    "UNAVAILABLE",
    "the call that this one joined has ended without an outcome; repeat it with the same lease id",
    {
      retryAfterMs: 1_000,
    },
  );
}

export const leaseIdReused = (): Refusal =>
  refused("FAILED_PRECONDITION", "this lease id was used for another batch; a new batch needs a new id", {
    reason: "LEASE_ID_REUSED",
  }).refusal;

export const rolledBack = (): { ok: false; refusal: Refusal } =>
  refused("FAILED_PRECONDITION", "the lease was rolled back; a new try needs a new id", {
    reason: "LEASE_ROLLED_BACK",
  });

export const keyRevoked = (): Refusal =>
  refused("UNAUTHENTICATED", "the key was revoked", { reason: "KEY_REVOKED" }).refusal;

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

/** The worst kind gives the code: what never passes first. */
function conflictRefusal(conflicts: readonly Conflict[]): Refusal {
  const listed = conflicts.toSorted((a, b) => a.list.localeCompare(b.list) || a.index - b.index);
  const taken = conflicts.filter(({ kind }) => kind === "taken").length;
  const leased = conflicts.filter(({ kind }) => kind === "leased").length;
  const others = conflicts.length - taken - leased;
  const summary = [
    ...(taken > 0 ? [`${names(taken)} taken`] : []),
    ...(others > 0 ? [`${names(others)} not as the batch expects`] : []),
    ...(leased > 0 ? [`${names(leased)} leased at the moment`] : []),
  ].join(", ");
  if (taken > 0) return refused("ALREADY_EXISTS", summary, { conflicts: listed }).refusal;
  if (others > 0) return refused("FAILED_PRECONDITION", summary, { conflicts: listed }).refusal;
  const retryAfterMs = Math.max(...conflicts.map((conflict) => conflict.retryAfterMs ?? 0));
  return refused("ABORTED", `${summary}; try again`, { conflicts: listed, retryAfterMs }).refusal;
}

const names = (count: number): string => (count === 1 ? "1 name is" : `${count} names are`);
