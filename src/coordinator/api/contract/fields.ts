import * as z from "zod";
import { isCellId } from "../../auth/principal.ts";
import { limitTable } from "../../../common/limits.ts";
import { TYPE_NAME } from "../../../common/types/document.ts";
import { positionsForm, readPositions, type Positions } from "../../../users/router/positions.ts";

// Each message completes a sentence that begins with the field's path: "creates[3].subject.id must be ...".
// An operator can change some limits, so the handlers check those against the deployment's values.

export const nothing = z.strictObject({});

const typeName = (kind: string) =>
  z.string().regex(TYPE_NAME, `must be the name of a ${kind} type, which matches ${TYPE_NAME.source}`);

// The ids mark the places where openapi.json lists the types of the deployment.
export const bucketType = typeName("bucket").meta({
  id: "BucketType",
  description: "The kind of name. The same value in two bucket types is two names.",
});
export const subjectType = typeName("subject").meta({
  id: "SubjectType",
  description: "The type of the entity that the name is about.",
});
export const sourceType = typeName("source").meta({
  id: "SourceType",
  description: "The table of the cell's database that the name comes from.",
});

export const cellId = z
  .string()
  .refine(isCellId, "must be a cell id: a decimal int64 above 0, without leading zeros")
  .meta({
    description: "The id of a cell: a decimal int64 above 0.",
    pattern: "^[1-9][0-9]{0,18}$",
    examples: ["7"],
  });

/** Request bodies may also give a cell id as a number, as long as JSON represents it exactly. */
export const cellIdInBody = z
  .union([z.string(), z.int()], "must be a cell id: a decimal int64 above 0, as a string or a safe integer")
  .transform(String)
  .pipe(cellId)
  .meta({ description: "The id of a cell: a decimal int64 above 0.", examples: ["7"] });

export const keyId = z
  .string()
  .regex(/^[\w-]{1,64}$/, "must be a key id: 1 to 64 letters, digits, `_` or `-`")
  .meta({ description: "The id of the key." });

/** Versions 1 to 8 of RFC 9562. The nil and max UUIDs have other versions, so they don't match. */
const UUID = /^[\da-f]{8}-[\da-f]{4}-[1-8][\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/i;

export const uuid = z
  .string()
  .regex(UUID, "must be a UUID of version 1 to 8 (RFC 9562)")
  .transform((text) => text.toLowerCase())
  .meta({
    description: "A UUID of version 1 to 8 (RFC 9562). Answers have it in lower case.",
    format: "uuid",
    pattern: undefined,
  });

/** The id of a transfer: its destination, whose ledger has it, and its UUID. */
export const transferId = z
  .string()
  .refine(
    (text) => readTransferId(text) !== undefined,
    "must be the id of a transfer: the id of a cell, `-`, and a UUID",
  )
  .transform((text) => text.toLowerCase())
  .meta({
    description: "The id of a transfer: the id of its destination, `-`, and its UUID.",
    pattern: "^[1-9][0-9]{0,18}-[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
    examples: ["7-01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42"],
  });

/** Returns the destination and the UUID of a transfer's id. Undefined: it is none. */
export function readTransferId(id: string): { to: string; transfer: string } | undefined {
  const [, to = "", transfer = ""] = /^(\d+)-(.*)$/.exec(id) ?? [];
  return isCellId(to) && UUID.test(transfer) ? { to, transfer } : undefined;
}

/** The id of a subject or source in a request. The cell chooses it. */
export const foreignId = z
  .union([z.string(), z.int()], {
    error: ({ input }) =>
      input === undefined ? "is required" : "must be a string, or an integer that JSON represents exactly",
  })
  .transform(String)
  .meta({
    description:
      `1 to ${limitTable.idBytes.default} bytes of UTF-8 without control characters, or an integer that ` +
      "JSON represents exactly.",
    examples: ["42"],
  });

export const pageSize = z
  .string()
  .regex(/^0*[1-9]\d{0,15}$/, "must be a whole number above 0")
  .transform(Number)
  .meta({
    type: "integer",
    minimum: 1,
    pattern: undefined,
    default: limitTable.pageItems.default,
    description:
      `The most items to answer. A value above ${limitTable.maxPageItems.default} counts as ` +
      `${limitTable.maxPageItems.default}.`,
  });

export const pageToken = z.string().meta({
  description:
    "The `next_page_token` of the previous page, sent with the same path and filters. Empty or left " +
    "out: the first page.",
});

export const nextPageToken = z
  .string()
  .meta({ description: "Send it as `page_token` to get the next page. Empty on the last page." });

export const time = z.iso
  .datetime()
  .meta({ description: "RFC 3339, in UTC, with milliseconds.", examples: ["2026-11-20T12:00:00.000Z"] });

/**
 * A time in a request, with any offset. Times are stored in milliseconds, so a finer time is rounded up: a
 * filter never includes anything before it.
 */
export const moment = z
  .string()
  .toUpperCase()
  .pipe(
    z.iso.datetime({
      offset: true,
      error: "must be an RFC 3339 time, such as 2026-11-20T12:00:00Z; write the + of an offset as %2B",
    }),
  )
  .transform((text) => Date.parse(text) + (/\.\d{3}\d*[1-9]/.test(text) ? 1 : 0))
  .meta({ description: "RFC 3339, with any UTC offset.", format: "date-time", pattern: undefined });

export const wellFormedText = (most: number, description: string) =>
  z
    .string()
    .min(1)
    .max(most)
    .refine((text) => text.isWellFormed() && !/\p{Cc}/u.test(text), "must be text without control characters")
    .meta({ description });

/** Larger than the limit `reason_bytes` can be. The handler checks the deployment's limit. */
const MAX_REASON = 4_096;

export const reason = wellFormedText(MAX_REASON, "Why you do this. The audit keeps it.");

export const wholeNumber = z.int().min(0);

const EXAMPLES = ["3:4711,5:88"];

/** Positions of shards in a request, as pairs such as `3:4711,5:88`. */
export const positionsOf = (description: string) =>
  z
    .string()
    .transform((text, context): Positions => {
      const positions = readPositions(text);
      if (typeof positions !== "string") return positions;
      context.addIssue({ code: "custom", message: positions });
      return z.NEVER;
    })
    .meta({ ...positionsForm, description, examples: EXAMPLES });

/** Positions of shards in an answer. */
export const positionsText = (description: string) =>
  z.string().meta({ ...positionsForm, description, examples: EXAMPLES });

/** Positions that an answer must have reached (Q9). */
export const minPosition = positionsOf(
  "Positions of shards that you have seen, as pairs `shard:position` with commas between them. If the " +
    "shard of a name has not reached its position, the name is unavailable. Pairs of other shards have " +
    "no effect.",
);
