import * as z from "zod";
import { cellStates } from "./cell-states.ts";
import { operationKinds } from "../../capabilities/operations/operations.ts";
import { errorCodes, type ErrorCode } from "../../kernel/refusal.ts";
import { verificationStatuses } from "../../../common/status/verification-statuses.ts";
import { MAX_TYPES } from "../../../common/types/document.ts";
import {
  bucketType,
  cellId,
  foreignId,
  keyId,
  nextPageToken,
  sourceType,
  subjectType,
  time,
  wellFormedText,
  wholeNumber,
} from "./fields.ts";
import { boundedList } from "./lists.ts";

// The schemas of requests. They are strict: an unknown field is refused. `POST /v1/classify` has its own.

export const bucket = z
  .strictObject({
    type: bucketType,
    value: z.string().meta({
      description: "The name as somebody typed it. It and its canonical form have 1 to 1,024 bytes of UTF-8.",
      examples: ["gitlab-org"],
    }),
  })
  .meta({ id: "Bucket", description: "The thing that must be unique: a type and a value." });

const subjectGiven = z
  .strictObject({ type: subjectType, id: foreignId })
  .meta({ id: "SubjectGiven", description: "The entity that the name is about, such as a user or a group." });
const sourceGiven = z
  .strictObject({ type: sourceType, id: foreignId })
  .meta({ id: "SourceGiven", description: "The row of the cell's database that the name comes from." });

const epoch = z
  .int()
  .min(1)
  .optional()
  .meta({
    description:
      "The `epoch` of the record that the op is based on. If the claim has another epoch, the " +
      "op is refused as a `mismatch`. Left out: the op applies to the claim as it is.",
  });

const scopeGiven = foreignId.optional().meta({
  description:
    "What the claim belongs to, such as the id of an organization. A transfer moves the names of one " +
    "scope. Left out: the claim has none.",
  examples: ["9970"],
});

const createOp = z.strictObject({ bucket, subject: subjectGiven, source: sourceGiven, scope: scopeGiven });
const destroyOp = z.strictObject({
  bucket,
  subject: subjectGiven.optional(),
  source: sourceGiven.optional(),
  epoch,
});
const replaceOp = z.strictObject({
  bucket,
  subject: subjectGiven,
  source: sourceGiven,
  scope: scopeGiven,
  epoch,
});

export const batch = z
  .strictObject({
    creates: boundedList(createOp, "batchOps", {
      description: "Names to take. Each name must be free.",
    }).optional(),
    destroys: boundedList(destroyOp, "batchOps", {
      description:
        "Names to give up. Each name must belong to the cell. Subject, source and epoch are compared " +
        "with the claim if given.",
    }).optional(),
    replaces: boundedList(replaceOp, "batchOps", {
      description:
        "Names of the cell that get a new subject, source, scope or spelling. The name is never free in " +
        "between.",
    }).optional(),
    allow_missing: z
      .boolean()
      .optional()
      .meta({
        description:
          "If true, destroys of names without a claim are counted in `counts.missing`, replaces of them " +
          "without `epoch` claim them, and the batch may be empty. Otherwise all these are refused.",
      }),
    verification: z
      .boolean()
      .optional()
      .meta({
        description:
          "If true, a verification of the cell makes this begin. While a shard is reconciled, it grants " +
          "no others.",
      }),
    wait_ms: z
      .int()
      .min(0)
      .optional()
      .meta({
        description:
          "How long the begin may wait for names that are leased, instead of being refused at once: first " +
          "come, first served. It holds nothing while it waits. If the time ends first, or too many others " +
          "wait, it is refused as without it. At most 30,000 by default (`begin_wait_ms`). Left out or 0: " +
          "it doesn't wait. It is no part of the batch, so a repeated call may have another value.",
        examples: [10_000],
      }),
  })
  .meta({
    id: "Batch",
    description:
      "The ops of one lease: all of them are granted, or none. It must have at least one op, " +
      "and no name twice.",
  });

