import type { Limits } from "../../../common/limits.ts";
import type {
  BeginAnswer,
  BeginRequest,
  CellCall,
  CellStatus,
  Envelope,
  Inquiry,
  InquiryAnswer,
  Maintain,
  MaintainAnswer,
  Told,
} from "../messages.ts";
import type { Tables } from "../tables.ts";
import { watch } from "../metrics/counts.ts";
import type { LedgerMetrics } from "../metrics/messages.ts";
import type { Ports } from "../ports.ts";
import { ok, refused, type Refusal, type Result } from "../refusal.ts";
import type { Handlers, Method } from "../method.ts";
import { ledgerMethods, type LedgerCalls, type Peers } from "../methods.ts";
import { defineServed, type Checked, type Measures, type Work } from "../serve.ts";
import { leaseIdReused, rolledBack } from "./begins.ts";
import { answerQuestion } from "./inquiry.ts";
import { durable } from "../durable.ts";
import type { Pruned } from "./prune.ts";
import type { LeaseRow } from "./lease-table.ts";
import { makePart, type LedgerPart } from "./part.ts";
import { refusalAt, type Checks } from "../order.ts";
import { addHalves, guarded, withFields, type Halves } from "../half.ts";
import type { LedgerHooks } from "./hooks.ts";

/** The pause before work that one alarm did not finish is continued. */
const TIDY_AGAIN_MS = 1_000;

/**
 * Stores one cell's leases and coordinates its begins, commits and rollbacks. Every answer waits until the
 * rows that it was read from are durable, because a crash could still undo them (B5, C2).
 */
// The constructor defines the methods.
// oxlint-disable-next-line typescript/no-unsafe-declaration-merging
export class Ledger {
  readonly #part: LedgerPart;

  /** @param halves - what capabilities add, by their names */
  constructor(
    cell: string,
    platform: Ports,
    limits: Limits,
    peers: Pick<Peers, "shard" | "directory">,
    halves: Halves<LedgerPart, LedgerHooks>,
  ) {
    const part = makePart(cell, platform, limits, peers, halves);
    this.#part = part;
    const measures: Measures<typeof ledgerMethods> = {
      begin: (_, serve) => watch(part.beginDurations.time(serve), (reply) => part.counters.begun(reply)),
      decide: (_, serve) =>
        watch(part.decisionDurations.time(serve), (reply) => part.counters.answeredDecision(reply)),
    };
    // No method of a ledger admits messages itself.
    const checked: Checked = (declared, message, work) =>
      declared.level === "always" ? this.#answerAlways(message, work) : this.#answer(declared, message, work);
    defineServed(this, ledgerMethods, handlersOf(part), measures, checked);
    addHalves(this, part, halves, checked);
  }

  get tables(): Tables {
    return this.#part.tables;
  }

