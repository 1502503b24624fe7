import * as z from "zod";
import { errorCodes, type ErrorCode } from "../../core/refusal.ts";
import {
  bucketType,
  cellId,
  foreignId,
  nextPageToken,
  sourceType,
  subjectType,
  time,
  wholeNumber,
} from "./fields.ts";

/** What goes over the wire, by name. Requests are strict: an unknown field is refused. */

// In requests

export const bucket = z
  .strictObject({
    type: bucketType,
    value: z.string().meta({
      description: "As typed. 1 to 1,024 bytes of UTF-8, typed and canonical.",
      examples: ["gitlab-org"],
    }),
  })
  .meta({ id: "Bucket", description: "The thing that must be unique." });

const subjectGiven = z
  .strictObject({ type: subjectType, id: foreignId })
  .meta({ id: "SubjectGiven", description: "Whom the name is about." });
const sourceGiven = z
  .strictObject({ type: sourceType, id: foreignId })
  .meta({ id: "SourceGiven", description: "The row the name came from." });

const epoch = z
  .int()
  .min(1)
  .optional()
  .meta({ description: "Of the claim as it was read: a claim of another epoch is a `mismatch`." });

const createOp = z.strictObject({ bucket, subject: subjectGiven, source: sourceGiven });
const destroyOp = z.strictObject({
  bucket,
  subject: subjectGiven.optional(),
  source: sourceGiven.optional(),
  epoch,
});
const replaceOp = z.strictObject({ bucket, subject: subjectGiven, source: sourceGiven, epoch });

export const batch = z
  .strictObject({
    creates: z.array(createOp).optional().meta({ description: "Names to take. Each must be free." }),
    destroys: z.array(destroyOp).optional().meta({
      description: "Names to give up. Each must be yours; subject, source and epoch are compared when given.",
    }),
    replaces: z.array(replaceOp).optional().meta({
      description:
        "Names that stay yours and get a new subject, source or spelling. Commit swaps them at once.",
    }),
    allow_missing: z
      .boolean()
      .optional()
      .meta({ description: "Destroys of names that nobody has are counted instead of refused." }),
  })
  .meta({ id: "Batch", description: "All or nothing. No name may appear twice, in one list or in two." });

// In answers

const subject = z
  .strictObject({ type: subjectType, id: z.string() })
  .meta({ id: "Subject", description: "Whom the name is about." });
const source = z
  .strictObject({ type: sourceType, id: z.string() })
  .meta({ id: "Source", description: "The row the name came from." });

const createShown = z.strictObject({ bucket, subject, source });
const destroyShown = z.strictObject({
  bucket,
  subject: subject.optional(),
  source: source.optional(),
  epoch,
});
const replaceShown = z.strictObject({ bucket, subject, source, epoch });

export const lease = z
  .strictObject({
    uuid: z.uuid(),
    cell_id: cellId,
    state: z.enum(["GRANTED", "COMMITTED", "ROLLED_BACK"]),
    created_at: time,
    age_ms: wholeNumber.meta({
      description: "How old the lease was when this was answered, by the clock of its ledger.",
    }),
    decided_at: time.optional(),
    decided_by: z.enum(["cell", "operator"]).optional().meta({ description: "Whose decision it was." }),
    reason: z.string().optional().meta({ description: "The operator's reason." }),
    counts: z
      .strictObject({
        creates: wholeNumber,
        destroys: wholeNumber,
        replaces: wholeNumber,
        missing: wholeNumber.meta({ description: "Destroys of names that nobody had." }),
      })
      .meta({ id: "LeaseCounts" }),
    creates: z.array(createShown).optional().meta({ description: "While GRANTED, and not in listings." }),
    destroys: z.array(destroyShown).optional().meta({ description: "While GRANTED, and not in listings." }),
    replaces: z.array(replaceShown).optional().meta({ description: "While GRANTED, and not in listings." }),
  })
  .meta({ id: "Lease", description: "One batch of one cell, all or nothing." });

export const leaseAnswer = z.strictObject({ lease });

export const leasePage = z.strictObject({ leases: z.array(lease), next_page_token: nextPageToken });

const status = z.enum(["ACTIVE", "LEASE_CREATING", "LEASE_DESTROYING"]);

export const wholeRecord = z
  .strictObject({
    uuid: z.uuid(),
    bucket,
    subject,
    source,
    cell_id: cellId,
    epoch: wholeNumber.meta({ description: "Larger for every later owner of the name." }),
    status,
    lease_uuid: z.uuid().nullable().meta({ description: "The lease that holds the name at the moment." }),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: "Record", description: "Permanent ownership of a name by a cell." });

export const foreignRecord = z
  .strictObject({ bucket, cell_id: cellId, status })
  .meta({ id: "ForeignRecord", description: "What a cell learns of another cell's record." });

const record = z.union([wholeRecord, foreignRecord]);

const owner = z
  .strictObject({
    id: cellId,
    address: z.string().meta({ description: "Where to send requests for this name." }),
  })
  .meta({ id: "OwnerCell", description: "The cell that owns the name." });

export const recordAnswer = z.strictObject({ record, cell: owner });

export const lookupResult = z
  .strictObject({
    bucket,
    found: z.boolean(),
    record: record.optional(),
    cell: owner.optional(),
  })
  .meta({ id: "LookupResult", description: "`record` and `cell` are there when it was found." });

const asOf = time.meta({
  description: "When the reading began, by the coordinator's clock. RFC 3339, UTC, milliseconds.",
});

