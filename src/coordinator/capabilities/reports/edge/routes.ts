import * as z from "zod";
import { limitTable } from "../../../../common/limits.ts";
import { bucketType, nothing, wholeNumber, minPosition } from "../../../api/contract/fields.ts";
import { boundedList } from "../../../api/contract/lists.ts";
import { route, type RouteError } from "../../../api/contract/route.ts";
import { bucket, owner, routeFacts } from "../../../api/contract/schemas.ts";
import { UNAVAILABLE_NAME, unavailable } from "../../../api/contract/unavailable.ts";

const everyone = ["cell", "router", "operator", "viewer"] as const;
const routers = ["router", "operator", "viewer"] as const;

const behind: RouteError = {
  code: "UNAVAILABLE",
  when:
    "A part of the coordinator cannot be reached, or the shard has not reached its position in " +
    "`min_position`. Don't treat it as 'not found'.",
};

const epoch = wholeNumber.optional().meta({
  description:
    "The epoch of the claim, or of the granted lease that creates it. Each later owner of the name has a " +
    "larger one. A cell key doesn't get it for another cell's name.",
});

const routeAnswer = z.strictObject({ cell: owner, epoch, ...routeFacts.shape });

const routeResult = z
  .strictObject({
    name: bucket,
    found: z.boolean(),
    cell: owner.optional(),
    epoch,
    ...routeFacts.shape,
  })
  .meta({ id: "RouteResult", description: "`cell` and `epoch` are present only if the name was found." });

const unavailableRoute = z
  .strictObject({
    name: bucket,
    shard: wholeNumber.meta({ description: "The number of the name's shard." }),
    unavailable,
  })
  .meta({ id: "UnavailableRoute", description: UNAVAILABLE_NAME });

export const routeResults = z.array(z.union([routeResult, unavailableRoute]));

const shardNumber = z
  .string()
  .regex(/^(?:0|[1-9]\d{0,8})$/, "must be the number of a shard, without leading zeros")
  .transform(Number)
  .meta({ type: "integer", minimum: 0, pattern: undefined, description: "The number of the shard." });

const after = z
  .string()
  .regex(/^(?:0|[1-9]\d{0,15})$/, "must be a position: a whole number, without leading zeros")
  .transform(Number)
  .refine(Number.isSafeInteger, `must be at most ${Number.MAX_SAFE_INTEGER}`)
  .meta({
    type: "integer",
    minimum: 0,
    pattern: undefined,
    description:
      "A position of the shard. The report begins after it. Left out: the report is empty, and its " +
      "`through` is the newest position.",
  });

const report = z
  .strictObject({
    shard: wholeNumber,
    after: wholeNumber.meta({ description: "The position after which the page begins." }),
    through: wholeNumber.meta({
      description: "The page has every change up to and including this position.",
    }),
    held: z.array(z.tuple([wholeNumber, z.array(z.string())])).meta({
      description:
        "Pairs of a distance and keys: the names that leases put on hold at the position `after` plus the " +
        "distance, in ascending order. What a lookup shows of a name changes only after the name was put " +
        "on hold.",
    }),
    has_more: z.boolean().meta({
      description: "True: the page is full and never changes. Continue with `after` set to `through`.",
    }),
    age_ms: routeFacts.shape.age_ms,
  })
  .meta({ id: "Report" });

const exampleFacts = { key: "9f2c47d1a05be836", shard: 3, position: 4_711, settled: true, age_ms: 0 };
const exampleOwner = { id: "7", address: "https://cell-7.example.com" };