// The schemas of answers.

export const subject = z
  .strictObject({ type: subjectType, id: z.string() })
  .meta({ id: "Subject", description: "The entity that the name is about, such as a user or a group." });
export const source = z
  .strictObject({ type: sourceType, id: z.string() })
  .meta({ id: "Source", description: "The row of the cell's database that the name comes from." });

export const scope = z
  .string()
  .optional()
  .meta({ description: "What the claim belongs to, as its cell has said. Absent: it has none." });

const createShown = z.strictObject({ bucket, subject, source, scope });
const destroyShown = z.strictObject({
  bucket,
  subject: subject.optional(),
  source: source.optional(),
  epoch,
});
const replaceShown = z.strictObject({ bucket, subject, source, scope, epoch });

export const lease = z
  .strictObject({
    uuid: z.uuid(),
    cell_id: cellId,
    state: z.enum(["GRANTED", "COMMITTED", "ROLLED_BACK"]),
    created_at: time,
    age_ms: wholeNumber.meta({
      description: "The age of the lease in milliseconds at the time of this answer, by its ledger's clock.",
    }),
    idle_ms: wholeNumber.optional().meta({
      description:
        "Milliseconds since the lease was granted, or renewed last. Only while it is GRANTED. This decides " +
        "whether it is stale.",
    }),
    renewed_at: time.optional().meta({ description: "When its cell renewed it last." }),
    renewal_reason: z.string().optional().meta({ description: "Why its cell still works on it." }),
    decided_at: time.optional(),
    decided_by: z.enum(["cell", "operator"]).optional().meta({ description: "Who decided the lease." }),
    decided_by_key: z
      .string()
      .optional()
      .meta({ description: "The id of the operator's key, if an operator decided the lease." }),
    reason: z.string().optional().meta({ description: "The reason that the operator gave." }),
    counts: z
      .strictObject({
        creates: wholeNumber,
        destroys: wholeNumber,
        replaces: wholeNumber,
        missing: wholeNumber.meta({ description: "Destroys of names that had no claim." }),
      })
      .meta({ id: "LeaseCounts" }),
    creates: z
      .array(createShown)
      .optional()
      .meta({ description: "Only while the lease is GRANTED, and not in lists." }),
    destroys: z
      .array(destroyShown)
      .optional()
      .meta({ description: "Only while the lease is GRANTED, and not in lists." }),
    replaces: z
      .array(replaceShown)
      .optional()
      .meta({ description: "Only while the lease is GRANTED, and not in lists." }),
  })
  .meta({ id: "Lease", description: "One batch of one cell, granted as a whole." });

export const leaseAnswer = z.strictObject({ lease });

export const placedLeaseAnswer = z.strictObject({
  lease,
  positions: z
    .record(z.string(), wholeNumber)
    .optional()
    .meta({
      description:
        "Positions of the lease's shards, by the number of the shard, from which on lookups show the " +
        "lease. Send that of a name's shard as `min_position` with `GET /v1/route/…`. Absent once the " +
        "lease was decided some time ago.",
    }),
});

export const leasePage = z.strictObject({ leases: z.array(lease), next_page_token: nextPageToken });

const status = z.enum(["ACTIVE", "LEASE_CREATING", "LEASE_DESTROYING"]);

export const wholeRecord = z
  .strictObject({
    uuid: z.uuid(),
    bucket,
    subject,
    source,
    scope,
    cell_id: cellId,
    epoch: wholeNumber.meta({
      description: "Identifies this version of the claim. Each later owner of the name has a larger epoch.",
    }),
    status,
    lease_uuid: z.uuid().nullable().meta({ description: "The lease that holds the name now, if any." }),
    transfer_id: z
      .string()
      .optional()
      .meta({
        description:
          "Present if a transfer holds the name: its id. `lease_uuid` is then the UUID of the transfer, " +
          "and no lease of the cell.",
        examples: ["7-01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42"],
      }),
    created_at: time,
    updated_at: time,
  })
  .meta({
    id: "ClaimRecord",
    description:
      "The ownership of a name by a cell. `ACTIVE`: permanent. `LEASE_CREATING`: a granted " +
      "lease creates it. `LEASE_DESTROYING`: a lease that destroys it holds the name.",
  });

