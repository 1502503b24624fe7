import * as z from "zod";
import { limitTable } from "../../../../common/limits.ts";
import { MAX_TYPES } from "../../../../common/types/document.ts";
import {
  bucketType,
  cellId,
  nextPageToken,
  nothing,
  pageSize,
  pageToken,
  sourceType,
  subjectType,
} from "../../../api/contract/fields.ts";
import { boundedList } from "../../../api/contract/lists.ts";
import { route, tooManyReads, type RouteError } from "../../../api/contract/route.ts";
import {
  bucket,
  digestAnswer,
  digestQuery,
  exportLine,
  owner,
  record,
  recordAnswer,
  recordPage,
  wholeRecord,
} from "../../../api/contract/schemas.ts";
import { UNAVAILABLE_NAME, unavailable } from "../../../api/contract/unavailable.ts";

const everyone = ["cell", "router", "operator", "viewer"] as const;

/** The messages that one search sends to shards, each of which visits up to `scan_rows` claims. */
export const SEARCH_CALLS = 50;

const CLAIMS_PER_SEARCH = (SEARCH_CALLS * limitTable.scanRows.default).toLocaleString("en");

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
const lookupResult = z
  .strictObject({
    bucket,
    found: z.boolean(),
    record: record.optional(),
    cell: owner.optional(),
  })
  .meta({ id: "LookupResult", description: "`record` and `cell` are present if the name was found." });

const unavailableName = z
  .strictObject({ bucket, unavailable })
  .meta({ id: "UnavailableName", description: UNAVAILABLE_NAME });

export const lookupResults = z.array(z.union([lookupResult, unavailableName]));

const exampleOwner = { id: "7", address: "https://cell-7.example.com" };

const unsure: RouteError = {
  code: "UNAVAILABLE",
  when:
    "A part of the coordinator cannot be reached, so the answer is unknown. Don't treat it as 'not " +
    "found'.",
};

const tooMany: RouteError = {
  code: "RESOURCE_EXHAUSTED",
  when: "One source id has more records than one export can have. Read them with the list.",
};

/** The filters that select some of a cell's records. */
const range = {
  source_type: sourceType,
  source_id_gt: z.string().optional().meta({
    description:
      "Only source ids after this one, in the order of the listing. Empty or left out: from the first.",
  }),
  source_id_lte: z
    .string()
    .optional()
    .meta({ description: "Only source ids up to and including this one. Left out: to the last." }),
  bucket_type: boundedList(bucketType, MAX_TYPES, {
    description:
      "Only records of this bucket type. Repeat the parameter for several types. Left out: all types.",
  }).optional(),
};

