import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import type * as z from "zod";
import { canonicalize } from "../core/canonical/canonicalize.ts";
import type { Limits } from "../core/limits.ts";
import { idFault } from "../core/ids.ts";
import { listOf, type BucketKey, type Op, type OpKind, type Source, type Subject } from "../core/messages.ts";
import { shardOf } from "../core/placement.ts";
import { ok, refused, type Result } from "../core/refusal.ts";
import type { BucketTypeName } from "../core/registry.ts";
import type * as schemas from "./contract/schemas.ts";

export type Batch = z.output<typeof schemas.batch>;

const KINDS: readonly OpKind[] = ["create", "destroy", "replace"];

interface BatchOp {
  bucket: { type: BucketTypeName; value: string };
  subject?: Subject | undefined;
  source?: Source | undefined;
  epoch?: number | undefined;
}

/**
 * Checks the ops of a begin, makes their names canonical and computes their shards. Everything that can be
 * wrong with a batch is found here, before the first message (B1).
 */
export function opsOf(batch: Batch, shards: number, limits: Limits): Result<Op[]> {
  const given = KINDS.flatMap((kind) =>
    (batch[listOf(kind)] ?? []).map((op: BatchOp, index) => ({
      kind,
      index,
      op,
      field: `${listOf(kind)}[${index}]`,
    })),
  );
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
    const key = keyOf(op.bucket, `${field}.bucket`, limits);
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
      ...(op.subject === undefined ? {} : { subject: op.subject }),
      ...(op.source === undefined ? {} : { source: op.source }),
      ...(op.epoch === undefined ? {} : { epoch: op.epoch }),
      shard: shardOf(key.value.type, key.value.canonical, shards),
    });
  }
  return ok(ops);
}

/** The key of a bucket: its type and canonical form. A refusal names `field` followed by `.value`. */
export function keyOf({ type, value }: BatchOp["bucket"], field: string, limits: Limits): Result<BucketKey> {
  const made = canonicalize(type, value, limits.valueBytes);
  return made.ok
    ? ok({ type, canonical: made.canonical })
    : refused("INVALID_ARGUMENT", `\`${field}.value\`: ${made.detail}`, { field: `${field}.value` });
}

function idsFault({ subject, source }: BatchOp, field: string, limits: Limits): Result<never> | undefined {
  for (const [name, given] of [
    ["subject", subject],
    ["source", source],
  ] as const) {
    const fault = given && idFault(given.id, limits);
    if (fault !== undefined) return invalid(`${field}.${name}.id`, fault);
  }
  return undefined;
}

export const invalid = (field: string, message: string): Result<never> =>
  refused("INVALID_ARGUMENT", `\`${field}\` ${message}`, { field });

/**
 * A hash of everything that determines what a batch does, as it was given and in the order of the request.
 * Two begins have the same batch if their hashes are equal (B2).
 */
export function payloadHash(ops: readonly Op[], allowMissing: boolean): string {
  const facts = ops.map(({ kind, type, value, subject, source, epoch }) => {
    const fact = [kind, type, value, subject?.type, subject?.id, source?.type, source?.id];
    // The epoch is appended only if it is given, so that stored hashes of batches without one stay valid.
    return epoch === undefined ? fact : [...fact, epoch];
  });
  return bytesToHex(sha256(new TextEncoder().encode(JSON.stringify([1, allowMissing, facts]))));
}
