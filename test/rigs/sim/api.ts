import { ask } from "../../../src/coordinator/kernel/ask.ts";
import type {
  BeginAnswer,
  BucketKey,
  Caller,
  HistoryPoint,
  Lease,
  LookupAnswer,
  LookupFound,
  Op,
  Outcome,
  PlacedLease,
  Told,
} from "../../../src/coordinator/kernel/messages.ts";
import type { LeasePage } from "../../../src/coordinator/capabilities/reads/messages.ts";
import type {
  DigestCursor,
  DigestRecordsAnswer,
  ListCursor,
  ListRecordsAnswer,
  SourceRange,
} from "../../../src/coordinator/capabilities/records/messages.ts";
import type { ReportedStatus, StatusReport } from "../../../src/coordinator/capabilities/status/status.ts";
import type { VerificationSlot } from "../../../src/coordinator/capabilities/slots/directory.ts";
import { shardOf, type Placement } from "../../../src/coordinator/kernel/placement.ts";
import type { Answer, Clock } from "../../../src/coordinator/kernel/ports.ts";
import { LedgerHistory } from "../../../src/users/client/ledger-history.ts";
import { historyHeaderOf } from "../../../src/coordinator/capabilities/loss/edge/history-header.ts";
import type { Refusal, Result } from "../../../src/coordinator/kernel/refusal.ts";
import {
  answerOfRefusal,
  batchOpOf,
  seenOf,
  type Recorder,
  type SeenRecord,
} from "../../../src/users/conformance/history/history.ts";
import type { Coordinator } from "./coordinator.ts";
import type { Isolate } from "./isolate.ts";
import type { Judge } from "./judge/judge.ts";
import { nameKey } from "./local.ts";
import type { Part } from "./part.ts";
import type { Owner, Scheduler } from "./scheduler.ts";
import type { StoredHistory } from "./stored-history.ts";

/** Longer than the coordinator's deadlines, like the timeout of a cell's HTTP client. */
const TIMEOUT_MS = 15_000;

const UNCERTAIN = new Set(["UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL"]);

export interface Batch {
  lease: string;
  ops: Op[];
  allowMissing: boolean;
  isVerification?: true;
  waitMs?: number;
}

/** What all parts of a simulation share. */
export interface SimulationContext {
  scheduler: Scheduler;
  isolate: Isolate;
  coordinator: Coordinator;
  judge: Judge;
  recorder: Recorder;
  /** Starts work whose failure fails the run. */
  spawn: (work: Promise<void>) => void;
  /** Whether faults have ended. */
  areFaultsOff: () => boolean;
}

/**
 * The coordinator as one client sees it. Calls go to the methods of the objects, without the HTTP layer,
 * which keeps no state between calls. A call is one attempt; callers retry.
 */
export class Api {
  readonly #context: SimulationContext;
  readonly #owner: Owner;
  readonly #clock: Clock;
  readonly #stored: StoredHistory | undefined;
  /** What this client has seen of the ledger of its cell. */
  readonly history = new LedgerHistory();
  #answers = 0;