export const foreignRecord = z
  .strictObject({ bucket, cell_id: cellId, status })
  .meta({ id: "ForeignRecord", description: "The part of another cell's record that a cell may see." });

export const record = z.union([wholeRecord, foreignRecord]);

export const owner = z
  .strictObject({
    id: cellId,
    address: z.string().meta({ description: "The base URL to which requests for this name go." }),
  })
  .meta({ id: "OwnerCell", description: "The cell that owns the name." });

export const recordAnswer = z.strictObject({ record, cell: owner });

/** What a router needs to know about an answer to decide whether to keep it. */
export const routeFacts = z
  .strictObject({
    key: z.string().meta({
      description:
        "A hash of the name, as 16 hexadecimal digits, by which reports refer to it. Different names may " +
        "have the same key.",
      examples: ["9f2c47d1a05be836"],
    }),
    shard: wholeNumber.meta({ description: "The number of the name's shard." }),
    position: wholeNumber.meta({
      description: "The shard's position when the name was read. Each change of the shard makes it larger.",
    }),
    settled: z.boolean().meta({
      description: "False: a lease holds the name, so the answer may change at any time. Don't keep it.",
    }),
    age_ms: wholeNumber.meta({
      description:
        "The age of the answer in milliseconds when it was sent. A cache adds the time since it sent its " +
        "question.",
    }),
  })
  .meta({ id: "RouteFacts", description: "What an answer about a name is worth." });

const asOf = time.meta({
  description:
    "The time at which the reading began, by the coordinator's clock. RFC 3339, in UTC, with " +
    "milliseconds.",
});

export const recordPage = z.strictObject({
  as_of: asOf,
  records: z.array(wholeRecord),
  split: z.boolean().meta({
    description:
      "True: the next page continues with records of the last source id of this page, because that id has " +
      "more records than fit into a page.",
  }),
  next_page_token: nextPageToken,
});

const sourceRange = z
  .strictObject({
    source_id_gt: foreignId
      .optional()
      .meta({ description: "Only source ids after this one. Left out: from the first." }),
    source_id_lte: foreignId
      .optional()
      .meta({ description: "Only source ids up to and including this one. Left out: to the last." }),
  })
  .meta({
    id: "SourceRange",
    description:
      "A range of source ids, in the order of the list of records: decimal ids as numbers " +
      "first, then all others by bytes.",
  });

export const digestQuery = z
  .strictObject({
    source_type: sourceType,
    bucket_types: boundedList(bucketType, MAX_TYPES, {
      min: 1,
      description: "Only claims of these bucket types. Left out: all types.",
    }).optional(),
    ranges: boundedList(sourceRange, "digestRanges", {
      min: 1,
      description: "Ranges in ascending order, without overlap.",
    }),
  })
  .meta({ id: "DigestQuery" });

const rangeDigest = z
  .strictObject({
    count: wholeNumber.meta({ description: "The number of claims in the range." }),
    hash: z.string().meta({
      description:
        "32 hexadecimal digits: the sum of the claims' digests, as four 32-bit words, each modulo 2^32.",
      examples: ["0".repeat(32)],
    }),
    held: z.boolean().meta({
      description:
        "True: a hold touches the range, or the range has more claims than " +
        "could be read at one moment. Then the digest proves nothing, and `count` may be too small.",
    }),
    newest_updated_at: time
      .nullable()
      .meta({ description: "The latest `updated_at` of the range's claims. Null: there are none." }),
  })
  .meta({ id: "RangeDigest", description: "The digest of a cell's claims in one range." });

