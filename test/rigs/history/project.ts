/** Cuts a history into one part per bucket: what each operation says about that bucket, and when it can have been true. */
import type { OpKind } from "../../../src/core/messages.ts";
import {
  operationsOf,
  type BatchOp,
  type HistoryEvent,
  type Operation,
  type SeenConflict,
  type SeenRecord,
} from "./history.ts";
import type { Action, Taking } from "./register.ts";

export interface Entry {
  operation: Operation;
  /** It takes effect at one moment of this interval. */
  from: number;
  to: number;
  /** What it may have been: one of these. */
  ways: readonly Action[];
  /** Its outcome is unknown: it may also never take effect. */
  optional: boolean;
}

export interface Part {
  /** The bucket; or a lease that named none as far as the history knows. */
  name: string;
  /** Names of its leases: their places are the numbers in actions. */
  leases: string[];
  /** By `from`. */
  entries: Entry[];
}

export interface ProjectOptions {
  /** How far clocks of different processes may be apart, in ms. What overlaps within it counts as concurrent. */
  clockErrorMs?: number;
  /**
   * Every shard could be reached at all times: then a decision is applied everywhere when it is answered [C3], which is checked as well. It is
   * not true of histories with faults.
   */
  promptShards?: boolean;
}

type Begin = Operation & { call: { kind: "begin" } };
type LeaseOperation = Operation & { call: { kind: "begin" | "decide" | "get" } };

const leaseName = ({ cell, lease }: { cell: string; lease: string }): string => `${cell}/${lease}`;
const isBegin = (operation: Operation): operation is Begin => operation.call.kind === "begin";

export function project(events: readonly HistoryEvent[], options: ProjectOptions = {}): Part[] {
  return new Projection(operationsOf(events), options).parts();
}

class Projection {
  readonly #operations: readonly Operation[];
  readonly #error: number;
  readonly #prompt: boolean;
  readonly #parts = new Map<string, Part>();
  /** Lease → its buckets. */
  readonly #buckets = new Map<string, Set<string>>();
  readonly #begins = new Map<string, Begin[]>();
  /** Who may have held a bucket, and since when: by bucket, then by lease and kind, or cell and kind. */
  readonly #holders = new Map<string, Map<string, number>>();

  constructor(operations: readonly Operation[], { clockErrorMs = 0, promptShards = false }: ProjectOptions) {
    this.#operations = operations;
    this.#error = clockErrorMs;
    this.#prompt = promptShards;
    for (const operation of operations) if (isBegin(operation)) this.#note(operation);
  }

  parts(): Part[] {
    for (const operation of this.#operations) {
      if (operation.call.kind === "lookup") this.#lookup(operation);
      else this.#ofLease(operation as LeaseOperation);
    }
    for (const part of this.#parts.values()) part.entries.sort((a, b) => a.from - b.from);
    return [...this.#parts.values()];
  }

  #note(begin: Begin): void {
    const name = leaseName(begin.call);
    const buckets = this.#buckets.get(name) ?? new Set();
    this.#buckets.set(name, buckets);
    this.#begins.set(name, [...(this.#begins.get(name) ?? []), begin]);
    for (const { bucket, kind } of begin.call.ops) {
      buckets.add(bucket);
      const holders = this.#holders.get(bucket) ?? new Map<string, number>();
      this.#holders.set(bucket, holders);
      for (const who of [`lease ${name} ${kind}`, `cell ${begin.call.cell} ${kind}`]) {
        holders.set(who, Math.min(holders.get(who) ?? Infinity, begin.invokedAt));
      }
    }
  }

  #part(name: string): Part {
    let part = this.#parts.get(name);
    if (part === undefined) {
      part = { name, leases: [], entries: [] };
      this.#parts.set(name, part);
    }
    return part;
  }

