import * as z from "zod";
import { cellId, moment, nothing, pageSize, pageToken, uuid } from "./fields.ts";
import { route, type RouteError } from "./route.ts";
import { batch, leaseAnswer, leasePage } from "./schemas.ts";

const params = z.strictObject({ cell: cellId, uuid });
const roles = ["cell", "operator"] as const;

const UUID = "01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42";

const exampleBatch = {
  creates: [
    {
      bucket: { type: "ROUTES", value: "gitlab-org" },
      subject: { type: "GROUP", id: "42" },
      source: { type: "RAILS_TABLE_ROUTES", id: "1042" },
    },
  ],
};

const exampleLease = (state: "GRANTED" | "COMMITTED" | "ROLLED_BACK"): unknown => ({
  lease: {
    uuid: UUID,
    cell_id: "7",
    state,
    created_at: "2026-11-20T12:00:00.000Z",
    age_ms: state === "GRANTED" ? 4 : 1_250,
    ...(state === "GRANTED" ? {} : { decided_at: "2026-11-20T12:00:01.250Z", decided_by: "cell" }),
    counts: { creates: 1, destroys: 0, replaces: 0, missing: 0 },
    ...(state === "GRANTED" ? { ...exampleBatch, destroys: [], replaces: [] } : {}),
  },
});

const beginErrors: readonly RouteError[] = [
  {
    code: "ALREADY_EXISTS",
    when: "A name to create is taken. `conflicts` lists every op that stands in the way.",
  },
  {
    code: "FAILED_PRECONDITION",
    when: "A name to destroy or replace is not yours, is not there, or has another subject or source. See `conflicts`.",
  },
  {
    code: "FAILED_PRECONDITION",
    reason: "LEASE_ID_REUSED",
    when: "The lease id was used for another batch.",
  },
  {
    code: "FAILED_PRECONDITION",
    reason: "LEASE_ROLLED_BACK",
    when: "The lease was rolled back; a new try needs a new id.",
  },
  {
    code: "FAILED_PRECONDITION",
    reason: "CELL_FROZEN",
    when: "An operator froze the cell: it cannot begin leases.",
  },
  { code: "ABORTED", when: "All that stands in the way are other leases. Try again after `Retry-After`." },
  { code: "RESOURCE_EXHAUSTED", reason: "TOO_MANY_BEGINS", when: "The cell has too many begins under way." },
  {
    code: "RESOURCE_EXHAUSTED",
    reason: "TOO_MANY_LEASES",
    when: "The cell has too many leases outstanding: commit or roll back some.",
  },
  {
    code: "RESOURCE_EXHAUSTED",
    reason: "LEASE_TOO_LARGE",
    when: "The batch takes too much room (413): split it.",
  },
  {
    code: "UNAVAILABLE",
    when: "A part cannot be reached. Unless the detail says otherwise the outcome is not known: repeat the call with the same lease id.",
  },
  {
    code: "DEADLINE_EXCEEDED",
    when: "No answer in time. The outcome is not known: repeat the call with the same lease id.",
  },
];

const decideErrors = (outcome: "COMMITTED" | "ROLLED_BACK"): readonly RouteError[] => [
  ...(outcome === "COMMITTED"
    ? ([
        { code: "NOT_FOUND", when: "The cell has no such lease." },
        {
          code: "FAILED_PRECONDITION",
          reason: "LEASE_ROLLED_BACK",
          when: "The lease was rolled back, which is final.",
        },
      ] as const)
    : ([
        {
          code: "FAILED_PRECONDITION",
          reason: "LEASE_COMMITTED",
          when: "The lease was committed, which is final.",
        },
        {
          code: "RESOURCE_EXHAUSTED",
          reason: "TOO_MANY_FENCES",
          when: "The cell has too many remembered rollbacks of leases that it never began.",
        },
      ] as const)),
  {
    code: "UNAVAILABLE",
    when: "The cell's ledger cannot be reached. Repeat the call: the first decision wins, and the same one again succeeds.",
  },
  { code: "DEADLINE_EXCEEDED", when: "No answer in time. Repeat the call." },
];

