import type * as z from "zod";
import { canonicalize } from "../../common/canonical/canonicalize.ts";
import type { Limits } from "../../common/limits.ts";
import { idFault } from "../../common/ids.ts";
import { listOf, type BucketKey, type Op, type OpKind } from "../kernel/messages.ts";
import { shardOf } from "../kernel/placement.ts";
import { ok, refused, type Result } from "../kernel/refusal.ts";
import { sha256Of } from "../../common/sha256.ts";
import type { TypeEntry, Types } from "../../common/types/types.ts";
import type * as schemas from "./contract/schemas.ts";
import type { TypeReference } from "../capabilities/types/edge/types-copy.ts";
import { wallClock } from "../runtime.ts";

export type Batch = z.output<typeof schemas.batch>;

const KINDS: readonly OpKind[] = ["create", "destroy", "replace"];

interface Typed {
  type: string;
  id: string;
}

interface ApiBucket {
  type: string;
  value: string;
}

interface BatchOp {
  bucket: ApiBucket;
  subject?: Typed | undefined;
  source?: Typed | undefined;
  scope?: string | undefined;
  epoch?: number | undefined;
}

interface GivenOp {
  kind: OpKind;
  index: number;
  op: BatchOp;
  /** Its place in the request, such as `creates[3]`. */
  field: string;
}

const givenOps = (batch: Batch): GivenOp[] =>
  KINDS.flatMap((kind) =>
    (batch[listOf(kind)] ?? []).map((op: BatchOp, index) => ({
      kind,
      index,
      op,
      field: `${listOf(kind)}[${index}]`,
    })),
  );

/** Returns the types that a batch names, each with its first place. */
export function typesIn(batch: Batch): TypeReference[] {
  const references = new Map<string, TypeReference>();
  const add = (kind: TypeReference["kind"], typed: { type: string } | undefined, field: string): void => {
    if (typed === undefined || references.has(`${kind} ${typed.type}`)) return;
    references.set(`${kind} ${typed.type}`, { kind, name: typed.type, field: `${field}.${kind}.type` });
  };
  for (const { op, field } of givenOps(batch)) {
    add("bucket", op.bucket, field);
    add("subject", op.subject, field);
    add("source", op.source, field);
  }
  return [...references.values()];
}

/**
 * Checks the ops of a begin, makes their names canonical and computes their shards. Everything that can be
 * wrong with a batch is found here, before the first message to a ledger (B1). All types must be declared.
 */
export function opsOf(...args: CheckedBatch): Result<Op[]> {
  const check = new BatchCheck(...args);
  for (const given of check.given) if (!check.add(given)) break;
  return check.result();
}

/** The same as `opsOf`, but other requests run after each part of a large batch (M8). */
export async function opsInParts(...args: CheckedBatch): Promise<Result<Op[]>> {
  const check = new BatchCheck(...args);
  for await (const given of inParts(check.given, ({ op }) => op.bucket.value)) if (!check.add(given)) break;
  return check.result();
}

type CheckedBatch = [batch: Batch, types: Types, shards: number, limits: Limits];

class BatchCheck {
  readonly given: readonly GivenOp[];
  readonly #types: Types;
  readonly #shards: number;
  readonly #limits: Limits;
  readonly #ops: Op[] = [];
  readonly #fieldByName = new Map<string, string>();
  #fault: Result<never> | undefined;

  constructor(...[batch, types, shards, limits]: CheckedBatch) {
    const given = givenOps(batch);
    this.#types = types;
    this.#shards = shards;
    this.#limits = limits;
    this.#fault = countFault(given, batch.allow_missing ?? false, limits);
    this.given = this.#fault === undefined ? given : [];
  }

  result(): Result<Op[]> {
    return this.#fault ?? ok(this.#ops);
  }

  /** False: the op is wrong, and so is the batch. */
  add(given: GivenOp): boolean {
    const op = this.#checked(given);
    if (op.ok) this.#ops.push(op.value);
    else this.#fault = op;
    return op.ok;
  }

