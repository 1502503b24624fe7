import * as z from "zod";
import { cellId, moment, nothing, pageSize, pageToken, reason, uuid } from "./fields.ts";
import { auditFull, route, tooManyReads, type RouteError } from "./route.ts";
import { batch, leaseAnswer, leasePage, placedLeaseAnswer } from "./schemas.ts";

const params = z.strictObject({ cell: cellId, uuid });
const roles = ["cell", "operator"] as const;
const readers = ["cell", "operator", "viewer"] as const;

const UUID = "01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42";

const exampleBatch = {
  creates: [
    {
      bucket: { type: "ROUTES", value: "gitlab-org" },
      subject: { type: "NAMESPACE", id: "42" },
      source: { type: "RAILS_TABLE_ROUTES", id: "1042" },
    },
  ],
};

const exampleLease = (state: "GRANTED" | "COMMITTED" | "ROLLED_BACK", isPlaced = true): unknown => ({
  lease: {
    uuid: UUID,
    cell_id: "7",
    state,
    created_at: "2026-11-20T12:00:00.000Z",
    age_ms: state === "GRANTED" ? 4 : 1_250,
    ...(state === "GRANTED" ? { idle_ms: 4 } : {}),
    ...(state === "GRANTED" ? {} : { decided_at: "2026-11-20T12:00:01.250Z", decided_by: "cell" }),
    counts: { creates: 1, destroys: 0, replaces: 0, missing: 0 },
    ...(state === "GRANTED" ? { ...exampleBatch, destroys: [], replaces: [] } : {}),
  },
  ...(isPlaced ? { positions: { 3: 4_711 } } : {}),
});

const beginErrors: readonly RouteError[] = [
  {
    code: "ALREADY_EXISTS",
    when: "A name to create is taken. `conflicts` lists every op that is in the way.",
  },
  {
    code: "FAILED_PRECONDITION",
    when:
      "A name to destroy or replace belongs to another cell, has no claim, or has another subject, source " +
      "or epoch. See `conflicts`.",
  },
  {
    code: "FAILED_PRECONDITION",
    reason: "LEASE_ID_REUSED",
    when: "The lease id was used for another batch.",
  },
  {
    code: "FAILED_PRECONDITION",
    reason: "LEASE_ROLLED_BACK",
    when: "The lease was rolled back. Begin again with a new id.",
  },
  {
    code: "FAILED_PRECONDITION",
    reason: "CELL_FROZEN",
    when: "An operator froze the cell, so it cannot begin leases. Only an operator can, with `verification`.",
  },
  {
    code: "FAILED_PRECONDITION",
    reason: "CELL_DRAINING",
    when: "An operator drains the cell, so only its verification can begin leases.",
  },
  {
    code: "FAILED_PRECONDITION",
    reason: "CELL_REMOVING",
    when: "An operator removes the cell, so it cannot begin leases.",
  },
  {
    code: "ABORTED",
    when:
      "Only leases are in the way. Nothing was granted. Try again after `Retry-After`, with the " +
      "same id or a new one.",
  },
  {
    code: "RESOURCE_EXHAUSTED",
    reason: "TOO_MANY_BEGINS",
    when: "The cell has too many begins in progress. Try again after `Retry-After`.",
  },
  {
    code: "RESOURCE_EXHAUSTED",
    reason: "TOO_MANY_LEASES",
    when: "The cell has too many outstanding leases. Commit or roll back some of them.",
  },
  {
    code: "RESOURCE_EXHAUSTED",
    reason: "LEDGER_FULL",
    when:
      "The cell's ledger has no room for more leases. Commits and rollbacks are still possible. Try again " +
      "after `Retry-After`.",
  },
  {
    code: "RESOURCE_EXHAUSTED",
    reason: "SHARD_FULL",
    when:
      "A shard has no room for more names. Begins that only give up names are still possible. Try again " +
      "after `Retry-After`.",
  },
  {
    code: "RESOURCE_EXHAUSTED",
    reason: "SHARD_HOLDS_FULL",
    when:
      "Open leases hold as many names on a shard as all cells, or this one, may hold there. Commit or roll " +
      "back some of them, and try again after `Retry-After`.",
  },
  {
    code: "RESOURCE_EXHAUSTED",
    reason: "LEASE_TOO_LARGE",
    when: "The stored batch would be too large. Split it.",
  },
  {
    code: "UNAVAILABLE",
    when:
      "A part of the coordinator cannot be reached. Unless `detail` says otherwise, the outcome is " +
      "unknown: repeat the call with the same lease id.",
  },
  {
    code: "DEADLINE_EXCEEDED",
    when: "There was no answer in time. The outcome is unknown: repeat the call with the same lease id.",
  },
  auditFull,
];