  /** @param stored where a cell keeps what it has seen of its ledger */
  constructor(context: SimulationContext, owner: Owner, stored?: StoredHistory) {
    this.#context = context;
    this.#owner = owner;
    this.#stored = stored;
    stored?.load(this.history);
    this.#clock = {
      now: () => context.scheduler.nowMs,
      after: (delayMs, then) => context.scheduler.after(delayMs, owner, then),
      turn: () => context.scheduler.sleep(0, owner),
    };
  }

  async begin(
    cell: string,
    caller: Caller,
    { lease, ops, allowMissing, isVerification, waitMs }: Batch,
  ): Promise<Answer<BeginAnswer>> {
    const batch = ops.map(batchOpOf);
    const id = this.#context.recorder.invoke({
      client: this.#owner.name,
      kind: "begin",
      cell,
      lease,
      ops: batch,
      allowMissing,
    });
    const payloadHash = JSON.stringify([allowMissing, batch]);
    const answer = await this.#asCell<BeginAnswer>(cell, caller, "begin", {
      requestId: "",
      lease,
      ops,
      allowMissing,
      payloadHash,
      ...(isVerification === true ? { isVerification } : {}),
      ...(waitMs === undefined ? {} : { waitMs }),
    });
    if (answer.kind === "ok") {
      this.#context.judge.routes?.wrote(cell, answer.value.lease);
      const { state, counts } = answer.value.lease;
      this.#context.recorder.complete(id, {
        kind: "ok",
        state,
        created: answer.value.created,
        missing: counts.missing,
      });
    } else if (answer.kind === "refused")
      this.#context.recorder.complete(id, answerOfRefusal(answer.refusal, batch));
    return answer;
  }

  #placed(ops: readonly Op[]): Op[] {
    const { shards } = this.#context.isolate;
    return ops.map((op) => ({ ...op, shard: shardOf(op.type, op.canonical, shards) }));
  }

  async decide(
    cell: string,
    caller: Caller,
    lease: string,
    outcome: Outcome,
    reason?: string,
  ): Promise<Answer<Lease>> {
    const id = this.#context.recorder.invoke({
      client: this.#owner.name,
      kind: "decide",
      cell,
      lease,
      outcome,
    });
    this.#context.judge.requests(cell, lease, outcome);
    const answer = await this.#asCell<PlacedLease>(cell, caller, "decide", {
      requestId: "",
      lease,
      outcome,
      ...(reason === undefined ? {} : { reason }),
    });
    if (answer.kind === "ok") this.#context.judge.routes?.wrote(cell, answer.value);
    this.#completeState(id, answer);
    return answer;
  }

  async get(cell: string, caller: Caller, lease: string): Promise<Answer<Lease>> {
    const id = this.#context.recorder.invoke({ client: this.#owner.name, kind: "get", cell, lease });
    const answer = await this.#asCell<Lease>(cell, caller, "getLease", { lease });
    this.#completeState(id, answer);
    return answer;
  }

  list(
    cell: string,
    caller: Caller,
    page: { createdAfterMs: number; afterPosition: number; limit: number },
  ): Promise<Answer<LeasePage>> {
    return this.#asCell<LeasePage>(cell, caller, "listLeases", page);
  }

  renew(cell: string, caller: Caller, lease: string, reason: string): Promise<Answer<Lease>> {
    return this.#asCell(cell, caller, "renew", { lease, reason });
  }

  reportStatus(cell: string, caller: Caller, report: StatusReport): Promise<Answer<ReportedStatus>> {
    return this.#asCell(cell, caller, "reportStatus", report);
  }

  reportedStatus(cell: string, caller: Caller): Promise<Answer<ReportedStatus | null>> {
    return this.#asCell(cell, caller, "reportedStatus", {});
  }

  async lookup(shard: number, keys: BucketKey[]): Promise<Answer<LookupAnswer>> {
    const { shards } = this.#context.isolate;
    // The placement has changed since the caller found the shard.
    if (keys.some(({ type, canonical }) => shardOf(type, canonical, shards) !== shard)) return OUTDATED;
    const buckets = keys.map(nameKey);
    const id = this.#context.recorder.invoke({ client: this.#owner.name, kind: "lookup", buckets });
    const answer = await this.#ask<LookupAnswer>(this.#context.coordinator.shard(shard), "lookup", { keys });
    if (answer.kind === "ok") {
      const found = Object.fromEntries(
        answer.value.found.flatMap((each, index) => seenFound(buckets[index], each)),
      );
      this.#context.recorder.complete(id, { kind: "ok", found });
    } else if (answer.kind === "refused") this.#context.recorder.complete(id, { kind: "unknown" });
    return answer;
  }

  /** The records of a page count as lookups of them (R3). */
  async records(
    shard: number,
    query: {
      placement?: Placement;
      cell: string;
      sourceType: number;
      bucketTypes: readonly number[] | null;
      after: string;
      upTo: string | null;
      cursor: ListCursor | null;
      limit: number;
    },
  ): Promise<Answer<ListRecordsAnswer>> {
    const id = this.#context.recorder.invoke({ client: this.#owner.name, kind: "lookup", buckets: [] });
    const answer = await this.#ask<ListRecordsAnswer>(
      this.#context.coordinator.shard(shard),
      "listRecords",
      query,
    );
    if (answer.kind === "ok") {
      const found = Object.fromEntries(
        answer.value.records.flatMap((record) => seenFound(nameKey(record), { kind: "record", record })),
      );
      this.#context.recorder.complete(id, { kind: "ok", found });
    } else if (answer.kind === "refused") this.#context.recorder.complete(id, { kind: "unknown" });
    return answer;
  }

  digests(
    shard: number,
    query: {
      placement?: Placement;
      cell: string;
      sourceType: number;
      bucketTypes: readonly number[] | null;
      ranges: readonly SourceRange[];
      cursor: DigestCursor | null;
    },
  ): Promise<Answer<DigestRecordsAnswer>> {
    return this.#ask(this.#context.coordinator.shard(shard), "digestRecords", query);
  }

  takeSlot(cell: string, uuid: string): Promise<Answer<VerificationSlot>> {
    return this.#ask(this.#context.coordinator.directory, "takeSlot", { cell, uuid });
  }

  releaseSlot(cell: string, uuid: string): Promise<Answer<boolean>> {
    return this.#ask(this.#context.coordinator.directory, "releaseSlot", { cell, uuid });
  }

  toLedger<T>(cell: string, method: string, fields: object): Promise<Answer<T>> {
    return this.#ask(this.#context.coordinator.ledger(cell), method, fields);
  }

  toShard<T>(shard: number, method: string, fields: object): Promise<Answer<T>> {
    return this.#ask(this.#context.coordinator.shard(shard), method, fields);
  }

  toDirectory<T>(method: string, fields: object): Promise<Answer<T>> {
    return this.#ask(this.#context.coordinator.directory, method, fields);
  }

  /** Returns the answer as the part gave it; undefined if there is none. */
  async reply(part: Part<object>, method: string, fields: object): Promise<Result<unknown> | undefined> {
    const { isolate, coordinator } = this.#context;
    let reply: Result<unknown> | undefined;
    await ask(this.#clock, TIMEOUT_MS, async () => {
      const send = (): Promise<Result<unknown>> => {
        const message = { ...coordinator.envelope, placement: isolate.placement, ...fields };
        return isolate.send(this.#owner, part, method, message);
      };
      const { placement } = isolate;
      reply = await send();
      if (isolate.placement !== placement && isOutdated(reply)) reply = await send();
      return reply;
    });
    return reply;
  }

  sleep(ms: number): Promise<void> {
    return this.#context.scheduler.sleep(ms, this.#owner);
  }

  async #asCell<T>(cell: string, caller: Caller, method: string, fields: object): Promise<Answer<T>> {
    const { judge } = this.#context;
    const wasRevoked = judge.revoked.has(caller.keyId);
    const ledger = this.#context.coordinator.ledger(cell);
    const isCell = this.#stored !== undefined;
    const sent = isCell ? this.history.next() : undefined;
    const seen = sent === undefined ? {} : { seen: sent };
    const answer = await this.#ask<T>(ledger, method, { caller, ...seen, ...fields }, (point) => {
      if (isCell) this.#note(sent, point);
    });
    if (wasRevoked && answer.kind !== "unknown") {
      judge.check(
        "I17",
        answer.kind !== "ok",
        () => `${method} succeeds with key ${caller.keyId} after its revocation`,
      );
      judge.see("a revocation held");
    }
    if (answer.kind === "refused" && answer.refusal.reason === "KEY_REVOKED") judge.see("A1");
    if (isRefused(answer, "KEY_EXPIRED")) judge.see("a forgotten revocation held");
    if (answer.kind === "refused" && answer.refusal.code === "RESOURCE_EXHAUSTED") judge.see("M6");
    if (isRefused(answer, "LEDGER_FULL")) {
      judge.see("refused LEDGER_FULL");
      judge.see("S3");
    }
    if (answer.kind === "unknown") judge.see("M2");
    return answer;
  }

  /** Saves only now and then, as the SDK does. */
  #note(sent: HistoryPoint | undefined, point: HistoryPoint): void {
    this.history.answered(sent, historyHeaderOf(point));
    this.#answers += 1;
    if (this.#answers % 3 === 0) this.#stored?.save(this.history);
  }

  async #ask<T>(
    part: Part<object>,
    method: string,
    fields: object,
    note: (point: HistoryPoint) => void = () => {},
  ): Promise<Answer<T>> {
    const { isolate, coordinator, judge } = this.#context;
    const answer = await ask<T>(this.#clock, TIMEOUT_MS, async () => {
      const send = (): Promise<Result<T> & Told> => {
        const placed = { ...coordinator.envelope, placement: isolate.placement, ...fields };
        // The placement may have changed since the caller found the shards.
        const message = "ops" in placed ? { ...placed, ops: this.#placed(placed.ops as Op[]) } : placed;
        return isolate.send<T>(this.#owner, part, method, message);
      };
      const { placement } = isolate;
      let reply = await send();
      // As the Worker does, repeats a call that was refused for its placement. Those of shards have others.
      if (!part.name.startsWith("shard") && isolate.placement !== placement && isOutdated(reply))
        reply = await send();
      if (reply.ok && reply.point !== undefined) note(reply.point);
      return reply;
    });
    if (isRefused(answer, "AUDIT_FULL")) judge.see("O3");
    return answer.kind === "refused" && UNCERTAIN.has(answer.refusal.code)
      ? { kind: "unknown", cause: answer.refusal.detail }
      : answer;
  }

  #completeState(id: string, answer: Answer<Lease>): void {
    if (answer.kind === "ok") this.#context.recorder.complete(id, { kind: "ok", state: answer.value.state });
    else if (answer.kind === "refused") this.#context.recorder.complete(id, answerOfRefusal(answer.refusal));
  }
}

const isOutdated = (reply: Result<unknown>): boolean =>
  !reply.ok && reply.refusal.reason === "PLACEMENT_MISMATCH";

const OUTDATED: Answer<never> = { kind: "unknown", cause: "the deployment has more shards by now" };

export const isRefused = (answer: Answer<unknown>, reason: Refusal["reason"]): boolean =>
  answer.kind === "refused" && answer.refusal.reason === reason;

/** A bucket whose state is unknown is left out, because nothing was learned about it. */
function seenFound(bucket: string | undefined, found: LookupFound): [string, SeenRecord | null][] {
  if (bucket === undefined || found.kind === "unknown") return [];
  return [[bucket, found.kind === "none" ? null : seenOf(found.record)]];
}