export const digestAnswer = z.strictObject({
  as_of: asOf,
  digests: z.array(rangeDigest).meta({ description: "One digest per range, in the order of the request." }),
});

/** Ages of runs are limited, so that a time never is before 1970. */
const MAX_AGO_MS = 315_360_000_000;

const ago = (what: string) =>
  z
    .int()
    .min(0)
    .max(MAX_AGO_MS)
    .meta({ description: `Milliseconds from ${what} until this was sent. At most ten years.` });

const sdkWord = (what: string) =>
  z
    .string()
    .regex(/^[\w.@/+-]{1,64}$/, "must be 1 to 64 letters, digits or characters of . _ - + @ /")
    .meta({ description: what });

const sdk = z
  .strictObject({
    name: sdkWord("The name of the SDK, or of your own code."),
    version: sdkWord("Its version."),
  })
  .meta({ id: "Sdk", description: "The code that the cell runs." });

const countsOf = <const Names extends readonly string[]>(names: Names) =>
  z.strictObject(
    Object.fromEntries(names.map((name) => [name, wholeNumber.optional()])) as Record<
      Names[number],
      z.ZodOptional<typeof wholeNumber>
    >,
  );

const reconciliationFields = {
  outcome: z.enum(["done", "aborted"]).meta({
    description: "`aborted`: a list could not be read to its end, so some leases were left to the next run.",
  }),
  is_full: z.boolean().optional().meta({
    description: "Whether the run read all leases, and local rows without an outstanding lease.",
  }),
  counts: countsOf(["processed", "committed", "rolled_back", "pending", "orphaned", "contradicted", "failed"])
    .optional()
    .meta({ id: "ReconciliationCounts", description: "What the run did, by result." }),
  stale_leases: wholeNumber.optional().meta({
    description: "Leases that are stale for the cell and that the run could not decide.",
  }),
  unreleased_deletions: wholeNumber.optional().meta({
    description: "Leases with names of deleted rows that the run tried to release without success.",
  }),
};

const verificationFields = {
  status: z.enum(verificationStatuses).meta({
    description:
      "How the run ended. `needs_approval`: it would change more than its limits allow, so it waits for a " +
      "person.",
  }),
  is_applied: z
    .boolean()
    .optional()
    .meta({ description: "False for a dry run, which changes nothing. Left out: unknown." }),
  counts: countsOf([
    "rows",
    "claims",
    "ranges",
    "equal_ranges",
    "records",
    "missing",
    "different",
    "extra",
    "created",
    "replaced",
    "destroyed",
    "recent",
    "leased",
    "other_cell",
    "duplicates",
    "unnameable",
    "needed",
    "not_verified",
    "changed",
  ])
    .optional()
    .meta({
      id: "VerificationCounts",
      description:
        "What the verification has found and repaired so far, as in the report of the SDK. Drift is " +
        "`missing`, `different`, `extra`, `duplicates` and `unnameable`.",
    }),
  approval_reason: wellFormedText(256, "With `needs_approval`: which limit the run would exceed.").optional(),
};

const agesOfRun = { started_ago_ms: ago("the start of the run").optional() };
const timesOfRun = {
  started_at: time.optional(),
  ended_at: time,
  ended_ago_ms: wholeNumber.meta({ description: "Milliseconds from the end of the run until this answer." }),
  last_done_at: time
    .optional()
    .meta({ description: "When the last run that was done has ended. Left out: none was reported." }),
};

/** What a cell sends. */
export const statusReport = z
  .strictObject({
    sdk,
    reconciliation: z
      .strictObject({
        ...reconciliationFields,
        ...agesOfRun,
        ended_ago_ms: ago("the end of the run").optional(),
      })
      .optional()
      .meta({ id: "ReconciliationReport", description: "The last reconciliation." }),
    verification: z
      .strictObject({
        ...verificationFields,
        ...agesOfRun,
        ended_ago_ms: ago("the end of the run").optional(),
      })
      .optional()
      .meta({ id: "VerificationReport", description: "The last verification that did something." }),
  })
  .meta({ id: "StatusReport", description: "What a cell says of itself." });

