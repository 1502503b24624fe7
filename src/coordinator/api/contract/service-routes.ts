import * as z from "zod";
import { cellId, nextPageToken, nothing, pageSize, pageToken, time, wholeNumber } from "./fields.ts";
import { route } from "./route.ts";
import { lease } from "./schemas.ts";

const limit = z
  .strictObject({
    name: z.string(),
    value: wholeNumber.meta({ description: "The value in this deployment." }),
    default: wholeNumber.meta({ description: "The value if the variable is not set." }),
    unit: z.string(),
    variable: z.string().meta({ description: "The variable of the deployment that changes the limit." }),
    about: z.string().meta({ description: "What is limited." }),
  })
  .meta({ id: "Limit" });

const staleLease = z
  .strictObject({
    ...lease.shape,
    confirmed: z.boolean().meta({
      description: "True: its ledger says that it is still granted. False: its ledger could not be asked.",
    }),
  })
  .meta({ id: "StaleLease" });

const TOO_MANY_READERS = {
  code: "RESOURCE_EXHAUSTED",
  when: "100 callers without a key wait for a document already, or this one has waited for 10 s.",
} as const;

export const serviceRoutes = {
  listStaleLeases: route({
    group: "leases",
    method: "GET",
    path: "/v1/leases/stale",
    summary: "List stale leases of all cells",
    about:
      "Lists leases that were granted some time ago and are not decided, oldest first. Candidates come " +
      "from the projection in D1, which is about a minute behind. Each candidate is confirmed with its " +
      "ledger, and leases that were decided or renewed since are left out.",
    roles: ["operator", "viewer"],
    params: nothing,
    query: z.strictObject({
      older_than_s: z
        .string()
        .regex(/^\d{1,12}$/, "must be a whole number of seconds, of at most 12 digits")
        .transform(Number)
        .optional()
        .meta({
          type: "integer",
          minimum: 0,
          pattern: undefined,
          description:
            "Only leases that were neither granted nor renewed within this many seconds. Left out: the " +
            "deployment's limit `stale_s`, 600 by default.",
        }),
      cell: cellId.optional(),
      page_size: pageSize.optional(),
      page_token: pageToken.optional(),
    }),
    responses: {
      200: {
        about: "A page of leases.",
        schema: z.strictObject({
          leases: z.array(staleLease),
          last_pulled_at: time.nullable().meta({
            description:
              "The listing contains every lease that was granted before this time. Null: some cell has " +
              "never been pulled into the projection.",
          }),
          next_page_token: nextPageToken,
        }),
      },
    },
    errors: [
      { code: "NOT_FOUND", reason: "CELL_UNKNOWN", when: "The cell is not registered." },
      { code: "UNAVAILABLE", when: "The projection in D1 cannot be read." },
    ],
    example: { query: { older_than_s: "3600" } },
  }),
  listLimits: route({
    group: "service",
    method: "GET",
    path: "/v1/limits",
    summary: "List limits",
    about: "Lists every limit of the deployment, with the variable that changes it.",
    roles: ["cell", "router", "operator", "viewer"],
    params: nothing,
    query: nothing,
    responses: { 200: { about: "All limits.", schema: z.strictObject({ limits: z.array(limit) }) } },
    errors: [],
    example: {},
  }),
  getHealth: route({
    group: "service",
    method: "GET",
    path: "/healthz",
    summary: "Check that the Worker runs",
    about: "Answers without calling any other part. Use it as a liveness probe.",
    roles: "anyone",
    params: nothing,
    query: nothing,
    responses: {
      200: {
        about: "The Worker runs.",
        schema: z.strictObject({
          status: z.literal("ok"),
          version: z.string(),
          placement: z.string().meta({
            description:
              "The versions of hash and canonical form, and the number of shards. They determine which " +
              "shard stores a name, and never change.",
          }),
        }),
      },
    },
    errors: [],
    example: {},
  }),
  getReadiness: route({
    group: "service",
    method: "GET",
    path: "/readyz",
    summary: "Check that the parts which all callers need answer",
    about:
      "Calls the directory, every shard and 16 ledgers: those that failed in the last check or in the last " +
      "run of the cron, then others in turn. A ledger that fails is only reported, unless none of them " +
      "answers, because only its own cell needs it. Calls within 5 seconds share one check. D1 and the " +
      "cron are only reported, because requests other than the stale listing don't need them.",
    roles: "anyone",
    params: nothing,
    query: nothing,
    responses: {
      200: {
        about: "The parts that all callers need answered.",
        schema: z.strictObject({
          status: z.enum(["ok", "no_cells"]).meta({
            description:
              "`no_cells`: there is no cell, or all were removed. An operator has to register one.",
          }),
          failed: z.array(z.string()).meta({
            description: "The ledgers that don't answer, or have lost history, such as `ledger of cell 7`.",
          }),
          d1: z.enum(["up", "outdated", "down"]).meta({
            description:
              "`outdated`: D1 lacks migrations of this version, without which an upgrade can't be finished.",
          }),
          missing_migrations: z.array(z.string()).meta({
            description:
              "The migrations that D1 lacks. `npx wrangler d1 migrations apply leasehold --remote` applies " +
              "them.",
          }),
          last_cron_run: z
            .strictObject({
              finished_at: time,
              cells_failed: wholeNumber.meta({
                description: "Cells whose ledger the run could not reach or copy into D1.",
              }),
            })
            .nullable()
            .meta({
              description: "The last run of the cron that finished. Null: none, or it cannot be read.",
            }),
        }),
      },
    },
    errors: [
      {
        code: "UNAVAILABLE",
        when: "The directory, a shard, or all ledgers that were asked don't answer. `failed` lists them.",
      },
    ],
    example: {},
  }),
  listFailedCopies: route({
    group: "service",
    method: "GET",
    path: "/v1/admin/copies/failed",
    summary: "List the cells that the cron could not copy",
    about:
      "Lists the cells whose leases the cron could not copy into D1 when it last visited them, and why. " +
      "Their stale leases may be missing in the listing. Cells are in the order of their ids as text.",
    roles: ["operator", "viewer"],
    params: nothing,
    query: z.strictObject({ page_size: pageSize.optional(), page_token: pageToken.optional() }),
    responses: {
      200: {
        about: "A page of cells.",
        schema: z.strictObject({
          copies: z.array(
            z.strictObject({
              cell_id: cellId,
              error: z.string().meta({ description: "Why the last visit failed." }),
              last_pulled_at: time.nullable().meta({
                description: "The copy is at least as recent as this. Null: there is none.",
              }),
            }),
          ),
          next_page_token: nextPageToken,
        }),
        example: {
          copies: [
            {
              cell_id: "7",
              error: "the ledger did not answer in time",
              last_pulled_at: "2026-11-20T12:00:00.000Z",
            },
          ],
          next_page_token: "",
        },
      },
    },
    errors: [{ code: "UNAVAILABLE", when: "D1 cannot be reached." }],
    example: {},
  }),
  getOpenApi: route({
    group: "service",
    method: "GET",
    path: "/openapi.json",
    summary: "Get the OpenAPI document",
    about:
      "The OpenAPI 3.1 document of this API, with the types that the deployment has declared. The " +
      "reference page is made from it.",
    roles: "anyone",
    params: nothing,
    query: nothing,
    responses: {
      200: {
        about: "The document.",
        schema: z.looseObject({ openapi: z.string() }),
        cached: "`public, max-age=300`.",
      },
    },
    errors: [TOO_MANY_READERS],
    example: {},
  }),
  getDocs: route({
    group: "service",
    method: "GET",
    path: "/docs",
    summary: "Get the reference page",
    about: "The API reference as one HTML page without scripts, which loads nothing else.",
    roles: "anyone",
    params: nothing,
    query: nothing,
    responses: {
      200: {
        about: "The page.",
        schema: z.string(),
        mediaType: "text/html",
        cached: "`public, max-age=300`.",
      },
    },
    errors: [TOO_MANY_READERS],
    example: {},
  }),
  getRoot: route({
    group: "service",
    method: "GET",
    path: "/",
    summary: "Find the documentation",
    about: "Names the service and the paths of its documentation.",
    roles: "anyone",
    params: nothing,
    query: nothing,
    responses: {
      200: {
        about: "The paths.",
        schema: z.strictObject({ service: z.literal("leasehold"), docs: z.string(), openapi: z.string() }),
      },
    },
    errors: [],
    example: {},
  }),
};
