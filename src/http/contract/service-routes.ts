import * as z from "zod";
import { cellId, nextPageToken, nothing, pageSize, pageToken, time, wholeNumber } from "./fields.ts";
import { route } from "./route.ts";
import { lease } from "./schemas.ts";

const limit = z
  .strictObject({
    name: z.string(),
    value: wholeNumber,
    default: wholeNumber,
    unit: z.string(),
    variable: z.string().meta({ description: "Set it on the deployment to change the limit." }),
    about: z.string(),
  })
  .meta({ id: "Limit" });

const staleLease = z
  .strictObject({
    ...lease.shape,
    confirmed: z
      .boolean()
      .meta({ description: "False: its ledger could not be asked whether it is still granted." }),
  })
  .meta({ id: "StaleLease" });

export const serviceRoutes = {
  listStaleLeases: route({
    group: "leases",
    method: "GET",
    path: "/v1/leases/stale",
    summary: "List stale leases of all cells",
    about:
      "Granted leases that nobody has decided for long, oldest first, from the fleet record in D1, which is up to a minute behind. Each is confirmed with its ledger; those that were decided meanwhile are left out.",
    roles: ["operator"],
    params: nothing,
    query: z.strictObject({
      older_than_s: z
        .string()
        .regex(/^\d{1,12}$/, "must be a whole number of seconds")
        .transform(Number)
        .optional()
        .meta({
          type: "integer",
          minimum: 0,
          pattern: undefined,
          description: "Left out: the deployment's `stale_s`, 600 by default.",
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
          last_pulled_at: time
            .nullable()
            .meta({ description: "When the fleet record was last brought up to date; null: never." }),
          next_page_token: nextPageToken,
        }),
      },
    },
    errors: [
      { code: "NOT_FOUND", reason: "CELL_UNKNOWN", when: "No such cell is registered." },
      { code: "UNAVAILABLE", when: "D1 cannot be read." },
    ],
    example: { query: { older_than_s: "3600" } },
  }),
  listLimits: route({
    group: "service",
    method: "GET",
    path: "/v1/limits",
    summary: "List limits",
    about: "Every limit of the deployment, with the variable that changes it.",
    roles: ["cell", "router", "operator"],
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
    summary: "Is it alive?",
    about: "Asks nobody.",
    roles: "anyone",
    params: nothing,
    query: nothing,
    responses: {
      200: {
        about: "It is.",
        schema: z.strictObject({
          status: z.literal("ok"),
          version: z.string(),
          placement: z
            .string()
            .meta({ description: "What decides who owns a name: the same on every machine, for good." }),
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
    summary: "Is it ready?",
    about:
      "Asks the directory, every shard and every cell's ledger. D1 is not needed to serve, so that it is down is only told.",
    roles: "anyone",
    params: nothing,
    query: nothing,
    responses: {
      200: {
        about: "It is.",
        schema: z.strictObject({ status: z.literal("ok"), d1: z.enum(["up", "down"]) }),
      },
    },
    errors: [{ code: "UNAVAILABLE", when: "A part does not answer. `failed` lists them." }],
    example: {},
  }),
  getOpenApi: route({
    group: "service",
    method: "GET",
    path: "/openapi.json",
    summary: "This API as OpenAPI 3.1",
    about: "The document that this page is made from.",
    roles: "anyone",
    params: nothing,
    query: nothing,
    responses: { 200: { about: "The document.", schema: z.looseObject({ openapi: z.string() }) } },
    errors: [],
    example: {},
  }),
  getDocs: route({
    group: "service",
    method: "GET",
    path: "/docs",
    summary: "This reference",
    about: "One page, without anything loaded from elsewhere.",
    roles: "anyone",
    params: nothing,
    query: nothing,
    responses: { 200: { about: "The page.", schema: z.string(), mediaType: "text/html" } },
    errors: [],
    example: {},
  }),
  getRoot: route({
    group: "service",
    method: "GET",
    path: "/",
    summary: "Where to begin",
    about: "Says what this is and where the reference is.",
    roles: "anyone",
    params: nothing,
    query: nothing,
    responses: {
      200: {
        about: "A hint.",
        schema: z.strictObject({ service: z.literal("leasehold"), docs: z.string(), openapi: z.string() }),
      },
    },
    errors: [],
    example: {},
  }),
};
