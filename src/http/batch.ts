import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import type * as z from "zod";
import { canonicalize } from "../core/canonical/canonicalize.ts";
import type { Limits } from "../core/limits.ts";
import { idFault } from "../core/ids.ts";
import { listOf, type BucketKey, type Op, type OpKind } from "../core/messages.ts";
import { shardOf } from "../core/placement.ts";
import { ok, refused, type Result } from "../core/refusal.ts";
import type { TypeEntry, Types } from "../core/types/types.ts";
import type * as schemas from "./contract/schemas.ts";
import type { TypeReference } from "./types-copy.ts";

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
export function opsOf(batch: Batch, types: Types, shards: number, limits: Limits): Result<Op[]> {
  const given = givenOps(batch);
  if (given.length === 0)
    return invalid("body", "must have at least one op in `creates`, `destroys` or `replaces`");
  const tooMany = given[limits.batchOps];
  if (tooMany !== undefined)
    return invalid(
      tooMany.field,
      `is beyond the limit of ${limits.batchOps} ops in all lists together; split the batch`,
    );

  const ops: Op[] = [];
  const fieldByName = new Map<string, string>();
  for (const { kind, index, op, field } of given) {
    const key = keyOf(op.bucket, types, `${field}.bucket`, limits);
    if (!key.ok) return key;
    const id = idsFault(op, field, limits);
    if (id !== undefined) return id;
    const name = `${key.value.type}:${key.value.canonical}`;
    const before = fieldByName.get(name);
    if (before !== undefined)
      return invalid(
        `${field}.bucket`,
        `is the same name as \`${before}.bucket\`; a batch may have each name only once`,
      );
    fieldByName.set(name, field);
    ops.push({
      ...key.value,
      kind,
      index,
      value: op.bucket.value,
      ...(op.subject === undefined ? {} : { subject: numbered(types, "subject", op.subject) }),
      ...(op.source === undefined ? {} : { source: numbered(types, "source", op.source) }),
      ...(op.scope === undefined ? {} : { scope: op.scope }),
      ...(op.epoch === undefined ? {} : { epoch: op.epoch }),
      shard: shardOf(key.value.type, key.value.canonical, shards),
    });
  }
  return ok(ops);
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
  return bytesToHex(sha256(new TextEncoder().encode(JSON.stringify([1, allowMissing, facts]))));
}