  /** What an answer tells besides its content. To be called when the answer is complete. */
  told(): Told {
    return withFields<Told>({}, this.#part.hooks.tell);
  }

  async alarm(): Promise<void> {
    await tidy(this.#part);
  }

  async #answerAlways<T>(message: Envelope, work: Work<T>): Promise<Result<T>> {
    const refusal = await this.#part.placementGuard.admit(message);
    if (refusal !== undefined) return { ok: false, refusal };
    // A loss that another message has noticed may not be durable yet (H4).
    if (this.#part.standing.current.stopped !== undefined) await this.#part.ports.sql.flush();
    return work();
  }

  /** Carries out a message, unless it does not fit or its sender has seen more than this ledger has (H4). */
  async #answer<T>(
    declared: Method<Envelope, unknown>,
    message: Envelope,
    work: Work<T>,
  ): Promise<Result<T>> {
    const { placementGuard, standing, hooks, cell } = this.#part;
    const isCall = declared.level === "call";
    const isOfOwnCell = isCall && declared.isOfOwnCell?.(message) !== false;
    const noticedBy = isCall ? `cell ${cell}` : (declared.sender?.(message) ?? "a caller");
    const refusal =
      (await placementGuard.admit(message)) ??
      refusalAt("message", this.#checks, { message, isOfOwnCell, noticedBy });
    if (refusal === undefined) for (const learn of hooks.learn) learn(message);
    const reply = refusal === undefined ? await work() : { ok: false as const, refusal };
    // The loss may have been noticed during the wait (M1, H4).
    const { stopped } = standing.current;
    if (stopped === undefined) return reply;
    // Whoever learns of the loss can rely on it, also after a crash (H4).
    return durable(this.#part, { ok: false, refusal: refusal ?? stopped });
  }

  /**
   * A call is refused before its point is compared, so that neither a revoked key nor an impossible point can
   * make the ledger refuse everything (H4, L7).
   */
  readonly #checks: Checks<"message", Arrived> = {
    caller: ({ message, isOfOwnCell }) =>
      isOfOwnCell ? guarded(this.#part.hooks.guardCaller, (message as CellCall).caller) : undefined,
    call: ({ message, isOfOwnCell }) =>
      isOfOwnCell ? guarded(this.#part.hooks.guardCall, message as CellCall) : undefined,
    standing: ({ message, noticedBy }) => this.#part.standing.current.admit(message.seen, noticedBy),
  };
}

/** A message, and who notices by it that this ledger has lost something. */
interface Arrived {
  message: Envelope;
  /** Whether it is a call with a key of the ledger's own cell. */
  isOfOwnCell: boolean;
  noticedBy: string;
}

export interface Ledger extends LedgerCalls {}

/** What carries out the methods of a ledger, after their checks. */
function handlersOf(part: LedgerPart): Handlers<typeof ledgerMethods> {
  /** Answers when the rows are durable that the answer was read from (C2). */
  const durably =
    <Message, T>(work: (message: Message) => Promise<Result<T>>) =>
    async (message: Message): Promise<Result<T>> =>
      durable(part, await work(message));
  return {
    begin: (request) => beginLease(part, request),
    /** Nobody waits for the answer to a begin any more (B11). */
    giveUp: ({ lease, call }) => {
      part.begins.giveUp(lease, call);
      return ok(null);
    },
    decide: (request) => part.decisions.decide(request),
    getLease: durably(async ({ lease }) => {
      const row = part.store.findWhole(lease);
      if (row === undefined || row.transfer !== null)
        return refused("NOT_FOUND", "this cell has no lease with this id");
      return ok(part.store.leaseOf(row, part.ports.clock.now()));
    }),
    inquire: (message) => inquire(part, message),
    maintain: (message) => maintain(part, message),
    status: durably(async () =>
      ok(
        withFields<CellStatus>(
          {
            cell: part.cell,
            state: part.store.cellState(),
            stateVersion: part.store.number("cell_state_version"),
            stateSetAtMs: part.store.number("cell_state_set_at_ms"),
            outstandingLeases: part.begins.outstanding,
            unappliedDecisions: part.deliveries.unapplied,
            storedBytes: part.ports.sql.sizeBytes(),
            position: part.positions.last,
          },
          part.hooks.status,
        ),
      ),
    ),
    /**
     * Returns what this instance has counted. It reads the oldest 1,000 leases at most, and writes nothing.
     */
    metrics: () =>
      ok(
        withFields<LedgerMetrics>(
          {
            startedAtMs: part.startedAtMs,
            sizeBytes: part.ports.sql.sizeBytes(),
            waitingWrites: part.commits.waiting,
            cellState: part.store.cellState(),
            ...part.begins.counts(part.ports.clock.now()),
            unappliedDecisions: part.deliveries.unapplied,
            oldestUnappliedMs: part.deliveries.oldestMs(part.ports.clock.now()),
            ...part.counters.counts(),
            beginDurations: part.beginDurations.durations,
            decisionDurations: part.decisionDurations.durations,
            exchangeDurations: part.links.durations.durations,
          },
          part.hooks.metrics,
        ),
      ),
  };
}

export async function beginLease(part: LedgerPart, request: BeginRequest): Promise<Result<BeginAnswer>> {
  const row = part.store.findWhole(request.lease);
  if (row !== undefined) {
    const another = row.fence === 1 ? undefined : otherBatch(part, row, request);
    if (another !== undefined) return { ok: false, refusal: another };
    if (row.state === "ROLLED_BACK") return durable(part, rolledBack());
    return durable(
      part,
      ok({ lease: part.store.placedLeaseOf(row, part.ports.clock.now()), created: false }),
    );
  }
  const { begins } = part;
  const unfit = begins.isRunning(request.lease) ? undefined : begins.grantRefusal(request);
  if (unfit !== undefined) return { ok: false, refusal: unfit };
  const begun = begins.begin(request);
  if (!(begun instanceof Promise) && begun.reason === "LEDGER_FULL")
    part.deliveries.wakeWithin(TIDY_AGAIN_MS);
  return begun instanceof Promise ? begun : { ok: false, refusal: begun };
}

/**
 * Answers a shard's inquiry, unless it shows that this ledger has lost the attempts of an instance (H4). It
 * reads rows and running begins in one turn, and answers once the rows are durable (B8).
 */
async function inquire(part: LedgerPart, message: Inquiry): Promise<Result<InquiryAnswer>> {
  // An incarnation is durable before its first attempt starts (B3), so one that is missing is lost.
  for (const incarnation of new Set(message.questions.map((question) => question.incarnation))) {
    const refusal = part.standing.current.admit({ incarnation, position: 0 }, `shard ${message.shard}`);
    if (refusal !== undefined) return { ok: false, refusal };
  }
  const verdicts = message.questions.map((question) =>
    answerQuestion(part.store, part.begins, part.instances, message.shard, question),
  );
  for (const [index, { lease }] of message.questions.entries())
    if (verdicts[index] === "granted") part.deliveries.noteAsked(lease);
  await part.ports.sql.flush();
  return ok({ verdicts, point: part.instances.point ?? null });
}

/**
 * Called by the cron: resumes unfinished work whose alarm was lost (M3), and deletes outcomes that are old
 * enough.
 */
async function maintain(part: LedgerPart, message: Maintain): Promise<Result<MaintainAnswer>> {
  const refusal = guarded(part.hooks.maintaining, message);
  if (refusal !== undefined) return { ok: false, refusal };
  const { total } = await tidy(part);
  const own: Partial<MaintainAnswer> = {
    pruned: total,
    state: part.store.cellState(),
    unapplied: part.deliveries.unapplied,
    staleLeases: part.begins.counts(part.ports.clock.now()).staleLeases,
    ...part.sightings.current.remembered(),
  };
  return ok(withFields(own, part.hooks.maintained));
}

/** Delivers decisions that are due, and prunes (S1). The work is bounded; an alarm continues it. */
async function tidy(part: LedgerPart): Promise<Pruned> {
  // A ledger that has gone back in time changes nothing (H4).
  if (part.standing.current.stopped !== undefined) return { total: 0, more: false };
  await part.deliveries.deliverDue(part.commits);
  const pruned = await part.pruner.prune();
  if (pruned.more) part.deliveries.wakeWithin(TIDY_AGAIN_MS);
  return pruned;
}

/** Returns why a begin is refused whose lease id is known with another batch (B2). */
function otherBatch(part: LedgerPart, row: LeaseRow, request: BeginRequest): Refusal | undefined {
  if (row.payload_hash === request.payloadHash) return undefined;
  for (const compare of part.hooks.compareBatch) {
    const compared = compare(row, request);
    if (compared !== undefined) return compared.ok ? undefined : compared.refusal;
  }
  return leaseIdReused();
}
