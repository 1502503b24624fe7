/** The calls of clients with their answers and times. `check.ts` judges them. */

export type OpKind = "create" | "destroy" | "replace";
export type Outcome = "COMMITTED" | "ROLLED_BACK";
export type LeaseState = "GRANTED" | Outcome;
export type ConflictKind = "leased" | "taken" | "not_owner" | "absent" | "mismatch";

/** A bucket by its key, such as `1:gitlab-org`: the type, by its name or number, and the canonical form. */
export const bucketName = ({ type, canonical }: { type: string | number; canonical: string }): string =>
  `${type}:${canonical}`;

/** A subject or source as one text, such as `NAMESPACE:1`, or with the number of its type. */
const reference = ({ type, id }: Reference): string => `${type}:${id}`;

interface Reference {
  type: string | number;
  id: string;
}

export interface BatchOp {
  kind: OpKind;
  bucket: string;
  /** Undefined fields are not compared. */
  subject?: string;
  source?: string;
  value?: string;
  /** The epoch of the claim that it is about (B10). */
  epoch?: number;
}

/**
 * One message of one client. A client records each retry as a call of its own, because each attempt may take
 * effect.
 */
export type Call =
  | { kind: "begin"; cell: string; lease: string; ops: readonly BatchOp[]; allowMissing?: boolean }
  | { kind: "decide"; cell: string; lease: string; outcome: Outcome }
  | { kind: "get"; cell: string; lease: string }
  | { kind: "lookup"; buckets: readonly string[] };

export interface SeenRecord {
  cell: string;
  status: "ACTIVE" | "LEASE_CREATING" | "LEASE_DESTROYING";
  /** Null if the record has no lease. Undefined if the lease was not shown, as in another cell's record. */
  lease?: string | null;
  subject?: string;
  source?: string;
  value?: string;
  /** Compared only if `lease` was shown too. */
  epoch?: number;
}

export interface SeenConflict {
  bucket: string;
  kind: ConflictKind;
  owner?: "self" | "other";
}

/** `unknown`: the call may have taken effect, may do so later, or never. The same as no answer. */
export type Answer =
  | {
      kind: "ok";
      state?: LeaseState;
      created?: boolean;
      missing?: number;
      found?: Readonly<Record<string, SeenRecord | null>>;
    }
  | { kind: "refused"; code?: string; reason?: string; conflicts?: readonly SeenConflict[] }
  | { kind: "unknown" };

export type HistoryEvent = { id: string; at: number } & (
  | { event: "invoke"; client: string; call: Call }
  | { event: "answer"; answer: Answer }
);

export interface RecorderOptions {
  /** The prefix of ids. It must differ between processes whose histories are merged. */
  name?: string;
  /**
   * A monotonic clock in ms that all processes share. Without it a counter gives the order, which is correct
   * within one process.
   */
  now?: () => number;
  /** Called with each event as a line, so that a killed process leaves its events. */
  write?: (line: string) => void;
}

export class Recorder {
  readonly events: HistoryEvent[] = [];
  readonly #name: string;
  readonly #now: () => number;
  readonly #write: ((line: string) => void) | undefined;
  #calls = 0;

  constructor({ name = "", now, write }: RecorderOptions = {}) {
    this.#name = name;
    this.#now = now ?? (() => this.events.length);
    this.#write = write;
  }

  /** Records a call before it is sent. Returns the id for `complete`. */
  invoke({ client, ...call }: { client: string } & Call): string {
    this.#calls += 1;
    const id = `${this.#name}${this.#calls}`;
    this.#add({ event: "invoke", id, at: this.#now(), client, call });
    return id;
  }

  /** Records the answer of a call. */
  complete(id: string, answer: Answer): void {
    this.#add({ event: "answer", id, at: this.#now(), answer });
  }

  #add(event: HistoryEvent): void {
    this.events.push(event);
    this.#write?.(`${JSON.stringify(event)}\n`);
  }
}

/**
 * Reads the events of any number of files, in any order. The last line of a killed process may be incomplete.
 */
