import * as z from "zod";
import {
  bucketType,
  cellId,
  cellIdInBody,
  foreignId,
  nextPageToken,
  nothing,
  pageSize,
  pageToken,
  reason,
  sourceType,
  time,
  transferId,
  uuid,
  wholeNumber,
} from "../../../api/contract/fields.ts";
import { auditFull, route, tooManyReads, type RouteError } from "../../../api/contract/route.ts";

const roles = ["cell", "operator"] as const;
const readers = ["cell", "operator", "viewer"] as const;

const UUID = "01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42";
const ID = `7-${UUID}`;
const HASH = "8f1f9c1b64c5e8a1d0b3a2716e5f4c39";

const shownId = z.string().meta({
  description: "The id of a transfer: the id of its destination, `-`, and its UUID.",
  examples: [ID],
});
const scope = z.string().meta({ description: "The scope whose claims are moved.", examples: ["9970"] });
const moved = {
  from: cellIdInBody.optional().meta({
    description: "The source: the cell that has the claims. Required of operators; a cell is its own source.",
  }),
  to: cellIdInBody.meta({ description: "The destination: the cell that gets the claims." }),
  scope: foreignId.meta({ description: "The scope whose claims are moved.", examples: ["9970"] }),
};

const stepReason = reason.optional().meta({
  description: "Why you do this. Required of operators, whose change has an audit entry.",
});

const count = wholeNumber.meta({ description: "The number of claims, or of rows that have one." });
const hash = z
  .string()
  .regex(/^[\da-f]{32}$/, "must be 32 hexadecimal digits in lower case")
  .meta({
    description: "Their digest, computed as for `POST …/records/digests`.",
    examples: ["0".repeat(32)],
  });

const digested = z.strictObject({ count, hash }).meta({ id: "DigestedClaims" });

const stepFields = {
  at: time,
  age_ms: wholeNumber.meta({
    description: "How long ago that is, by the clock of the destination's ledger.",
  }),
  by: z
    .enum(["operator", "from", "to"])
    .meta({ description: "Who did it: an operator, the source (`from`) or the destination (`to`)." }),
  key_id: z
    .string()
    .nullable()
    .meta({ description: "The id of the key. Null: a key of somebody else, which a cell does not get." }),
  reason: z.string().nullable(),
};
const step = z.strictObject(stepFields).meta({ id: "TransferStep" });

const report = z
  .strictObject({
    count: count.nullable(),
    hash: hash.nullable(),
    is_equal: z.boolean().meta({ description: "True if it equals what the shards have counted." }),
    ...stepFields,
  })
  .meta({
    id: "TransferReport",
    description: "What a cell has reported of its rows. The other cell gets neither `count` nor `hash`.",
  });

const transfer = z
  .strictObject({
    id: shownId,
    uuid: z.uuid().meta({
      description: "The lease of the transfer, as the history of names and the change feed have it.",
    }),
    from: cellId,
    to: cellId,
    scope,
    state: z.enum(["PREPARED", "CUT", "FINISHED", "ABORTED"]).meta({
      description:
        "`PREPARED`: the scope is held on all shards. `CUT`: the names belong to the destination, and some " +
        "shards still rewrite them. `FINISHED`: all shards have rewritten them. `ABORTED`: nothing has " +
        "changed. But if `is_rebuilt` is true, the ledger may have lost a cut, which shards have carried " +
        "out.",
    }),
    prepared: step,
    accepted: step.nullable().meta({ description: "Null: the destination has not accepted it." }),
    decided: step.nullable().meta({ description: "The cut or the abort. Null: neither." }),
    switch_back_of: shownId.nullable().meta({ description: "The transfer that this one undoes." }),
    is_rebuilt: z.boolean().meta({
      description:
        "True if the ledger has lost the transfer and got it back from the shards: an operator decides it.",
    }),
    expected: z.strictObject({ from: digested.nullable(), to: digested.nullable() }).meta({
      description:
        "What each cell must report: the source the claims that it has, and the destination those that it " +
        "will have in the scope. A cell gets only its own, and null for the other one.",
    }),
    reports: z.strictObject({ from: report.nullable(), to: report.nullable() }).meta({
      description: "What each cell has reported last. Null: nothing.",
    }),
    missing: z
      .array(z.string())
      .meta({ description: "What a cut would be refused for. Empty: it can be cut, or it is decided." }),
    unfinished_shards: wholeNumber.nullable().meta({
      description:
        "The shards that have not carried out the decision. 0: all have. Null: not decided, or not known " +
        "since a restart of the ledger.",
    }),
  })
  .meta({ id: "Transfer", description: "A move of all claims of a scope from one cell to another." });

