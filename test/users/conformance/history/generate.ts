/**
 * Generates histories of a correct register, with random interleavings and unknown outcomes, and the same
 * histories with one wrong answer.
 */
import type { Outcome } from "../../../../src/coordinator/kernel/messages.ts";
import {
  Recorder,
  type Answer,
  type BatchOp,
  type Call,
  type HistoryEvent,
  type SeenConflict,
  type SeenRecord,
} from "../../../../src/users/conformance/history/history.ts";

interface Claim {
  cell: string;
  subject: string;
  epoch: number;
}

interface Hold extends Claim {
  kind: BatchOp["kind"];
  lease: string;
}

interface Bucket {
  claim?: Claim | undefined;
  hold?: Hold | undefined;
}

type BeginCall = Call & { kind: "begin" };

interface Running {
  id: string;
  call: Call;
  client: string;
  answer?: Answer;
  /** Its client has given up, so it takes effect late or never. */
  isLost: boolean;
}

export interface HistoryShape {
  seed: number;
  clients: number;
  cells: number;
  buckets: number;
  operations: number;
  /** The percentage of operations without an answer. */
  unknown: number;
}

/** Random numbers from a seed (mulberry32). */
export function randomOf(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

/** A correct register. Every operation takes effect in one step between its call and its answer. */
class RandomRegister {
  readonly recorder = new Recorder();
  readonly #shape: HistoryShape;
  readonly #random: (below: number) => number;
  readonly #buckets = new Map<string, Bucket>();
  readonly #states = new Map<string, "GRANTED" | Outcome>();
  readonly #begun: BeginCall[] = [];
  #running: Running[] = [];
  #calls = 0;
  #epoch = 0;

  constructor(shape: HistoryShape) {
    this.#shape = shape;
    this.#random = randomOf(shape.seed);
  }

  run(): readonly HistoryEvent[] {
    while (this.#calls < this.#shape.operations || this.#running.length > 0) {
      const choice = this.#random(3);
      if (choice === 0 && this.#calls < this.#shape.operations) this.#start();
      else if (this.#running.length > 0) this.#advance(this.#pick(this.#running));
    }
    return this.recorder.events;
  }

  #pick<T>(from: readonly T[]): T {
    const picked = from[this.#random(from.length)];
    if (picked === undefined) throw new Error("nothing to choose from");
    return picked;
  }

  #chance(percent: number): boolean {
    return this.#random(100) < percent;
  }

  #start(): void {
    const busy = new Set(this.#running.filter(({ isLost }) => !isLost).map(({ client }) => client));
    const client = `c${this.#random(this.#shape.clients)}`;
    if (busy.has(client)) return;
    this.#calls += 1;
    const call = this.#call();
    const id = this.recorder.invoke({ client, ...call });
    const isLost = this.#chance(this.#shape.unknown);
    if (isLost && this.#chance(30)) return;
    this.#running.push({ id, call, client, isLost });
  }

  /** Lets an operation take effect. The next call answers it. */
  #advance(running: Running): void {
    if (running.answer === undefined) {
      // A lost call may take effect much later.
      if (running.isLost && this.#chance(80) && this.#calls < this.#shape.operations) return;
      running.answer = this.#effect(running.call);
      if (!running.isLost) return;
    } else this.recorder.complete(running.id, running.answer);
    this.#running = this.#running.filter((other) => other !== running);
  }

  #call(): Call {
    const lately = this.#begun.slice(-this.#shape.clients * 2);
    const choice = this.#random(10);
    if (choice < 3 || lately.length === 0) return this.#newBegin();
    const { cell, lease } = this.#pick(lately);
    if (choice < 6)
      return { kind: "decide", cell, lease, outcome: this.#chance(65) ? "COMMITTED" : "ROLLED_BACK" };
    if (choice === 6) return this.#chance(50) ? { kind: "get", cell, lease } : this.#pick(lately);
    return { kind: "lookup", buckets: this.#someBuckets() };
  }

  #someBuckets(): string[] {
    const names = Array.from({ length: this.#shape.buckets }, (_, index) => `ROUTES:${index}`);
    const first = this.#random(names.length);
    return [...names, ...names].slice(first, first + 1 + this.#random(Math.min(3, names.length)));
  }

  #newBegin(): BeginCall {
    const cell = String(1 + this.#random(this.#shape.cells));
    const ops = this.#someBuckets().map((bucket): BatchOp => {
      const kind =
        this.#bucket(bucket).claim === undefined
          ? this.#pick(["create", "create", "replace"] as const)
          : this.#pick(["create", "destroy", "replace"] as const);
      return kind === "destroy" && this.#chance(50)
        ? { kind, bucket }
        : { kind, bucket, subject: `NAMESPACE:${this.#random(2)}` };
    });
    const call: BeginCall = {
      kind: "begin",
      cell,
      lease: `L${this.#calls}`,
      ops,
      ...(this.#chance(20) ? { allowMissing: true } : {}),
    };
    this.#begun.push(call);
    return call;
  }

  #bucket(name: string): Bucket {
    const bucket = this.#buckets.get(name) ?? {};
    this.#buckets.set(name, bucket);
    return bucket;
  }

  #effect(call: Call): Answer {
    switch (call.kind) {
      case "begin":
        return this.#begin(call);
      case "decide":
        return this.#decide(call);
      case "get": {
        const state = this.#states.get(`${call.cell}/${call.lease}`);
        return state === undefined ? { kind: "refused", code: "NOT_FOUND" } : { kind: "ok", state };
      }
      case "lookup":
        return {
          kind: "ok",
          found: Object.fromEntries(call.buckets.map((name) => [name, this.#look(this.#bucket(name))])),
        };
    }
  }

  #begin(call: BeginCall): Answer {
    const { cell, lease, ops, allowMissing = false } = call;
    const state = this.#states.get(`${cell}/${lease}`);
    if (state === "ROLLED_BACK") return { kind: "refused", reason: "LEASE_ROLLED_BACK" };
    if (state !== undefined) return { kind: "ok", state, created: false };
    const findings = ops.map((op) => ({ op, finding: this.#examine(op, cell, allowMissing) }));
    const conflicts = findings.flatMap(({ finding }) => (typeof finding === "object" ? [finding] : []));
    if (conflicts.length > 0) return { kind: "refused", conflicts };
    for (const { op, finding } of findings) {
      if (finding !== "clear") continue;
      this.#epoch += 1;
      const { bucket, subject = "" } = op;
      const kind = op.kind === "replace" && this.#bucket(bucket).claim === undefined ? "create" : op.kind;
      this.#bucket(bucket).hold = { kind, cell, subject, lease, epoch: this.#epoch };
    }
    this.#states.set(`${cell}/${lease}`, "GRANTED");
    return {
      kind: "ok",
      state: "GRANTED",
      created: true,
      missing: findings.filter(({ finding }) => finding === "missing").length,
    };
  }

  #examine(op: BatchOp, cell: string, allowMissing: boolean): SeenConflict | "clear" | "missing" {
    const bucket = this.#bucket(op.bucket);
    const conflict = (kind: SeenConflict["kind"], by?: string): SeenConflict => ({
      bucket: op.bucket,
      kind,
      ...(by === undefined ? {} : { owner: by === cell ? "self" : "other" }),
    });
    const { claim, hold } = bucket;
    if (op.kind !== "create" && claim !== undefined && claim.cell !== cell && hold?.kind !== "destroy")
      return conflict("not_owner", claim.cell);
    if (hold !== undefined) return conflict("leased", hold.cell);
    if (op.kind === "create") return claim === undefined ? "clear" : conflict("taken", claim.cell);
    if (claim === undefined && !allowMissing) return conflict("absent");
    if (claim === undefined) return op.kind === "destroy" ? "missing" : "clear";
    return op.kind === "replace" || op.subject === undefined || op.subject === claim.subject
      ? "clear"
      : conflict("mismatch", cell);
  }

  #decide({ cell, lease, outcome }: Call & { kind: "decide" }): Answer {
    const name = `${cell}/${lease}`;
    const state = this.#states.get(name);
    if (state === undefined && outcome === "COMMITTED") return { kind: "refused", code: "NOT_FOUND" };
    if (state !== undefined && state !== "GRANTED" && state !== outcome)
      return { kind: "refused", reason: `LEASE_${state}` };
    this.#states.set(name, outcome);
    if (state === "GRANTED") for (const bucket of this.#buckets.values()) end(bucket, cell, lease, outcome);
    return { kind: "ok", state: outcome };
  }

  /** A lookup. Sometimes without the fields that another cell does not see. */
  #look({ claim, hold }: Bucket): SeenRecord | null {
    const of = claim ?? (hold?.kind === "create" ? hold : undefined);
    if (of === undefined) return null;
    const status =
      claim === undefined ? "LEASE_CREATING" : hold?.kind === "destroy" ? "LEASE_DESTROYING" : "ACTIVE";
    const { cell, subject, epoch } = of;
    return this.#chance(20) ? { cell, status } : { cell, status, lease: hold?.lease ?? null, subject, epoch };
  }
}

/** Carries out the decision of a lease on a bucket. */
function end(bucket: Bucket, cell: string, lease: string, outcome: Outcome): void {
  const { hold } = bucket;
  if (hold === undefined || hold.cell !== cell || hold.lease !== lease) return;
  bucket.hold = undefined;
  if (outcome === "COMMITTED")
    bucket.claim =
      hold.kind === "destroy" ? undefined : { cell: hold.cell, subject: hold.subject, epoch: hold.epoch };
}

export const generate = (shape: HistoryShape): HistoryEvent[] => [...new RandomRegister(shape).run()];

/**
 * The history with one answer changed into one that is nearly always impossible. Undefined if `pick` chose an
 * answer that cannot be changed.
 */
export function falsify(
  events: readonly HistoryEvent[],
  pick: (below: number) => number,
): HistoryEvent[] | undefined {
  const calls = new Map(
    events.flatMap((event) => (event.event === "invoke" ? [[event.id, event.call] as const] : [])),
  );
  const answers = events.flatMap((event, index) => (event.event === "answer" ? [{ event, index }] : []));
  const chosen = answers[pick(Math.max(1, answers.length))];
  const call = calls.get(chosen?.event.id ?? "");
  if (chosen === undefined || call === undefined) return undefined;
  const answer = wrong(call, chosen.event.answer, pick);
  return answer === undefined ? undefined : events.with(chosen.index, { ...chosen.event, answer });
}

function wrong(call: Call, answer: Answer, pick: (below: number) => number): Answer | undefined {
  if (answer.kind === "ok" && answer.found !== undefined)
    return { kind: "ok", found: wrongFound(answer.found, pick) };
  if (call.kind === "begin") return wrongBegin(call, answer);
  if (answer.kind === "ok") {
    if (call.kind === "get") return { kind: "refused", code: "NOT_FOUND" };
    return {
      kind: "refused",
      reason: answer.state === "COMMITTED" ? "LEASE_ROLLED_BACK" : "LEASE_COMMITTED",
    };
  }
  return { kind: "ok", state: call.kind === "decide" ? call.outcome : "COMMITTED" };
}

function wrongBegin({ ops }: BeginCall, answer: Answer): Answer | undefined {
  const op = ops[0];
  if (answer.kind !== "ok") return { kind: "ok", state: "GRANTED", created: true, missing: 0 };
  if (op === undefined) return undefined;
  return {
    kind: "refused",
    conflicts: [{ bucket: op.bucket, kind: op.kind === "create" ? "taken" : "absent" }],
  };
}

function wrongFound(
  found: Readonly<Record<string, SeenRecord | null>>,
  pick: (below: number) => number,
): Record<string, SeenRecord | null> {
  const names = Object.keys(found);
  const name = names[pick(names.length)] ?? "";
  const record = found[name] ?? null;
  if (record === null)
    return { ...found, [name]: { cell: "1", status: "ACTIVE", lease: null, subject: "NAMESPACE:0" } };
  const wrongs: (SeenRecord | null)[] = [
    null,
    { ...record, cell: record.cell === "1" ? "2" : "1" },
    { ...record, status: record.status === "ACTIVE" ? "LEASE_CREATING" : "ACTIVE", lease: null },
    ...(record.subject === undefined
      ? []
      : [{ ...record, subject: record.subject === "NAMESPACE:0" ? "NAMESPACE:1" : "NAMESPACE:0" }]),
  ];
  return { ...found, [name]: wrongs[pick(wrongs.length)] ?? null };
}