export function readHistory(...files: readonly string[]): HistoryEvent[] {
  return files.flatMap((text) => {
    const lines = text.split("\n");
    const torn = lines.pop() ?? "";
    return [...lines.filter((line) => line !== ""), ...(isWhole(torn) ? [torn] : [])].map(
      (line) => JSON.parse(line) as HistoryEvent,
    );
  });
}

function isWhole(line: string): boolean {
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}

export interface Operation {
  id: string;
  client: string;
  call: Call;
  invokedAt: number;
  answer: Answer;
  /** Infinity if the client got no answer. */
  answeredAt: number;
}

/** Pairs calls with their answers. */
export function operationsOf(events: readonly HistoryEvent[]): Operation[] {
  const operations = new Map<string, Operation>();
  for (const event of events) {
    if (event.event !== "invoke") continue;
    const { id, client, call, at } = event;
    if (operations.has(id))
      throw new Error(`two calls have the id ${id}: give each recorder a name of its own`);
    operations.set(id, {
      id,
      client,
      call,
      invokedAt: at,
      answer: { kind: "unknown" },
      answeredAt: Infinity,
    });
  }
  for (const event of events) {
    if (event.event === "answer") complete(operations.get(event.id), event);
  }
  return [...operations.values()].toSorted((a, b) => a.invokedAt - b.invokedAt);
}

function complete(
  operation: Operation | undefined,
  { id, at, answer }: HistoryEvent & { event: "answer" },
): void {
  if (operation === undefined) throw new Error(`the answer ${id} has no call`);
  if (operation.answeredAt !== Infinity) throw new Error(`the call ${id} has two answers`);
  if (answer.kind === "unknown") return;
  if (at < operation.invokedAt) throw new Error(`the call ${id} was answered before it was made`);
  operation.answer = answer;
  operation.answeredAt = at;
}

interface OpLike {
  kind: OpKind;
  type: string | number;
  canonical: string;
  value: string;
  subject?: Reference;
  source?: Reference;
  epoch?: number;
}

/** Turns an op of the core into a recorded one. */
export const batchOpOf = ({ kind, type, canonical, value, subject, source, epoch }: OpLike): BatchOp => ({
  kind,
  bucket: bucketName({ type, canonical }),
  value,
  ...(subject === undefined ? {} : { subject: reference(subject) }),
  ...(source === undefined ? {} : { source: reference(source) }),
  ...(epoch === undefined ? {} : { epoch }),
});

interface RefusalLike {
  code: string;
  reason?: string;
  conflicts?: readonly { list: string; index: number; kind: ConflictKind; owner?: "self" | "other" }[];
}

/** Codes of answers that do not exclude that the call was carried out. */
const UNCERTAIN = new Set(["UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL"]);

/**
 * Turns a refusal into a recorded answer. `ops`: the recorded batch, because conflicts give positions in its
 * three lists.
 */
export function answerOfRefusal(
  { code, reason, conflicts }: RefusalLike,
  ops: readonly BatchOp[] = [],
): Answer {
  if (UNCERTAIN.has(code)) return { kind: "unknown" };
  const seen = conflicts?.map(({ list, index, kind, owner }): SeenConflict => {
    const bucket = ops.filter((op) => `${op.kind}s` === list)[index]?.bucket;
    if (bucket === undefined)
      throw new Error(`a conflict names ${list}[${index}], which the batch does not have`);
    return { bucket, kind, ...(owner === undefined ? {} : { owner }) };
  });
  return {
    kind: "refused",
    code,
    ...(reason === undefined ? {} : { reason }),
    ...(seen === undefined ? {} : { conflicts: seen }),
  };
}

interface RecordLike {
  cell: string;
  status: SeenRecord["status"];
  lease: string | null;
  value: string;
  subject: Reference;
  source: Reference;
  epoch: number;
}

/** Turns a record of the core into a seen record. */
export const seenOf = ({ cell, status, lease, value, subject, source, epoch }: RecordLike): SeenRecord => ({
  cell,
  status,
  lease,
  value,
  subject: reference(subject),
  source: reference(source),
  epoch,
});