const decision = {
  schema: z
    .strictObject({
      reason: z
        .string()
        .optional()
        .meta({ description: "Operators only, and they must: why. Kept with the outcome." }),
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
      "Takes temporary locks on all names of the batch, or on none. You choose the id, so a call whose answer got lost can be repeated: the same id with the same batch answers the lease as it is now.",
    roles,
    params,
    query: nothing,
    body: { schema: batch, required: true },
    responses: {
      201: { about: "The lease is granted.", schema: leaseAnswer, example: exampleLease("GRANTED") },
      200: {
        about: "The lease was granted or committed before, by the same batch.",
        schema: leaseAnswer,
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
    summary: "Begin a lease with a new id",
    about:
      "The same, with an id (UUIDv7) made here. Prefer PUT: after a lost answer only your own id lets you repeat the call. Where the outcome is not known, the problem carries `lease_uuid`.",
    roles,
    params: z.strictObject({ cell: cellId }),
    query: nothing,
    body: { schema: batch, required: true },
    responses: {
      201: { about: "The lease is granted.", schema: leaseAnswer, example: exampleLease("GRANTED") },
    },
    errors: beginErrors.filter(({ reason }) => reason !== "LEASE_ID_REUSED"),
    example: { params: { cell: "7" }, body: exampleBatch },
  }),
  commitLease: route({
    group: "leases",
    method: "POST",
    path: "/v1/cells/{cell}/leases/{uuid}/commit",
    summary: "Commit a lease",
    about:
      "Makes the batch permanent. Final: nobody can undo it. Never refused for load, quota or a frozen cell. Again: the same answer.",
    roles,
    params,
    query: nothing,
    body: decision,
    responses: {
      200: { about: "The lease is committed.", schema: leaseAnswer, example: exampleLease("COMMITTED") },
    },
    errors: decideErrors("COMMITTED"),
    example: { params: { cell: "7", uuid: UUID } },
  }),
  rollbackLease: route({
    group: "leases",
    method: "POST",
    path: "/v1/cells/{cell}/leases/{uuid}/rollback",
    summary: "Roll a lease back",
    about:
      "Releases every name of the batch, as if it had never begun. An id that is not known is fenced: a begin that arrives late with it is refused, and one that is running ends refused. So a begin with an unknown outcome can always be closed.",
    roles,
    params,
    query: nothing,
    body: decision,
    responses: {
      200: { about: "The lease is rolled back.", schema: leaseAnswer, example: exampleLease("ROLLED_BACK") },
    },
    errors: decideErrors("ROLLED_BACK"),
    example: { params: { cell: "7", uuid: UUID } },
  }),
  getLease: route({
    group: "leases",
    method: "GET",
    path: "/v1/cells/{cell}/leases/{uuid}",
    summary: "Read a lease",
    about: "The lease with its batch while it is granted, and its outcome for a day after it was decided.",
    roles,
    params,
    query: nothing,
    responses: { 200: { about: "The lease.", schema: leaseAnswer, example: exampleLease("GRANTED") } },
    errors: [{ code: "NOT_FOUND", when: "The cell has no such lease. Another cell's lease looks the same." }],
    example: { params: { cell: "7", uuid: UUID } },
  }),
  listLeases: route({
    group: "leases",
    method: "GET",
    path: "/v1/cells/{cell}/leases",
    summary: "List granted leases",
    about:
      "The cell's leases that are granted and not decided, oldest first, with counts instead of the batch. Complete as of the call; an error rather than a short page.",
    roles,
    params: z.strictObject({ cell: cellId }),
    query: z.strictObject({
      page_size: pageSize.optional(),
      page_token: pageToken.optional(),
      created_after: moment.optional().meta({ description: "Only leases granted at this moment or later." }),
    }),
    responses: { 200: { about: "A page of leases.", schema: leasePage } },
    errors: [],
    example: { params: { cell: "7" }, query: { page_size: "100" } },
  }),
};