const transferAnswer = z.strictObject({ transfer });

const plan = z
  .strictObject({
    from: cellId,
    to: cellId,
    scope,
    claims: z
      .array(z.strictObject({ source_type: sourceType, bucket_type: bucketType, count: wholeNumber }))
      .meta({ description: "The claims that would be moved, by their types." }),
    claims_total: wholeNumber.meta({ description: "The sum of the counts." }),
    present_claims: wholeNumber.nullable().meta({
      description:
        "The claims that the destination has in the scope already. It keeps them. Null for a cell.",
    }),
    leases: z.array(z.strictObject({ cell_id: cellId, uuid: z.uuid() })).meta({
      description:
        "Some leases of the source that hold names of the scope. They must end before the prepare.",
    }),
    obstacles: z
      .array(z.string())
      .meta({ description: "What a prepare would be refused for now. Empty: nothing." }),
    cursor: z
      .string()
      .nullable()
      .meta({
        description:
          "Not null: this answer counts only some of the claims. Repeat the call with this `cursor`, and " +
          "add up the counts. Null: no claim is left to count.",
      }),
  })
  .meta({ id: "TransferPlan", description: "What a transfer would move. Nothing was changed." });

const exampleStep = {
  at: "2026-11-20T12:00:00.000Z",
  age_ms: 240_000,
  by: "from",
  key_id: "01936f6e-0000-7c3e-9d56-3a1f0c9b7e42",
  reason: null,
};
const counted = { count: 4_211, hash: HASH };
const exampleTransfer = {
  transfer: {
    id: ID,
    uuid: UUID,
    from: "3",
    to: "7",
    scope: "9970",
    state: "PREPARED",
    prepared: exampleStep,
    accepted: null,
    decided: null,
    switch_back_of: null,
    is_rebuilt: false,
    expected: { from: counted, to: null },
    reports: { from: { ...counted, is_equal: true, ...exampleStep, age_ms: 30_000 }, to: null },
    missing: ["cell 7 has not accepted it", "cell 7 has not reported its rows"],
    unfinished_shards: null,
  },
};

const unknownTransfer: RouteError = {
  code: "NOT_FOUND",
  when: "There is no such transfer, it was forgotten, or the caller's cell has no part in it.",
};
const unknownCells: RouteError = {
  code: "NOT_FOUND",
  reason: "CELL_UNKNOWN",
  when: "The source or the destination is not registered.",
};
const wasCut: RouteError = {
  code: "FAILED_PRECONDITION",
  reason: "TRANSFER_CUT",
  when: "The transfer was cut. That is final; move the claims back with a switch-back.",
};
const wasAborted: RouteError = {
  code: "FAILED_PRECONDITION",
  reason: "TRANSFER_ABORTED",
  when: "The transfer was aborted. That is final; prepare another one.",
};
const unsure: readonly RouteError[] = [
  { code: "UNAVAILABLE", when: "A part cannot be reached. Repeat the call, with the same ids." },
  { code: "DEADLINE_EXCEEDED", when: "There was no answer in time. Repeat the call, with the same ids." },
  auditFull,
];

const params = z.strictObject({ id: transferId });
const stepBody = {
  schema: z.strictObject({ reason: stepReason }).meta({ id: "TransferStepGiven" }),
  required: false,
};

const answer = (about: string) => ({ 200: { about, schema: transferAnswer, example: exampleTransfer } });