const leaseOfTransfer: RouteError = {
  code: "FAILED_PRECONDITION",
  reason: "LEASE_OF_TRANSFER",
  when: "The lease belongs to a transfer, which only its own calls decide.",
};

const decideErrors = (outcome: "COMMITTED" | "ROLLED_BACK"): readonly RouteError[] => [
  ...(outcome === "COMMITTED"
    ? ([
        { code: "NOT_FOUND", when: "The cell has no lease with this id." },
        {
          code: "FAILED_PRECONDITION",
          reason: "LEASE_ROLLED_BACK",
          when: "The lease was rolled back. That is final.",
        },
      ] as const)
    : ([
        {
          code: "FAILED_PRECONDITION",
          reason: "LEASE_COMMITTED",
          when: "The lease was committed. That is final.",
        },
        {
          code: "RESOURCE_EXHAUSTED",
          reason: "TOO_MANY_FENCES",
          when:
            "The cell has rolled back too many lease ids that it never began. Try again after " +
            "`Retry-After`.",
        },
      ] as const)),
  leaseOfTransfer,
  {
    code: "UNAVAILABLE",
    when:
      "The cell's ledger cannot be reached. Repeat the call: the first decision wins, and the same " +
      "decision again succeeds.",
  },
  { code: "DEADLINE_EXCEEDED", when: "There was no answer in time. Repeat the call." },
  auditFull,
];

const decision = {
  schema: z
    .strictObject({
      reason: z
        .string()
        .optional()
        .meta({
          description:
            "Why the operator decides this lease. Required of operators, refused for cells. Stored " +
            "with the outcome.",
        }),
    })
    .meta({ id: "Decision" }),
  required: false,
};