export const recordRoutes = {
  getRecord: route({
    group: "records",
    method: "GET",
    path: "/v1/records/{bucket_type}/{value}",
    rest: true,
    summary: "Look up a name",
    about:
      "Answers which cell owns a name. The value is the rest of the path and may contain slashes, raw " +
      "or percent-encoded. A new name is found as soon as its lease is granted. A cell key gets only " +
      "`bucket`, `status` and `cell_id` of another cell's record.",
    roles: everyone,
    params: z.strictObject({
      bucket_type: bucketType,
      value: z.string().meta({ description: "The name, in any spelling that has its canonical form." }),
    }),
    query: nothing,
    responses: {
      200: {
        about: "The record and the cell that owns it.",
        schema: recordAnswer,
        example: { record: exampleRecord, cell: exampleOwner },
      },
    },
    errors: [{ code: "NOT_FOUND", when: "No cell has the name." }, unsure],
    example: { params: { bucket_type: "ROUTES", value: "gitlab-org/gitlab" } },
  }),
  lookupRecords: route({
    group: "records",
    method: "POST",
    path: "/v1/records/lookup",
    summary: "Look up many names",
    about:
      `Looks up as many as ${limitTable.lookupBuckets.default} names in one call. The results are in the ` +
      "order of the request. A name whose answer is unknown has `unavailable` instead of `found`. If that " +
      "is so for every name, the call fails like a call for one name.",
    roles: everyone,
    params: nothing,
    query: nothing,
    body: {
      schema: z
        .strictObject({
          buckets: boundedList(bucket, "lookupBuckets", { min: 1, description: "The names to look up." }),
        })
        .meta({ id: "Lookup" }),
      required: true,
    },
    responses: {
      200: {
        about: "One result per bucket, in the order of the request.",
        schema: z.strictObject({ results: lookupResults }),
        example: { results: [{ bucket: { type: "USERNAMES", value: "alice" }, found: false }] },
      },
    },
    errors: [unsure],
    example: { body: { buckets: [{ type: "USERNAMES", value: "alice" }] } },
  }),
  searchRecords: route({
    group: "records",
    method: "GET",
    path: "/v1/admin/records",
    summary: "Search the names of a subject",
    about:
      "Lists the records of all cells that have a subject. Subjects have no index, so a search reads every " +
      `claim: about ${CLAIMS_PER_SEARCH} in one call. A page may have few records or none although more ` +
      "follow: only an empty `next_page_token` ends the search. A name of a lease that is open, or was " +
      "committed a moment ago, may be missing.",
    roles: ["operator", "viewer"],
    params: nothing,
    query: z.strictObject({
      subject_type: subjectType,
      subject_id: z.string().meta({ description: "The id of the subject.", examples: ["42"] }),
      page_size: pageSize.optional(),
      page_token: pageToken.optional(),
    }),
    responses: {
      200: {
        about: "A page of records.",
        schema: z.strictObject({ records: z.array(wholeRecord), next_page_token: nextPageToken }),
        example: { records: [exampleRecord], next_page_token: "" },
      },
    },
    errors: [unsure],
    example: { query: { subject_type: "PROJECT", subject_id: "278964" } },
  }),
  listRecords: route({
    group: "records",
    method: "GET",
    path: "/v1/cells/{cell}/records",
    summary: "List a cell's records",
    about:
      "Lists the cell's records in the order of their source ids: decimal ids as numbers first, then " +
      "all others by bytes. A page contains all records of its source ids, so it may be larger than " +
      "`page_size`. Only if one id has more records than fit into a page, the page ends within it " +
      "(`split`). A page may have few records or none although more follow: only an empty " +
      "`next_page_token` ends the list.",
    roles: ["cell", "operator", "viewer"],
    params: z.strictObject({ cell: cellId }),
    query: z.strictObject({ ...range, page_size: pageSize.optional(), page_token: pageToken.optional() }),
    responses: {
      200: {
        about: "A page of records.",
        schema: recordPage,
        example: {
          as_of: "2026-11-20T12:30:00.000Z",
          records: [exampleRecord],
          split: false,
          next_page_token: "",
        },
      },
    },
    errors: [tooManyReads, unsure],
    example: { params: { cell: "7" }, query: { source_type: "RAILS_TABLE_ROUTES", source_id_gt: "1000" } },
  }),
  // The path isn't `records:export`, because the router would take `:export` for a parameter.
  exportRecords: route({
    group: "records",
    method: "GET",
    path: "/v1/cells/{cell}/records/export",
    summary: "Export a cell's records",
    about:
      "Answers the same records as the list, in the same order, as a stream with one JSON document per " +
      `line. The first line is \`as_of\`. Each record follows with a \`cursor\`: to continue from there, ` +
      `send it as \`source_id_gt\`. The last line is \`end\` (\`complete\`, or \`continue\` after about ` +
      `${limitTable.exportRecords.default} records) or \`error\`. If the last line is neither, the stream ` +
      "broke off and is incomplete.",
    roles: ["cell", "operator", "viewer"],
    params: z.strictObject({ cell: cellId }),
    query: z.strictObject(range),
    responses: {
      200: {
        about: "The stream of lines.",
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
    errors: [tooMany, tooManyReads, unsure],
    example: { params: { cell: "7" }, query: { source_type: "RAILS_TABLE_ROUTES", source_id_gt: "1000" } },
  }),
  digestRecords: route({
    group: "records",
    method: "POST",
    path: "/v1/cells/{cell}/records/digests",
    summary: "Digest a cell's records",
    about:
      `Computes a digest of the cell's claims for each of up to ${limitTable.digestRanges.default} ranges ` +
      "of source ids. A cell that computes the same from its own rows sees which ranges agree, without " +
      "reading the records. Names whose leases are only granted don't count, and decisions that were " +
      "answered before the call do. A digest with `held` proves nothing. Ask for ranges of some thousand " +
      "claims: a larger range is read in parts, and counts as held if anything of the cell changes then.",
    roles: ["cell", "operator", "viewer"],
    params: z.strictObject({ cell: cellId }),
    query: nothing,
    body: { schema: digestQuery, required: true },
    responses: {
      200: {
        about: "One digest per range, in the order of the request.",
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
    errors: [tooManyReads, unsure],
    example: {
      params: { cell: "7" },
      body: {
        source_type: "RAILS_TABLE_USERS",
        ranges: [{ source_id_lte: "1000" }, { source_id_gt: "1000" }],
      },
    },
  }),
};