export const routingRoutes = {
  getRoute: route({
    group: "routing",
    method: "GET",
    path: "/v1/route/{bucket_type}/{value}",
    rest: true,
    summary: "Find the cell of a name",
    about:
      "Answers where requests for a name go. The value is the rest of the path and may contain slashes, " +
      "raw or percent-encoded. The answer says at which position of its shard it was true, so that reports " +
      "can tell when it may have changed. Keep it only if it is `settled`.",
    roles: everyone,
    params: z.strictObject({
      bucket_type: bucketType,
      value: z.string().meta({ description: "The name, in any spelling that has its canonical form." }),
    }),
    query: z.strictObject({ min_position: minPosition.optional() }),
    responses: {
      200: {
        about: "The cell that owns the name.",
        schema: routeAnswer,
        cached:
          "`private, max-age=5` by default (`route_max_age_s`) if the answer is settled, else `no-store`.",
        example: { cell: exampleOwner, epoch: 12, ...exampleFacts },
      },
    },
    errors: [
      {
        code: "NOT_FOUND",
        when:
          "No cell has the name. `route` has the position of this answer. If it is settled, it may be kept " +
          "for a second.",
      },
      behind,
    ],
    example: { params: { bucket_type: "ROUTES", value: "gitlab-org/gitlab" } },
  }),
  lookupRoutes: route({
    group: "routing",
    method: "POST",
    path: "/v1/route",
    summary: "Find the cells of many names",
    about:
      `Finds the cells of as many as ${limitTable.lookupBuckets.default} names in one call. The results ` +
      "are in the order of the request. A name whose answer is unknown has `unavailable` instead of " +
      "`found`. If that is so for every name, the call fails like a call for one name.",
    roles: everyone,
    params: nothing,
    query: nothing,
    body: {
      schema: z
        .strictObject({
          names: boundedList(bucket, "lookupBuckets", { min: 1, description: "The names to find." }),
          min_position: minPosition.optional(),
        })
        .meta({ id: "RouteLookup" }),
      required: true,
    },
    responses: {
      200: {
        about: "One result per name, in the order of the request.",
        schema: z.strictObject({ results: routeResults }),
        example: {
          results: [{ name: { type: "USERNAMES", value: "alice" }, found: false, ...exampleFacts }],
        },
      },
    },
    errors: [behind],
    example: { body: { names: [{ type: "USERNAMES", value: "alice" }] } },
  }),
  getReport: route({
    group: "routing",
    method: "GET",
    path: "/v1/reports/{shard}",
    summary: "Read which names may have changed",
    about:
      "Lists the keys of the names that leases have put on hold on a shard since a position. A router that " +
      "reads the reports of a shard may keep its answers for longer: an answer is still true if its key is " +
      "in no report after its position.",
    roles: routers,
    params: z.strictObject({ shard: shardNumber }),
    query: z.strictObject({ after: after.optional() }),
    responses: {
      200: {
        about: "A page of the report.",
        schema: report,
        cached:
          "`private, max-age=86400, immutable` if the page is full (`has_more`), else `private, max-age=1`.",
        example: {
          shard: 3,
          after: 4_711,
          through: 4_890,
          held: [[1, ["9f2c47d1a05be836"]]],
          has_more: false,
          age_ms: 0,
        },
      },
    },
    errors: [
      { code: "NOT_FOUND", when: "There is no such shard." },
      {
        code: "FAILED_PRECONDITION",
        reason: "REPORT_PRUNED",
        when:
          "The shard no longer knows all changes after this position. Forget its answers, and ask for a " +
          "report without `after`.",
      },
      {
        code: "UNAVAILABLE",
        when: "The shard cannot be reached, or has not reached the position `after`.",
      },
    ],
    example: { params: { shard: "3" }, query: { after: "4711" } },
  }),
  listCellAddresses: route({
    group: "routing",
    method: "GET",
    path: "/v1/cells",
    summary: "List the addresses of cells",
    about:
      "Lists all cells in the order of their ids, with their addresses. A change of an address is seen " +
      "here within 30 seconds. Only while the coordinator cannot read its directory, `age_ms` is larger.",
    roles: everyone,
    params: nothing,
    query: nothing,
    responses: {
      200: {
        about: "All cells.",
        schema: z.strictObject({ cells: z.array(owner), age_ms: routeFacts.shape.age_ms }),
        cached: "`private, max-age=15`.",
        example: { cells: [exampleOwner], age_ms: 0 },
      },
    },
    errors: [],
    example: {},
  }),
};