export const transferRoutes = {
  planTransfer: route({
    group: "transfers",
    method: "POST",
    path: "/v1/transfer-plan",
    summary: "Show what a transfer would move",
    about:
      "Counts the claims of a scope by their types, and says what would be in the way of a prepare. " +
      "Changes nothing.",
    roles: readers,
    params: nothing,
    query: nothing,
    body: {
      schema: z
        .strictObject({
          ...moved,
          cursor: z
            .string()
            .optional()
            .meta({
              description:
                "The `cursor` of the previous answer, sent with the same body. Empty or left out: the " +
                "first call.",
            }),
        })
        .meta({ id: "TransferPlanGiven" }),
      required: true,
    },
    responses: {
      200: {
        about: "The claims that would be moved.",
        schema: z.strictObject({ plan }),
        example: {
          plan: {
            from: "3",
            to: "7",
            scope: "9970",
            claims: [{ source_type: "RAILS_TABLE_ROUTES", bucket_type: "ROUTES", count: 4_211 }],
            claims_total: 4_211,
            present_claims: 0,
            leases: [],
            obstacles: [],
            cursor: null,
          },
        },
      },
    },
    errors: [unknownCells, tooManyReads],
    example: { body: { to: "7", scope: "9970" } },
  }),
  prepareTransfer: route({
    group: "transfers",
    method: "POST",
    path: "/v1/transfers",
    summary: "Prepare a transfer",
    about:
      "Holds the names that a cell has in a scope on all shards, or on none. From then on, they can't be " +
      "changed or released, and the cell can't claim more, until the transfer is cut or aborted. You " +
      "choose the UUID, so you can repeat the call if its answer was lost. For the source, or an operator.",
    roles,
    params: nothing,
    query: nothing,
    body: {
      schema: z
        .strictObject({
          uuid: uuid.meta({ description: "A new UUID. The id of the transfer is made from it." }),
          ...moved,
          switch_back_of: transferId.optional().meta({
            description:
              "The finished transfer that this one undoes. The prepare is refused if the names of the " +
              "scope have changed since, or if it was cut too long ago.",
          }),
          reason: stepReason,
        })
        .meta({ id: "TransferGiven" }),
      required: true,
    },
    history: true,
    responses: answer("The transfer, as it is now."),
    errors: [
      unknownCells,
      {
        code: "ABORTED",
        reason: "TRANSFER_BLOCKED",
        when:
          "Leases of the source hold names of the scope, or another transfer does. `detail` names some of " +
          "them. Try again when they have ended, with the same UUID or a new one.",
      },
      {
        code: "FAILED_PRECONDITION",
        reason: "TRANSFER_TOO_LARGE",
        when: "A shard has more claims of the scope than one transfer moves (limit `transfer_claims`).",
      },
      {
        code: "FAILED_PRECONDITION",
        reason: "LEASE_ID_REUSED",
        when: "The UUID was used for something else.",
      },
      {
        code: "FAILED_PRECONDITION",
        reason: "LEASE_ROLLED_BACK",
        when: "The transfer with this UUID was aborted. Prepare one with a new UUID.",
      },
      {
        code: "FAILED_PRECONDITION",
        reason: "CELL_FROZEN",
        when: "The destination is frozen.",
      },
      {
        code: "FAILED_PRECONDITION",
        reason: "CELL_DRAINING",
        when: "The destination is draining.",
      },
      {
        code: "FAILED_PRECONDITION",
        reason: "CELL_REMOVING",
        when: "The destination is being removed.",
      },
      {
        code: "FAILED_PRECONDITION",
        reason: "TRANSFER_NOT_READY",
        when: "The transfer of `switch_back_of` is not `FINISHED`.",
      },
      {
        code: "FAILED_PRECONDITION",
        reason: "SWITCH_BACK_OVER",
        when: "The transfer of `switch_back_of` was cut too long ago (limit `switch_back_s`).",
      },
      {
        code: "FAILED_PRECONDITION",
        reason: "SCOPE_EMPTY",
        when: "The source has no claims of the scope. Check `from` and `scope`.",
      },
      {
        code: "FAILED_PRECONDITION",
        reason: "SCOPE_CHANGED",
        when: "The names of the scope have changed since the transfer of `switch_back_of`.",
      },
      {
        code: "RESOURCE_EXHAUSTED",
        reason: "TOO_MANY_TRANSFERS",
        when: "Too many transfers of the source are prepared. Cut or abort some of them.",
      },
      {
        code: "RESOURCE_EXHAUSTED",
        reason: "LEDGER_FULL",
        when: "The destination's ledger has no room. Try again after `Retry-After`.",
      },
      ...unsure,
    ],
    example: { body: { uuid: UUID, to: "7", scope: "9970" } },
  }),
  listTransfers: route({
    group: "transfers",
    method: "GET",
    path: "/v1/transfers",
    summary: "List transfers",
    about:
      "Lists transfers, in the order of their destinations, and for each of them the latest first. A cell " +
      "gets those in which it is the source or the destination. A page may have fewer transfers than asked " +
      "for; the last one has no `next_page_token`.",
    roles: readers,
    params: nothing,
    query: z.strictObject({
      page_size: pageSize.optional(),
      page_token: pageToken.optional(),
      from: cellId.optional().meta({ description: "Only transfers from this cell." }),
      to: cellId.optional().meta({ description: "Only transfers to this cell." }),
    }),
    history: true,
    responses: {
      200: {
        about: "A page of transfers.",
        schema: z.strictObject({ transfers: z.array(transfer), next_page_token: nextPageToken }),
        example: { transfers: [exampleTransfer.transfer], next_page_token: "" },
      },
    },
    errors: [unknownCells],
    example: { query: { to: "7" } },
  }),
  getTransfer: route({
    group: "transfers",
    method: "GET",
    path: "/v1/transfers/{id}",
    summary: "Read a transfer",
    about: "Answers the transfer with its steps, what both cells have reported, and what a cut still needs.",
    roles: readers,
    params,
    query: nothing,
    history: true,
    responses: answer("The transfer."),
    errors: [unknownTransfer],
    example: { params: { id: ID } },
  }),
  acceptTransfer: route({
    group: "transfers",
    method: "POST",
    path: "/v1/transfers/{id}/accept",
    summary: "Accept a transfer",
    about: "Says that the destination takes the names. For the destination, or an operator.",
    roles,
    params,
    query: nothing,
    body: stepBody,
    history: true,
    responses: answer("The transfer is accepted."),
    errors: [unknownTransfer, wasCut, wasAborted, ...unsure],
    example: { params: { id: ID } },
  }),
  reportTransfer: route({
    group: "transfers",
    method: "POST",
    path: "/v1/transfers/{id}/report",
    summary: "Report the rows of a cell",
    about:
      "Stores the number and the digest of the rows that a cell has in the scope. Each cell reports its " +
      "own rows. A later report replaces an earlier one.",
    roles,
    params,
    query: nothing,
    body: {
      schema: z
        .strictObject({
          side: z.enum(["from", "to"]).optional().meta({
            description: "Whose rows these are. Required of operators; a cell reports its own rows.",
          }),
          count,
          hash,
          reason: stepReason,
        })
        .meta({ id: "TransferReportGiven" }),
      required: true,
    },
    history: true,
    responses: answer("The report is stored. `is_equal` says whether it equals the claims."),
    errors: [unknownTransfer, wasCut, wasAborted, ...unsure],
    example: { params: { id: ID }, body: { count: 4_211, hash: HASH } },
  }),
  cutTransfer: route({
    group: "transfers",
    method: "POST",
    path: "/v1/transfers/{id}/cut",
    summary: "Cut a transfer",
    about:
      "Gives the names to the destination. This is final. The same call again gets the same answer. For " +
      "the source, or an operator.",
    roles,
    params,
    query: nothing,
    body: stepBody,
    history: true,
    responses: answer("The names belong to the destination."),
    errors: [
      unknownTransfer,
      {
        code: "FAILED_PRECONDITION",
        reason: "TRANSFER_NOT_READY",
        when:
          "The destination has not accepted it, or a cell has not reported its rows in time, or has " +
          "reported something else than the claims. `detail` lists all that is missing.",
      },
      {
        code: "FAILED_PRECONDITION",
        reason: "CELL_REMOVING",
        when: "The destination is being removed. Abort the transfer.",
      },
      {
        code: "FAILED_PRECONDITION",
        reason: "CELL_REMOVED",
        when: "The destination was removed. Abort the transfer.",
      },
      wasAborted,
      ...unsure,
    ],
    example: { params: { id: ID } },
  }),
  abortTransfer: route({
    group: "transfers",
    method: "POST",
    path: "/v1/transfers/{id}/abort",
    summary: "Abort a transfer",
    about:
      "Ends a transfer that was not cut. The source keeps its names, and nothing has changed, unless the " +
      "ledger has lost a cut (`is_rebuilt`). This is final. The same call again gets the same answer. For " +
      "the source, the destination, or an operator.",
    roles,
    params,
    query: nothing,
    body: stepBody,
    history: true,
    responses: answer("The transfer is aborted."),
    errors: [unknownTransfer, wasCut, ...unsure],
    example: { params: { id: ID } },
  }),
};