export const recordPage = z.strictObject({
  as_of: asOf,
  records: z.array(wholeRecord),
  next_page_token: nextPageToken,
});

export const digestQuery = z
  .strictObject({
    source_type: sourceType,
    bucket_types: z
      .array(bucketType)
      .min(1)
      .optional()
      .meta({ description: "Only these bucket types; left out: all." }),
    ranges: z
      .array(
        z
          .strictObject({
            source_id_gt: foreignId.optional().meta({ description: "Only source ids after this one." }),
            source_id_lte: foreignId.optional().meta({ description: "Only source ids up to this one." }),
          })
          .meta({
            id: "SourceRange",
            description:
              "Of source ids, in the order of the listing: decimal ids as numbers, before all others.",
          }),
      )
      .min(1)
      .meta({ description: "In order, and none begins before the end of the one before it." }),
  })
  .meta({ id: "DigestQuery" });

const rangeDigest = z
  .strictObject({
    count: wholeNumber.meta({ description: "Claims in the range." }),
    hash: z.string().meta({
      description: "32 hexadecimal digits: the digests of the claims, added up in four lanes modulo 2^32.",
      examples: ["0".repeat(32)],
    }),
    held: z
      .boolean()
      .meta({ description: "A lease touches the range, or a claim in it has no digest: it proves nothing." }),
    newest_updated_at: time.nullable().meta({ description: "Of its claims; null: there are none." }),
  })
  .meta({ id: "RangeDigest", description: "What a range of a cell's claims adds up to." });

export const digestAnswer = z.strictObject({
  as_of: asOf,
  digests: z.array(rangeDigest).meta({ description: "One for each range, in order." }),
});

export const cell = z
  .strictObject({
    cell_id: cellId,
    name: z.string(),
    address: z.string(),
    location_hint: z.string().nullable(),
    state: z.enum(["ACTIVE", "FROZEN"]).nullable().meta({
      description: "FROZEN: begins are refused, all else works. Null when its ledger cannot be reached.",
    }),
    outstanding_leases: wholeNumber
      .nullable()
      .meta({ description: "Granted and not decided. Null when its ledger cannot be reached." }),
    unapplied_decisions: wholeNumber.nullable().meta({
      description: "Decisions that some shard has not applied yet. Null when its ledger cannot be reached.",
    }),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: "Cell" });

export const role = z.enum(["cell", "router", "operator"]);

const keyFields = {
  id: z.string(),
  role,
  cell_id: cellId.nullable(),
  created_at: time,
  expires_at: time,
  note: z.string().nullable(),
};

export const mintedKey = z
  .strictObject({
    ...keyFields,
    key: z.string().meta({ description: "The key itself. It is shown once and stored nowhere." }),
  })
  .meta({ id: "MintedKey" });

export const key = z
  .strictObject({ ...keyFields, revoked_at: time.nullable() })
  .meta({ id: "Key", description: "What is remembered of a key; not the key itself." });

const codeNames = Object.keys(errorCodes) as [ErrorCode, ...ErrorCode[]];

const conflict = z
  .strictObject({
    list: z.enum(["creates", "destroys", "replaces"]),
    index: wholeNumber,
    bucket,
    kind: z
      .enum(["leased", "taken", "not_owner", "absent", "mismatch"])
      .meta({ description: "`leased` passes; the others stay until somebody changes the claim." }),
    owner: z.enum(["self", "other"]).optional(),
    retry_after_ms: wholeNumber.optional(),
  })
  .meta({
    id: "Conflict",
    description: "One op of the batch that stands in the way. The other cell is never named.",
  });

export const problem = z
  .strictObject({
    type: z.string().meta({ description: "Where the reference explains the code." }),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.enum(codeNames),
    reason: z.string().optional().meta({ description: "Finer than the code, where a caller may act on it." }),
    field: z
      .string()
      .optional()
      .meta({ description: "What is wrong in the request, such as `creates[3].bucket.value`." }),
    retryable: z.boolean().meta({ description: "Whether the same call may succeed later, unchanged." }),
    request_id: z.string(),
    conflicts: z
      .array(conflict)
      .optional()
      .meta({ description: "Every op that stands in the way, not just the first." }),
    lease_uuid: z
      .string()
      .optional()
      .meta({ description: "Of a begin whose outcome is not known: repeat it with PUT and this id." }),
    retry_after_ms: wholeNumber
      .optional()
      .meta({ description: "In the last line of an export, which has no `Retry-After`." }),
    failed: z.array(z.string()).optional().meta({ description: "The parts that are not ready." }),
  })
  .meta({ id: "Problem", description: "RFC 9457. Every 4xx and 5xx answer is one." });

export const exportLine = z
  .union([
    z.strictObject({
      as_of: time.meta({
        description: "The first line: when the reading began, by the coordinator's clock.",
      }),
    }),
    z.strictObject({
      record: wholeRecord,
      cursor: z.string().meta({
        description:
          "The last source id that is complete with this line. Give it as `source_id_gt` to go on; empty: there is none yet, and that begins anew.",
      }),
    }),
    z.strictObject({
      end: z.literal("complete").meta({ description: "The last line: there are no more records." }),
    }),
    z.strictObject({
      end: z
        .literal("continue")
        .meta({ description: "The last line: there may be more behind `cursor`, which another call gives." }),
      cursor: z.string(),
    }),
    z.strictObject({ error: problem }),
  ])
  .meta({
    id: "ExportLine",
    description:
      "A line of an export. One whose last line is neither an `end` nor an `error` was broken off.",
  });
