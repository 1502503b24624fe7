/** Random histories of clients that compete for a few names, replay calls and give up calls. */
import { NoAnswerError, type CellName, type Received, type Sent } from "../api.ts";
import {
  Random,
  SkipError,
  type Batch,
  type Check,
  type CheckContext,
  type Op,
  type SeenRecord as RecordJson,
} from "../check-context.ts";
import { checkHistory } from "../history/check-history.ts";
import {
  answerOfRefusal,
  batchOpOf,
  bucketName,
  Recorder,
  type Answer,
  type BatchOp,
  type Call,
  type ConflictKind,
  type LeaseState,
  type OpKind,
  type SeenRecord,
} from "../history/history.ts";
import { describe, expectThat, Nonconformity } from "../nonconformity.ts";

/** Small enough that a history is judged at once, and large enough that names are contended. */
const NAMES = 3;
const CLIENTS = 6;
const CALLS_OF_A_CLIENT = 20;

/** One call in so many is given up before its answer. */
const CUT_EVERY = 6;
const CUT_AFTER_MS = 6;

/** Clients mostly call about leases that were begun a short time ago. */
const RECENT = 5;

interface Begun {
  uuid: string;
  by: CellName;
  batch: Batch;
  ops: readonly BatchOp[];
}

/** The calls of clients about names of their own, as one history. */
class HistoryRun {
  readonly recorder = new Recorder();
  readonly #context: CheckContext;
  readonly #names: readonly string[];
  readonly #begun: Begun[] = [];
  #hasFailed = false;

  constructor(context: CheckContext) {
    this.#context = context;
    this.#names = context.names(NAMES);
  }

  /** Lets the clients make their calls. Ends with a look at every name and lease. */
  async run(number: number): Promise<void> {
    const { seed, api } = this.#context;
    await this.#together(async (index) => {
      const by = api.has("other") && index % 2 === 1 ? "other" : "cell";
      const random = new Random(seed, number, index);
      for (let call = 0; call < CALLS_OF_A_CLIENT && !this.#hasFailed; call += 1)
        await this.#callSomething(`c${index}`, by, random);
    });
    await this.#lookUp("end", "cell", {});
    await this.#ofAllBegun((client, begun) => this.#get(client, begun, {}));
    await this.#ofAllBegun((client, begun) => this.#decide(client, begun, "rollback", {}));
    await this.#ofAllBegun((client, begun) => this.#get(client, begun, {}));
    await this.#lookUp("end", "cell", {});
  }

  /** Runs all clients until each has ended. If one fails, the others make no further call. */
  async #together(client: (index: number) => Promise<void>): Promise<void> {
    const clients = Array.from({ length: CLIENTS }, (_, index) =>
      client(index).catch((error: unknown) => {
        this.#hasFailed = true;
        throw error;
      }),
    );
    const failed = (await Promise.allSettled(clients)).find(({ status }) => status === "rejected");
    if (failed?.status === "rejected") throw failed.reason;
  }

  #ofAllBegun(call: (client: string, begun: Begun) => Promise<void>): Promise<void> {
    const waiting = [...this.#begun];
    return this.#together(async (index) => {
      for (let begun = waiting.pop(); begun !== undefined && !this.#hasFailed; begun = waiting.pop())
        await call(`end${index}`, begun);
    });
  }

  async #callSomething(client: string, by: CellName, random: Random): Promise<void> {
    const known = this.#begun.filter((begun) => begun.by === by).slice(-RECENT);
    const isCut = random.below(CUT_EVERY) === 0;
    const cut = new AbortController();
    const timer = isCut ? setTimeout(() => cut.abort(), random.below(CUT_AFTER_MS)) : undefined;
    const sent = isCut ? { signal: cut.signal } : {};
    const die = random.below(100);
    try {
      if (die < 25) await this.#lookUp(client, by, sent);
      else if (die < 50 || known.length === 0) await this.#begin(client, this.#newBatch(by, random), sent);
      else if (die < 60) await this.#begin(client, random.pick(known), sent);
      else if (die < 70) await this.#get(client, random.pick(known), sent);
      else await this.#decide(client, random.pick(known), die < 95 ? "commit" : "rollback", sent);
    } finally {
      clearTimeout(timer);
    }
  }

  #newBatch(by: CellName, random: Random): Begun {
    const first = random.below(NAMES);
    const values = random.below(4) === 0 ? [first, (first + 1) % NAMES] : [first];
    const batch = { creates: [] as Op[], destroys: [] as Op[], replaces: [] as Op[] };
    const ops: BatchOp[] = [];
    for (const index of values) {
      const kind = random.pick<OpKind>(["create", "create", "destroy", "destroy", "replace"]);
      const value = this.#names[index] ?? "";
      const whole = this.#context.op(value, { subject: String(random.below(3)) });
      const isBare = kind === "destroy" && random.below(3) > 0;
      const op = isBare ? { bucket: whole.bucket } : whole;
      batch[`${kind}s`].push(op);
      ops.push(batchOpOf({ ...op, kind, type: op.bucket.type, canonical: value, value }));
    }
    const begun = { uuid: this.#context.newUuid(), by, batch, ops: inLists(ops) };
    this.#begun.push(begun);
    return begun;
  }

  #begin(client: string, { uuid, by, batch, ops }: Begun, sent: Sent): Promise<void> {
    const call: Call = { kind: "begin", cell: this.#context.cellId(by), lease: uuid, ops };
    return this.#record(client, call, sent, async (once) => {
      const { received } = await this.#context.begin(batch, { uuid, by, ...once });
      return received;
    });
  }

  #decide(client: string, { uuid, by }: Begun, decision: "commit" | "rollback", sent: Sent): Promise<void> {
    const outcome = decision === "commit" ? "COMMITTED" : "ROLLED_BACK";
    const call: Call = { kind: "decide", cell: this.#context.cellId(by), lease: uuid, outcome };
    return this.#record(client, call, sent, (once) => this.#context.decide({ uuid, by }, decision, once));
  }

  #get(client: string, { uuid, by }: Begun, sent: Sent): Promise<void> {
    const call: Call = { kind: "get", cell: this.#context.cellId(by), lease: uuid };
    const path = this.#context.leasePath(uuid, by);
    return this.#record(client, call, sent, (once) => this.#context.send("GET", path, { who: by, ...once }));
  }

  #lookUp(client: string, who: CellName, sent: Sent): Promise<void> {
    const buckets = this.#names.map((name) => this.#context.bucket(name));
    const call: Call = { kind: "lookup", buckets: buckets.map(nameOf) };
    return this.#record(client, call, sent, (once) =>
      this.#context.send("POST", "/v1/records/lookup", { who, body: { buckets }, ...once }),
    );
  }

  /** Records one attempt, because each may take effect. A call without an answer stays unknown. */
  async #record(
    client: string,
    call: Call,
    sent: Sent,
    send: (once: Sent) => Promise<Received>,
  ): Promise<void> {
    const id = this.recorder.invoke({ client, ...call });
    try {
      const received = await send({ ...sent, isOnce: true });
      this.recorder.complete(id, answerOf(call, received));
    } catch (error) {
      if (!(error instanceof NoAnswerError)) throw error;
    }
  }
}