export const leaseRoutes = {
  beginLease: route({
    group: "leases",
    method: "PUT",
    path: "/v1/cells/{cell}/leases/{uuid}",
    summary: "Begin a lease",
    about:
      "Holds all names of the batch, or none. You choose the lease id, so you can repeat the call if " +
      "its answer was lost: the same id with the same batch answers the lease as it is now.",
    roles,
    history: true,
    params,
    query: nothing,
    body: { schema: batch, required: true },
    responses: {
      201: { about: "The lease is granted.", schema: placedLeaseAnswer, example: exampleLease("GRANTED") },
      200: {
        about: "A lease with this id and this batch was granted or committed before.",
        schema: placedLeaseAnswer,
        example: exampleLease("COMMITTED"),
      },
    },
    errors: beginErrors,
    example: { params: { cell: "7", uuid: UUID }, body: exampleBatch },
  }),
  beginLeaseWithNewId: route({
    group: "leases",
    method: "POST",
    path: "/v1/cells/{cell}/leases",
    summary: "Begin a lease with a generated id",
    about:
      "Begins a lease under an id (UUIDv7) that the coordinator generates. Prefer `PUT`: after a lost " +
      "answer, only an id that you chose lets you repeat the call. If the outcome is unknown, the " +
      "problem has `lease_uuid`.",
    roles,
    history: true,
    params: z.strictObject({ cell: cellId }),
    query: nothing,
    body: { schema: batch, required: true },
    responses: {
      201: { about: "The lease is granted.", schema: placedLeaseAnswer, example: exampleLease("GRANTED") },
    },
    errors: beginErrors.filter((error) => error.reason !== "LEASE_ID_REUSED"),
    example: { params: { cell: "7" }, body: exampleBatch },
  }),
  commitLease: route({
    group: "leases",
    method: "POST",
    path: "/v1/cells/{cell}/leases/{uuid}/commit",
    summary: "Commit a lease",
    about:
      "Makes the lease's changes permanent. This is final. A commit is never refused for load, quota or " +
      "a frozen cell. The same call again gets the same answer.",
    roles,
    history: true,
    params,
    query: nothing,
    body: decision,
    responses: {
      200: {
        about: "The lease is committed.",
        schema: placedLeaseAnswer,
        example: exampleLease("COMMITTED"),
      },
    },
    errors: decideErrors("COMMITTED"),
    example: { params: { cell: "7", uuid: UUID } },
  }),
  rollbackLease: route({
    group: "leases",
    method: "POST",
    path: "/v1/cells/{cell}/leases/{uuid}/rollback",
    summary: "Roll back a lease",
    about:
      "Drops the lease's changes and releases its names. If the id is unknown, or its begin is still " +
      "running, the rollback is remembered and that begin is refused whenever it arrives. So you can " +
      "always roll back a begin whose outcome you don't know.",
    roles,
    history: true,
    params,
    query: nothing,
    body: decision,
    responses: {
      200: {
        about: "The lease is rolled back.",
        schema: placedLeaseAnswer,
        example: exampleLease("ROLLED_BACK"),
      },
    },
    errors: decideErrors("ROLLED_BACK"),
    example: { params: { cell: "7", uuid: UUID } },
  }),
  renewLease: route({
    group: "leases",
    method: "POST",
    path: "/v1/cells/{cell}/leases/{uuid}/renew",
    summary: "Renew a lease",
    about:
      "Says that the cell still works on the lease, and why. From then on, the time after which it is " +
      "stale counts anew: the cell's reconciliation leaves it alone, and operators see the reason. Nothing " +
      "else changes, and a lease that is not renewed never expires. A frozen cell may renew.",
    roles: ["cell"],
    history: true,
    params,
    query: nothing,
    body: {
      schema: z
        .strictObject({ reason: reason.meta({ description: "What the cell does, for operators." }) })
        .meta({ id: "Renewal" }),
      required: true,
    },
    responses: {
      200: {
        about: "The lease is renewed.",
        schema: leaseAnswer,
        example: {
          lease: {
            uuid: UUID,
            cell_id: "7",
            state: "GRANTED",
            created_at: "2026-11-20T12:00:00.000Z",
            age_ms: 900_000,
            idle_ms: 0,
            renewed_at: "2026-11-20T12:15:00.000Z",
            renewal_reason: "import 4711 is at 60 %",
            counts: { creates: 1, destroys: 0, replaces: 0, missing: 0 },
          },
        },
      },
    },
    errors: [
      { code: "NOT_FOUND", when: "The cell has no lease with this id." },
      {
        code: "FAILED_PRECONDITION",
        reason: "LEASE_COMMITTED",
        when: "The lease was committed. That is final.",
      },
      {
        code: "FAILED_PRECONDITION",
        reason: "LEASE_ROLLED_BACK",
        when: "The lease was rolled back. That is final.",
      },
      { code: "UNAVAILABLE", when: "The cell's ledger cannot be reached. Repeat the call." },
      { code: "DEADLINE_EXCEEDED", when: "There was no answer in time. Repeat the call." },
    ],
    example: { params: { cell: "7", uuid: UUID }, body: { reason: "import 4711 is at 60 %" } },
  }),
  getLease: route({
    group: "leases",
    method: "GET",
    path: "/v1/cells/{cell}/leases/{uuid}",
    summary: "Read a lease",
    about:
      "Answers the lease: with its batch while it is granted, and with its outcome for 24 hours after the " +
      "decision, or for an hour if the ledger is short of space.",
    roles: readers,
    history: true,
    params,
    query: nothing,
    responses: { 200: { about: "The lease.", schema: leaseAnswer, example: exampleLease("GRANTED", false) } },
    errors: [
      {
        code: "NOT_FOUND",
        when: "The cell has no lease with this id. A lease of another cell gives the same answer.",
      },
    ],
    example: { params: { cell: "7", uuid: UUID } },
  }),
  listLeases: route({
    group: "leases",
    method: "GET",
    path: "/v1/cells/{cell}/leases",
    summary: "List granted leases",
    about:
      "Lists the cell's leases that are granted and not decided, oldest first, with counts instead of " +
      "the ops. The list is complete as of the call. If it cannot be complete, the call fails.",
    roles: readers,
    history: true,
    params: z.strictObject({ cell: cellId }),
    query: z.strictObject({
      page_size: pageSize.optional(),
      page_token: pageToken.optional(),
      created_after: moment
        .optional()
        .meta({ description: "Only leases that were granted at this time or later." }),
    }),
    responses: { 200: { about: "A page of leases.", schema: leasePage } },
    errors: [tooManyReads],
    example: { params: { cell: "7" }, query: { page_size: "100" } },
  }),
};
