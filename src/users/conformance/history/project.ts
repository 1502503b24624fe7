/**
 * Splits a history into one part per bucket: what each operation says about the bucket, and when it can have
 * taken effect.
 */
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
  /** It takes effect at one moment in this interval. */
  from: number;
  to: number;
  /** The actions of which it was one. */
  ways: readonly Action[];
  /** Its outcome is unknown, so it may never take effect. */
  optional: boolean;
}

export interface Part {
  /** The bucket, or a lease without known buckets. */
  name: string;
  /** The names of its leases. Actions refer to them by index. */
  leases: string[];
  /** Ordered by `from`. */
  entries: Entry[];
}

export interface ProjectOptions {
  /** The largest difference between clocks of processes, in ms. Operations within it count as concurrent. */
  clockErrorMs?: number;
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
  readonly #parts = new Map<string, Part>();
  /** The buckets of each lease. */
  readonly #buckets = new Map<string, Set<string>>();
  readonly #begins = new Map<string, Begin[]>();
  /** The cells that may have held a bucket, and since when, by bucket. */
  readonly #holders = new Map<string, Map<string, number>>();

  constructor(operations: readonly Operation[], { clockErrorMs = 0 }: ProjectOptions) {
    this.#operations = operations;
    this.#error = clockErrorMs;
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
    for (const { bucket } of begin.call.ops) {
      buckets.add(bucket);
      const holders = this.#holders.get(bucket) ?? new Map<string, number>();
      this.#holders.set(bucket, holders);
      const { cell } = begin.call;
      holders.set(cell, Math.min(holders.get(cell) ?? Infinity, begin.invokedAt));
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

  /**
   * The buckets of a lease. Each of them sees everything known about the lease. A lease without buckets is a
   * part of its own.
   */
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
      if (operation.answer.kind === "ok") this.#addMore(operation, bucket);
    }
  }

  /**
   * The earliest moment that an operation's answer can describe. A begin that arrives while another begin of
   * its lease runs gets the answer of that one (B2), so a refusal may be older than the call.
   */
  #since({ call, answer, invokedAt }: LeaseOperation, lease: string): number {
    if (call.kind !== "begin" || answer.kind !== "refused") return invokedAt;
    const joined = (this.#begins.get(lease) ?? []).filter(
      (other) => other.invokedAt < invokedAt && other.answeredAt + 2 * this.#error >= invokedAt,
    );
    return Math.min(invokedAt, ...joined.map((other) => other.invokedAt));
  }

  /** The actions that the operation means for each bucket of its lease. Undefined if it says nothing. */
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

  /** Adds further facts of an answer, which may be true at another moment of its interval. */
  #addMore(operation: LeaseOperation, bucket: string): void {
    const { call, answer } = operation;
    if (call.kind !== "begin" || answer.kind !== "ok" || answer.created !== true) return;
    const op = call.ops.find((each) => each.bucket === bucket);
    if (op !== undefined && mayMiss(call, op) && answer.missing === destroysOf(call)) {
      this.#add(bucket, operation, () => [{ kind: "missing" }]);
    }
  }

  #lookup(operation: Operation): void {
    const { answer, call } = operation;
    if (answer.kind !== "ok" || call.kind !== "lookup") return;
    /** Granted leases, with the buckets that show them. */
    const granted = new Map<string, Set<string>>();
    for (const [bucket, record] of Object.entries(answer.found ?? {})) {
      const lease =
        typeof record?.lease === "string" ? leaseName({ cell: record.cell, lease: record.lease }) : undefined;
      this.#add(bucket, operation, (part) => [this.#seen(part, record, lease)]);
      if (lease !== undefined) granted.set(lease, (granted.get(lease) ?? new Set()).add(bucket));
    }
    // The shard asked the ledger, so the lease was granted for all of its buckets.
    for (const [lease, shown] of granted) {
      for (const bucket of this.#bucketsOf(lease)) {
        if (!shown.has(bucket))
          this.#add(bucket, operation, (part) => [
            { kind: "state", lease: this.#index(part, lease), state: "GRANTED" },
          ]);
      }
    }
  }

  #seen(part: Part, record: SeenRecord | null, lease: string | undefined): Action {
    const isKnown = lease !== undefined && this.#buckets.get(lease)?.has(part.name) === true;
    return { kind: "seen", record, lease: isKnown ? this.#index(part, lease) : -1 };
  }

  /**
   * Whether some begin can have left the hold of a `leased` conflict. An earlier attempt of the same cell
   * always can.
   */
  #explains({ bucket, owner }: SeenConflict, cell: string, answeredAt: number): boolean {
    if (owner !== "other") return true;
    for (const [holder, since] of this.#holders.get(bucket) ?? [])
      if (holder !== cell && since <= answeredAt + 2 * this.#error) return true;
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

/** A replace of a name that nobody has may be a create, unless it names an epoch [B12]. */
const mayCreate = ({ allowMissing }: Begin["call"], { kind, epoch }: BatchOp): boolean =>
  allowMissing === true && kind === "replace" && epoch === undefined;

/**
 * A destroy that may find nothing holds the bucket or not. The answer only counts how many did not, for the
 * whole batch.
 */
function begun(call: Begin["call"], answer: Operation["answer"], lease: number, bucket: string): Action[] {
  const state = answer.kind === "ok" ? (answer.state ?? "GRANTED") : "GRANTED";
  // A begin with an unknown outcome matters only if it was granted.
  const created = answer.kind === "ok" ? answer.created : true;
  const way = (take: Taking | undefined): Action => ({ kind: "begun", lease, take, state, created });
  const op = call.ops.find((each) => each.bucket === bucket);
  if (op === undefined) return [way(undefined)];
  const held = way({ ...op, cell: call.cell, mayCreate: mayCreate(call, op) });
  if (!mayMiss(call, op)) return [held];
  const missing = answer.kind === "ok" ? answer.missing : undefined;
  if (missing === 0) return [held];
  return missing === destroysOf(call) ? [way(undefined)] : [held, way(undefined)];
}