  #index(part: Part, lease: string): number {
    const index = part.leases.indexOf(lease);
    return index >= 0 ? index : part.leases.push(lease) - 1;
  }

  #add(
    bucket: string,
    operation: Operation,
    ways: (part: Part) => Action[],
    since: number = operation.invokedAt,
  ): void {
    const part = this.#part(bucket);
    const { answeredAt, answer } = operation;
    const optional = answer.kind === "unknown";
    part.entries.push({
      operation,
      from: since - this.#error,
      to: answeredAt + this.#error,
      ways: ways(part),
      optional,
    });
  }

  /** A lease is one thing, and each of its buckets sees all that is known of it. One without buckets is a part of its own. */
  #bucketsOf(lease: string): Iterable<string> {
    return this.#buckets.get(lease) ?? [`lease ${lease}`];
  }

  #ofLease(operation: LeaseOperation): void {
    const name = leaseName(operation.call);
    const actionsOf = this.#actionsOf(operation, name);
    if (actionsOf === undefined) return;
    for (const bucket of this.#bucketsOf(name)) {
      this.#add(
        bucket,
        operation,
        (part) => actionsOf(this.#index(part, name), bucket),
        this.#since(operation, name),
      );
      if (operation.answer.kind === "ok") this.#addMore(operation, name, bucket);
    }
  }

  /**
   * A begin that comes while another one of its lease runs gets the answer of that one [B2]. What a refusal says may then be older than its call.
   */
  #since({ call, answer, invokedAt }: LeaseOperation, lease: string): number {
    if (call.kind !== "begin" || answer.kind !== "refused") return invokedAt;
    const joined = (this.#begins.get(lease) ?? []).filter(
      (other) => other.invokedAt < invokedAt && other.answeredAt + 2 * this.#error >= invokedAt,
    );
    return Math.min(invokedAt, ...joined.map((other) => other.invokedAt));
  }

  /** What the operation says about each bucket of its lease; undefined: nothing. */
  #actionsOf(
    { call, answer, answeredAt }: LeaseOperation,
    name: string,
  ): ((lease: number, bucket: string) => Action[]) | undefined {
    if (answer.kind === "refused") {
      const state = stateOfRefusal(answer.reason, answer.code);
      if (state !== undefined) return (lease) => [{ kind: "state", lease, state }];
      const { conflicts } = answer;
      if (call.kind !== "begin" || conflicts === undefined) return undefined;
      return (lease, bucket) => {
        const conflict = conflicts.find((each) => each.bucket === bucket);
        const op = call.ops.find((each) => each.bucket === bucket);
        const explained = conflict !== undefined && this.#explains(conflict, call.cell, answeredAt);
        return [{ kind: "refused", lease, cell: call.cell, op, conflict, explained }];
      };
    }
    if (call.kind === "begin") return (lease, bucket) => begun(call, answer, lease, bucket);
    if (call.kind === "decide") return (lease) => [{ kind: "decided", lease, outcome: call.outcome }];
    if (answer.kind !== "ok") return undefined;
    const { state } = answer;
    if (state === undefined) throw new Error(`an answer about lease ${name} does not say its state`);
    return (lease) => [{ kind: "state", lease, state }];
  }

  /** What an answer says besides, at another moment of its interval. */
  #addMore(operation: LeaseOperation, name: string, bucket: string): void {
    const { call, answer } = operation;
    if (call.kind === "decide" && this.#prompt)
      this.#add(bucket, operation, (part) => [{ kind: "applied", lease: this.#index(part, name) }]);
    if (call.kind !== "begin" || answer.kind !== "ok" || answer.created !== true) return;
    const op = call.ops.find((each) => each.bucket === bucket);
    if (op !== undefined && mayMiss(call, op) && answer.missing === destroysOf(call)) {
      this.#add(bucket, operation, () => [{ kind: "missing" }]);
    }
  }

  #lookup(operation: Operation): void {
    const { answer, call } = operation;
    if (answer.kind !== "ok" || call.kind !== "lookup") return;
    /** Granted leases, with the buckets that show it anyway. */
    const granted = new Map<string, Set<string>>();
    for (const [bucket, record] of Object.entries(answer.found ?? {})) {
      const lease =
        typeof record?.lease === "string" ? leaseName({ cell: record.cell, lease: record.lease }) : undefined;
      this.#add(bucket, operation, (part) => this.#seen(part, record, lease, operation.answeredAt));
      if (record?.status === "LEASE_CREATING" && lease !== undefined)
        granted.set(lease, (granted.get(lease) ?? new Set()).add(bucket));
    }
    // The shard has asked the ledger: so the lease was granted, for all of its buckets.
    for (const [lease, shown] of granted) {
      for (const bucket of this.#bucketsOf(lease)) {
        if (!shown.has(bucket))
          this.#add(bucket, operation, (part) => [
            { kind: "state", lease: this.#index(part, lease), state: "GRANTED" },
          ]);
      }
    }
  }

  #seen(part: Part, record: SeenRecord | null, lease: string | undefined, answeredAt: number): Action[] {
    const isKnown = lease !== undefined && this.#buckets.get(lease)?.has(part.name) === true;
    const explained = record !== null && this.#mayHold(part.name, record, lease, answeredAt);
    const seen: Action = {
      kind: "seen",
      record,
      lease: isKnown ? this.#index(part, lease) : -1,
      explained,
      applied: false,
    };
    // It may be unclear whether this is the record before or after a replace; which one it was matters for the epoch.
    const isUnclear = record?.status === "ACTIVE" && lease !== undefined && record.epoch !== undefined;
    return isUnclear ? [seen, { ...seen, applied: true }] : [seen];
  }

  /** Whether a begin can have left the hold that a claim was shown with. */
  #mayHold(bucket: string, record: SeenRecord, lease: string | undefined, answeredAt: number): boolean {
    const kind: OpKind = record.status === "LEASE_DESTROYING" ? "destroy" : "replace";
    const since = this.#holders
      .get(bucket)
      ?.get(lease === undefined ? `cell ${record.cell} ${kind}` : `lease ${lease} ${kind}`);
    return since !== undefined && since <= answeredAt + 2 * this.#error;
  }

  /** Whether a begin can have left a hold that `leased` speaks of. One's own earlier try always can. */
  #explains({ bucket, owner }: SeenConflict, cell: string, answeredAt: number): boolean {
    if (owner !== "other") return true;
    for (const [who, since] of this.#holders.get(bucket) ?? []) {
      if (
        who.startsWith("cell ") &&
        !who.startsWith(`cell ${cell} `) &&
        since <= answeredAt + 2 * this.#error
      )
        return true;
    }
    return false;
  }
}