/** What operators see. */
export const cellStatus = z
  .strictObject({
    cell_id: cellId,
    reported_at: time.meta({ description: "When the last report arrived, by the ledger's clock." }),
    age_ms: wholeNumber.meta({ description: "Milliseconds from the last report until this answer." }),
    sdk,
    reconciliation: z
      .strictObject({ ...reconciliationFields, ...timesOfRun })
      .optional()
      .meta({ id: "ReportedReconciliation", description: "The last reconciliation that was reported." }),
    verification: z
      .strictObject({ ...verificationFields, ...timesOfRun })
      .optional()
      .meta({ id: "ReportedVerification", description: "The last verification that was reported." }),
  })
  .meta({ id: "CellStatus", description: "What a cell said of itself last. Nothing is decided by it." });

export const cell = z
  .strictObject({
    cell_id: cellId,
    name: z.string(),
    address: z.string(),
    location_hint: z.string().nullable(),
    state: z
      .enum(cellStates)
      .nullable()
      .meta({
        description:
          "FROZEN: begins are refused, and everything else works. DRAINING: like FROZEN, but the begins of " +
          "a verification are granted. Null: the cell's ledger cannot be reached.",
      }),
    outstanding_leases: wholeNumber.nullable().meta({
      description:
        "The number of leases that are granted and not decided. Null: the cell's ledger cannot be reached.",
    }),
    unapplied_decisions: wholeNumber.nullable().meta({
      description:
        "The number of decisions that some shard has not applied yet; some 10,000 are counted at most. " +
        "Null: the cell's ledger cannot be reached.",
    }),
    stored_bytes: wholeNumber.nullable().meta({
      description:
        "The size of the cell's ledger in bytes. Near the limit `ledger_bytes`, begins are refused with " +
        "`LEDGER_FULL`. Null: the cell's ledger cannot be reached.",
    }),
    removed_at: time.nullable().meta({
      description:
        "When the cell was removed. From then on, its keys are refused, and its id is never used again. " +
        "Null: it was not removed.",
    }),
    status: cellStatus.nullable().meta({
      description:
        "What the cell said of itself last. Null: it has never reported, or its ledger cannot be reached.",
    }),
    created_at: time,
    updated_at: time.meta({
      description:
        "The time of the last change of the cell's name, address or state. If `state` is null, the time of " +
        "the last change of its name or address.",
    }),
  })
  .meta({ id: "Cell" });

export const role = z.enum(["cell", "router", "operator", "viewer", "scraper", "bridge"]);

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
    key: z.string().meta({ description: "The key itself. It is shown only here and stored nowhere." }),
  })
  .meta({ id: "MintedKey" });

export const key = z
  .strictObject({ ...keyFields, revoked_at: time.nullable() })
  .meta({ id: "Key", description: "The stored facts about a key, without the key itself." });

const codeNames = Object.keys(errorCodes) as [ErrorCode, ...ErrorCode[]];

const conflict = z
  .strictObject({
    list: z.enum(["creates", "destroys", "replaces"]),
    index: wholeNumber,
    bucket,
    kind: z.enum(["leased", "taken", "not_owner", "absent", "mismatch"]).meta({
      description:
        "`leased`: a lease holds the name, so waiting helps. `taken`: a name to create has a " +
        "claim. `not_owner`: another cell has the claim, and is not destroying it. " +
        "`absent`: there is no claim. " +
        "`mismatch`: the claim has another subject, source or epoch.",
    }),
    owner: z.enum(["self", "other"]).optional(),
    retry_after_ms: wholeNumber.optional(),
  })
  .meta({
    id: "Conflict",
    description: "One op of the batch that prevents the begin. It never names the other cell.",
  });

