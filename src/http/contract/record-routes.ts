import * as z from "zod";
import { limitTable } from "../../core/limits.ts";
import { bucketType, cellId, nothing, pageSize, pageToken, sourceType } from "./fields.ts";
import { route, type RouteError } from "./route.ts";
import {
  bucket,
  digestAnswer,
  digestQuery,
  exportLine,
  lookupResult,
  recordAnswer,
  recordPage,
} from "./schemas.ts";

const everyone = ["cell", "router", "operator"] as const;

const exampleRecord = {
  uuid: "5f0b5f0e-6c4e-4d0e-9f43-6f0a1f5b2d11",
  bucket: { type: "ROUTES", value: "gitlab-org/gitlab" },
  subject: { type: "PROJECT", id: "278964" },
  source: { type: "RAILS_TABLE_ROUTES", id: "1042" },
  cell_id: "7",
  epoch: 12,
  status: "ACTIVE",
  lease_uuid: null,
  created_at: "2026-11-20T12:00:00.000Z",
  updated_at: "2026-11-20T12:00:01.250Z",
};
const exampleOwner = { id: "7", address: "https://cell-7.example.com" };

const unsure: RouteError = {
  code: "UNAVAILABLE",
  when: "A part cannot be reached, so nobody can tell. Never read as: not found.",
};

const tooMany: RouteError = {
  code: "RESOURCE_EXHAUSTED",
  when: "One source id has more records than an answer can hold, and they are never split.",
};

/** Which of a cell's records. */
const range = {
  source_type: sourceType,
  source_id_gt: z
    .string()
    .optional()
    .meta({ description: "Only source ids after this one. Empty or left out: from the first." }),
  source_id_lte: z.string().optional().meta({ description: "Only source ids up to this one." }),
  bucket_type: z
    .array(bucketType)
    .optional()
    .meta({ description: "Only these bucket types. Give it several times for several; left out: all." }),
};

export const recordRoutes = {
  getRecord: route({
    group: "records",
    method: "GET",
    path: "/v1/records/{bucket_type}/{value}",
    rest: true,
    summary: "Look a name up",
    about:
      "Which cell owns a name. The value is the rest of the path and may hold slashes, raw or percent-encoded. A name shows as soon as its lease is granted. A cell gets only `bucket`, `status` and `cell_id` of another cell's record.",
    roles: everyone,
    params: z.strictObject({
      bucket_type: bucketType,
      value: z.string().meta({ description: "The name, in any spelling of its canonical form." }),
    }),
    query: nothing,
    responses: {
      200: {
        about: "The record and the cell that owns it.",
        schema: recordAnswer,
        example: { record: exampleRecord, cell: exampleOwner },
      },
    },
    errors: [{ code: "NOT_FOUND", when: "Nobody has the name." }, unsure],
    example: { params: { bucket_type: "ROUTES", value: "gitlab-org/gitlab" } },
  }),
  lookupRecords: route({
    group: "records",
    method: "POST",
    path: "/v1/records/lookup",
    summary: "Look many names up",
    about: `The same for up to ${limitTable.lookupBuckets.default} names, in one call and without the limits of a URL. Results are in the order of the request.`,
    roles: everyone,
    params: nothing,
    query: nothing,
    body: {
      schema: z.strictObject({ buckets: z.array(bucket).min(1) }).meta({ id: "Lookup" }),
      required: true,
    },
    responses: {
      200: {
        about: "One result per bucket, in order.",
        schema: z.strictObject({ results: z.array(lookupResult) }),
        example: { results: [{ bucket: { type: "USERNAMES", value: "alice" }, found: false }] },
      },
    },
    errors: [unsure],
    example: { body: { buckets: [{ type: "USERNAMES", value: "alice" }] } },
  }),
  listRecords: route({
    group: "records",
    method: "GET",
    path: "/v1/cells/{cell}/records",
    summary: "List a cell's records",
    about:
      "Ordered by source id: decimal ids as numbers, before all others; the others by bytes. The records of one source id are never split, so a page can be larger than asked for.",
    roles: ["cell", "operator"],
    params: z.strictObject({ cell: cellId }),
    query: z.strictObject({ ...range, page_size: pageSize.optional(), page_token: pageToken.optional() }),
    repeatable: ["bucket_type"],
    responses: {
      200: {
        about: "A page of records.",
        schema: recordPage,
        example: { as_of: "2026-11-20T12:30:00.000Z", records: [exampleRecord], next_page_token: "" },
      },
    },
    errors: [tooMany, unsure],
    example: { params: { cell: "7" }, query: { source_type: "RAILS_TABLE_ROUTES", source_id_gt: "1000" } },
  }),
  // Not `records:export`: the router takes `:export` for a parameter.
  exportRecords: route({
    group: "records",
    method: "GET",
    path: "/v1/cells/{cell}/records/export",
    summary: "Export a cell's records",
    about: `The same records in the same order, as a stream: one JSON document per line. First \`as_of\`, then the records, each with the \`cursor\` to go on from as \`source_id_gt\`, then an \`end\`: \`complete\`, or \`continue\` after about ${limitTable.exportRecords.default} records. What fails in the middle ends with an \`error\`. Without an end the stream was broken off.`,
    roles: ["cell", "operator"],
    params: z.strictObject({ cell: cellId }),
    query: z.strictObject(range),
    repeatable: ["bucket_type"],
    responses: {
      200: {
        about: "A line for each record.",
        schema: exportLine,
        mediaType: "application/x-ndjson",
        lines: true,
        example: [
          { as_of: "2026-11-20T12:00:00.000Z" },
          { record: exampleRecord, cursor: "1042" },
          { end: "complete" },
        ],
      },
    },
    errors: [tooMany, unsure],
    example: { params: { cell: "7" }, query: { source_type: "RAILS_TABLE_ROUTES", source_id_gt: "1000" } },
  }),
  digestRecords: route({
    group: "records",
    method: "POST",
    path: "/v1/cells/{cell}/records/digests",
    summary: "Digest a cell's records",
    about: `What the records of up to ${limitTable.digestRanges.default} ranges of source ids add up to, so that a cell can see without reading them whether they are what its rows say. Names whose leases are only granted are not counted; a range that a lease touches says \`held\` and proves nothing.`,
    roles: ["cell", "operator"],
    params: z.strictObject({ cell: cellId }),
    query: nothing,
    body: { schema: digestQuery, required: true },
    responses: {
      200: {
        about: "One digest per range, in order.",
        schema: digestAnswer,
        example: {
          as_of: "2026-11-20T12:30:00.000Z",
          digests: [
            {
              count: 1,
              hash: "9e8f0ec3bc1e1bffba9946d59e9f5e2a",
              held: false,
              newest_updated_at: "2026-11-20T12:00:01.250Z",
            },
          ],
        },
      },
    },
    errors: [unsure],
    example: {
      params: { cell: "7" },
      body: {
        source_type: "RAILS_TABLE_USERS",
        ranges: [{ source_id_lte: "1000" }, { source_id_gt: "1000" }],
      },
    },
  }),
};