function stateOfRefusal(
  reason: string | undefined,
  code: string | undefined,
): "COMMITTED" | "ROLLED_BACK" | null | undefined {
  if (reason === "LEASE_COMMITTED") return "COMMITTED";
  if (reason === "LEASE_ROLLED_BACK") return "ROLLED_BACK";
  return code === "NOT_FOUND" ? null : undefined;
}

const destroysOf = ({ ops }: Begin["call"]): number => ops.filter(({ kind }) => kind === "destroy").length;

const mayMiss = ({ allowMissing }: Begin["call"], op: BatchOp): boolean =>
  allowMissing === true && op.kind === "destroy";

/** A destroy that may find nothing holds the bucket or not: how many did not is counted for the whole batch only. */
function begun(call: Begin["call"], answer: Operation["answer"], lease: number, bucket: string): Action[] {
  const state = answer.kind === "ok" ? (answer.state ?? "GRANTED") : "GRANTED";
  // An unknown begin matters only as the grant.
  const created = answer.kind === "ok" ? answer.created : true;
  const way = (take: Taking | undefined): Action => ({ kind: "begun", lease, take, state, created });
  const op = call.ops.find((each) => each.bucket === bucket);
  if (op === undefined) return [way(undefined)];
  const held = way({ ...op, cell: call.cell });
  if (!mayMiss(call, op)) return [held];
  const missing = answer.kind === "ok" ? answer.missing : undefined;
  if (missing === 0) return [held];
  return missing === destroysOf(call) ? [way(undefined)] : [held, way(undefined)];
}