export const operationId = z
  .string()
  .regex(/^[\w-]{1,64}$/, "must be the id of an operation: 1 to 64 letters, digits, `_` or `-`")
  .meta({ description: "The id of the operation. A reconciliation has the id of its part." });

export const operation = z
  .strictObject({
    id: operationId,
    kind: z.enum(operationKinds).meta({
      description:
        "`growth`: the deployment gets more shards. `restore`: a backup is restored. `reconciliation`: a " +
        "shard has accepted that it went back in time, until it is finished.",
    }),
    about: z.string().meta({ description: "`shards`, `deployment`, or a part such as `shard-3`." }),
    started_at: time,
    started_by: keyId.meta({ description: "The key of the operator who started it." }),
    how_to_end: z.string().meta({ description: "How an operator ends it." }),
  })
  .meta({
    id: "Operation",
    description: "Something that an operator has started, and that takes longer than a call.",
  });

export const problem = z
  .strictObject({
    type: z.string().meta({ description: "The part of the reference page that explains the code." }),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.enum(codeNames),
    reason: z
      .string()
      .optional()
      .meta({ description: "A finer constant than the code, such as `LEASE_COMMITTED`." }),
    field: z
      .string()
      .optional()
      .meta({ description: "The wrong part of the request, such as `creates[3].bucket.value`." }),
    retryable: z.boolean().meta({ description: "Whether the same call, unchanged, may succeed later." }),
    request_id: z.string(),
    conflicts: z
      .array(conflict)
      .optional()
      .meta({ description: "Every op that is in the way, not only the first." }),
    operation: operation
      .optional()
      .meta({ description: "Only with `OPERATION_RUNNING`: the operation that is in the way." }),
    lease_uuid: z.string().optional().meta({
      description: "The id of a begin whose outcome is unknown. Repeat the begin with `PUT` and this id.",
    }),
    retry_after_ms: wholeNumber.optional().meta({
      description:
        "Milliseconds to wait before trying again. Only in the last line of an export, which has " +
        "no `Retry-After`.",
    }),
    route: routeFacts
      .optional()
      .meta({ description: "Only if no cell has the name of `GET /v1/route`: what that answer is worth." }),
    message: z
      .string()
      .optional()
      .meta({ description: "Only from `POST /v1/classify`: the sentence of GitLab's Topology Service." }),
    failed: z
      .array(z.string())
      .optional()
      .meta({ description: "The parts that do not answer. Only from `GET /readyz`." }),
  })
  .meta({ id: "Problem", description: "A problem (RFC 9457). Every 4xx and 5xx answer is one." });

export const exportLine = z
  .union([
    z.strictObject({
      as_of: time.meta({
        description: "The first line: the time at which the reading began, by the coordinator's clock.",
      }),
    }),
    z.strictObject({
      record: wholeRecord,
      cursor: z.string().meta({
        description:
          "The last source id whose records are complete with this line. To continue, send it as " +
          "`source_id_gt`. Empty: none is complete yet, so start from the beginning.",
      }),
    }),
    z.strictObject({
      end: z.literal("complete").meta({ description: "The last line: there are no more records." }),
    }),
    z.strictObject({
      end: z.literal("continue").meta({
        description:
          "The last line: there may be more records. To get them, call again with `source_id_gt` " +
          "set to `cursor`.",
      }),
      cursor: z.string(),
    }),
    z.strictObject({ error: problem }),
  ])
  .meta({
    id: "ExportLine",
    description:
      "One line of an export. If the last line is neither `end` nor `error`, the stream broke off and " +
      "is incomplete.",
  });

export const point = z
  .strictObject({ incarnation: wholeNumber, position: wholeNumber })
  .meta({ id: "HistoryPoint", description: "A moment in the history of a part." });
