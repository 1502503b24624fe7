import * as z from "zod";
import { isCellId } from "../../auth/principal.ts";
import { limitTable } from "../../core/limits.ts";
import {
  bucketTypes,
  sourceTypes,
  subjectTypes,
  type BucketTypeName,
  type SourceTypeName,
  type SubjectTypeName,
} from "../../core/registry.ts";

// Messages complete a sentence that begins with the field's path: "creates[3].subject.id must be ...".
// Limits that an operator can lower are checked by the handlers, against the limits of the deployment.

export const nothing = z.strictObject({});

const namesOf = <Name extends string>(types: Record<Name, unknown>): [Name, ...Name[]] =>
  Object.keys(types) as [Name, ...Name[]];

export const bucketType = z
  .enum(namesOf<BucketTypeName>(bucketTypes))
  .meta({ description: "What kind of name it is." });
export const subjectType = z
  .enum(namesOf<SubjectTypeName>(subjectTypes))
  .meta({ description: "What the name is about." });
export const sourceType = z
  .enum(namesOf<SourceTypeName>(sourceTypes))
  .meta({ description: "The cell's table that the name came from." });

export const cellId = z
  .string()
  .refine(isCellId, "must be a cell id: a decimal int64 above 0, without leading zeros")
  .meta({ description: "A cell: a decimal int64 above 0.", pattern: "^[1-9][0-9]{0,18}$", examples: ["7"] });

/** In a request a cell may be named by a number too, as long as JSON can carry it. */
export const cellIdInBody = z
  .union([z.string(), z.int()], "must be a cell id: a decimal int64 above 0, as a string or a safe integer")
  .transform(String)
  .pipe(cellId)
  .meta({ description: "A cell: a decimal int64 above 0.", examples: ["7"] });

/** Versions 1 to 8 of RFC 9562, and so neither nil nor max. */
const UUID = /^[\da-f]{8}-[\da-f]{4}-[1-8][\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/i;

export const uuid = z
  .string()
  .regex(UUID, "must be a UUID (RFC 9562) other than nil and max")
  .transform((text) => text.toLowerCase())
  .meta({
    description: "A UUID of any version, other than nil and max. Answered in lower case.",
    format: "uuid",
    pattern: undefined,
  });

/** An id of a subject or source, in a request. */
export const foreignId = z
  .union([z.string(), z.int()], {
    error: ({ input }) =>
      input === undefined ? "is required" : "must be a string or an integer that JSON carries exactly",
  })
  .transform(String)
  .meta({
    description: `1 to ${limitTable.idBytes.default} bytes of UTF-8 without control characters, or a safe integer.`,
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
    description: `How many to answer at most; more than ${limitTable.maxPageItems.default} counts as ${limitTable.maxPageItems.default}.`,
  });

export const pageToken = z.string().meta({
  description:
    "The `next_page_token` of the page before, with the same query. Empty or left out: the first page.",
});

export const nextPageToken = z.string().meta({ description: "To get the next page; empty on the last one." });

export const time = z.iso
  .datetime()
  .meta({ description: "RFC 3339, UTC, milliseconds.", examples: ["2026-11-20T12:00:00.000Z"] });

/** A moment in a request; any offset. Ages are kept in milliseconds, so what is finer is rounded up: nothing before the moment is included. */
export const moment = z
  .string()
  .toUpperCase()
  .pipe(
    z.iso.datetime({
      offset: true,
      error:
        "must be a time as RFC 3339 has it, such as 2026-11-20T12:00:00Z; write the + of an offset as %2B",
    }),
  )
  .transform((text) => Date.parse(text) + (/\.\d{3}\d*[1-9]/.test(text) ? 1 : 0))
  .meta({ description: "RFC 3339, with any offset.", format: "date-time", pattern: undefined });

export const wellFormedText = (most: number, description: string) =>
  z
    .string()
    .min(1)
    .max(most)
    .refine((text) => text.isWellFormed() && !/\p{Cc}/u.test(text), "must be text without control characters")
    .meta({ description });

export const wholeNumber = z.int().min(0);