  #checked({ kind, index, op, field }: GivenOp): Result<Op> {
    const key = keyOf(op.bucket, this.#types, `${field}.bucket`, this.#limits);
    if (!key.ok) return key;
    const id = idsFault(op, field, this.#limits);
    if (id !== undefined) return id;
    const name = `${key.value.type}:${key.value.canonical}`;
    const before = this.#fieldByName.get(name);
    if (before !== undefined)
      return invalid(
        `${field}.bucket`,
        `is the same name as \`${before}.bucket\`; a batch may have each name only once`,
      );
    this.#fieldByName.set(name, field);
    return ok({
      ...key.value,
      kind,
      index,
      value: op.bucket.value,
      ...(op.subject === undefined ? {} : { subject: numbered(this.#types, "subject", op.subject) }),
      ...(op.source === undefined ? {} : { source: numbered(this.#types, "source", op.source) }),
      ...(op.scope === undefined ? {} : { scope: op.scope }),
      ...(op.epoch === undefined ? {} : { epoch: op.epoch }),
      shard: shardOf(key.value.type, key.value.canonical, this.#shards),
    });
  }
}

/** A batch may be empty if it allows missing claims, because then it may hold nothing anyway (B12). */
function countFault(
  given: readonly GivenOp[],
  allowMissing: boolean,
  { batchOps }: Limits,
): Result<never> | undefined {
  if (given.length === 0 && !allowMissing)
    return invalid("body", "must have at least one op in `creates`, `destroys` or `replaces`");
  const tooMany = given[batchOps];
  return (
    tooMany &&
    invalid(tooMany.field, `is beyond the limit of ${batchOps} ops in all lists together; split the batch`)
  );
}

const numbered = (types: Types, kind: "subject" | "source", { type, id }: Typed) => ({
  type: declared(types.named(kind, type)).number,
  id,
});

/** All types of a request are checked before anything else is done with it (T4). */
function declared(entry: TypeEntry | undefined): TypeEntry {
  if (entry === undefined) throw new Error("a type was not checked before its use");
  return entry;
}

/** The key of a bucket: its type and canonical form. A refusal names `field` followed by `.value`. */
export function keyOf(
  { type, value }: ApiBucket,
  types: Types,
  field: string,
  limits: Limits,
): Result<BucketKey> {
  const { number, rule } = declared(types.named("bucket", type));
  if (rule === null) throw new Error(`the bucket type ${type} has no canonical rule`);
  const made = canonicalize(rule, value, limits.valueBytes);
  return made.ok
    ? ok({ type: number, canonical: made.canonical })
    : refused("INVALID_ARGUMENT", `\`${field}.value\`: ${made.detail}`, { field: `${field}.value` });
}

function idsFault(
  { subject, source, scope }: BatchOp,
  field: string,
  limits: Limits,
): Result<never> | undefined {
  for (const [name, given] of [
    ["subject", subject],
    ["source", source],
  ] as const) {
    const fault = given && idFault(given.id, limits);
    if (fault !== undefined) return invalid(`${field}.${name}.id`, fault);
  }
  const fault = scope === undefined ? undefined : idFault(scope, limits);
  return fault === undefined ? undefined : invalid(`${field}.scope`, fault);
}

export const invalid = (field: string, message: string): Result<never> =>
  refused("INVALID_ARGUMENT", `\`${field}\` ${message}`, { field });

/**
 * A hash of everything that determines what a batch does, as it was given and in the order of the request.
 * Two begins have the same batch if their hashes are equal (B2).
 */
export function payloadHash(ops: readonly Op[], allowMissing: boolean): string {
  const facts = ops.map(({ kind, type, value, subject, source, epoch, scope }) => {
    const fact = [kind, type, value, subject?.type, subject?.id, source?.type, source?.id];
    if (scope !== undefined) return [...fact, epoch ?? null, scope];
    return epoch === undefined ? fact : [...fact, epoch];
  });
  return sha256Of(JSON.stringify([1, allowMissing, facts]));
}

/**
 * The length of the names after which other work may run, in UTF-16 units. Checking
 * them takes about half a millisecond, and a whole one if normalization has to sort marks.
 */
const PART_LENGTH = 4_096;

/** What a name costs whatever its length, because its shard has to be computed. */
const NAME_LENGTH = 16;

/**
 * Goes through items that each have a name. After each part of them, it lets the work of other requests run.
 * Checking all names of a large request at once would delay each step of every other request by as much.
 */
export async function* inParts<Item>(
  items: Iterable<Item>,
  nameOf: (item: Item) => string,
): AsyncGenerator<Item, void, void> {
  let length = 0;
  for (const item of items) {
    if (length >= PART_LENGTH) {
      await new Promise<void>((resume) => void wallClock.after(0, resume));
      length = 0;
    }
    length += NAME_LENGTH + nameOf(item).length;
    yield item;
  }
}