/** In the order of the lists of a batch, to which conflicts refer. */
const inLists = (ops: readonly BatchOp[]): BatchOp[] =>
  (["create", "destroy", "replace"] as const).flatMap((kind) => ops.filter((op) => op.kind === kind));

const nameOf = ({ type, value }: Op["bucket"]): string => bucketName({ type, canonical: value });

interface AnswerJson {
  lease?: { state?: LeaseState; counts?: { missing: number } };
  results?: { record?: RecordJson; unavailable?: object }[];
  code?: string;
  reason?: string;
  conflicts?: { list: string; index: number; kind: ConflictKind; owner?: "self" | "other" }[];
}

function answerOf(call: Call, received: Received): Answer {
  const { lease, results, code, ...refusal } = (received.json ?? {}) as AnswerJson;
  if (received.status >= 400) {
    expectThat(typeof code === "string", `${describe(received)}; a refusal must have a code`);
    return answerOfRefusal({ code, ...refusal }, call.kind === "begin" ? call.ops : []);
  }
  if (call.kind === "lookup") {
    expectThat(results?.length === call.buckets.length, `${describe(received)}; a result is missing`);
    if (results.some(({ unavailable }) => unavailable !== undefined)) return { kind: "unknown" };
    const found = call.buckets.map((bucket, index) => [bucket, seenOf(results[index]?.record)] as const);
    return { kind: "ok", found: Object.fromEntries(found) };
  }
  expectThat(lease?.state !== undefined, `${describe(received)}; it must have a lease with a state`);
  const isBegin = call.kind === "begin";
  return { kind: "ok", state: lease.state, ...(isBegin ? { created: received.status === 201 } : {}) };
}

/** Another cell's record has few fields, and the others are not compared. */
function seenOf(record: RecordJson | undefined): SeenRecord | null {
  if (record === undefined) return null;
  const { cell_id: cell, status, lease_uuid: lease, subject, source, epoch, bucket } = record;
  return {
    cell,
    status: status as SeenRecord["status"],
    value: bucket.value,
    ...(lease === undefined ? {} : { lease }),
    ...(subject === undefined ? {} : { subject: `${subject.type}:${subject.id}` }),
    ...(source === undefined ? {} : { source: `${source.type}:${source.id}` }),
    ...(epoch === undefined ? {} : { epoch }),
  };
}

export const linearizabilityChecks: readonly Check[] = [
  {
    id: "linearizability",
    rules: ["B2", "B4", "C1", "C3", "E1", "R2"],
    title: "The answers of clients that race, replay and give up calls fit into one order for each name.",
    isPerHistory: true,
    run: async (context) => {
      for (let number = 1; number <= context.histories; number += 1) {
        const history = new HistoryRun(context);
        await history.run(number);
        const checked = checkHistory(history.recorder.events);
        if (!checked.ok)
          throw new Nonconformity(
            `history ${number} of seed ${context.seed}, for ${checked.bucket}:\n${checked.explanation}`,
          );
        if (checked.undecided.length > 0)
          throw new SkipError(
            `history ${number} is too large to judge; repeat it with fewer clients at work`,
          );
      }
    },
  },
];
