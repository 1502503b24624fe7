import * as z from "zod";
import { claimFields } from "../../../../common/types/gitlab.ts";
import { bucketType, nothing } from "../../../api/contract/fields.ts";
import { boundedList } from "../../../api/contract/lists.ts";
import { route } from "../../../api/contract/route.ts";

/**
 * Claims of GitLab's protobuf, whose JSON has one field with the name of the claim. Its clients write the
 * names in either way.
 */
const namedClaims = claimFields.flatMap((claimField) =>
  [claimField.name, claimField.name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase())].map(
    (field) => ({ ...claimField, field }),
  ),
);

/** The bucket types of those fields. */
export const CLAIM_FIELDS: ReadonlyMap<string, string> = new Map(
  namedClaims.map(({ field, bucketType: type }) => [field, type]),
);

const text = z.string();

/** Each field has two names, so in place its schema would get one name twice in a generated client. */
const integer = z
  .union([z.string(), z.int()], { error: "must be a string or a whole number that JSON represents exactly" })
  .meta({
    id: "ClassifyInteger",
    description: "A 64-bit integer: a string, as in the JSON of a protobuf, or a number.",
  });

const claim = z
  .strictObject({
    type: bucketType.optional(),
    bucket: bucketType.optional(),
    value: text.optional().meta({
      description: "The name, in any spelling that has its canonical form.",
    }),
    ...Object.fromEntries(
      namedClaims.map(({ field, isWholeNumber }) => [field, (isWholeNumber ? integer : text).optional()]),
    ),
  })
  .meta({
    id: "ClassifyClaim",
    description:
      "A name: a bucket type in `type` or `bucket` with a `value`, or one of the other fields, such as " +
      '`{"route": "gitlab-org"}` for the type ROUTES.',
  });

export type ClassifyClaim = z.output<typeof claim>;

export const classifyRoutes = {
  classify: route({
    group: "routing",
    method: "POST",
    path: "/v1/classify",
    summary: "Classify a request for GitLab's router",
    about:
      "Answers where GitLab's HTTP Router sends a request, in its own JSON: by claims (the first one that " +
      "exists decides), or by a type with a value. `address` is the host of the cell's address. " +
      "Errors have the sentence of the Topology Service in `message`. Unknown fields are ignored, except " +
      "in claims.",
    roles: ["cell", "router", "operator", "viewer"],
    params: nothing,
    query: nothing,
    body: {
      // Not strict, because this is the JSON of a protobuf of another product. Its parsers ignore fields of a
      // newer version. In a claim, such a field may be the name, and without it a later claim would decide.
      schema: z
        .object({
          type: text.optional().meta({
            description:
              "`FIRST_CELL`, `SESSION_PREFIX`, `CELL_ID`, their older names such as `SessionPrefix`, or a " +
              "bucket type. Left out, or `UNSPECIFIED`, if there are claims.",
            examples: ["SESSION_PREFIX"],
          }),
          value: text.optional().meta({
            description: "The session prefix, as in `cell-7`, the cell's id, or the name.",
            examples: ["cell-7"],
          }),
          claim: claim.optional().meta({
            description: "A single claim, as older routers send it. It counts only if `claims` is empty.",
          }),
          claims: boundedList(claim, "lookupBuckets", {
            description: "Names to try, in this order. A value that no name can have doesn't exist.",
          }).optional(),
        })
        .meta({ id: "ClassifyRequest" }),
      required: true,
    },
    responses: {
      200: {
        about: "The cell of the request. `matched_claim` is the claim that decided, as it was sent.",
        schema: z.strictObject({
          action: z.literal("PROXY"),
          proxy: z.strictObject({
            address: z.string().meta({ description: "The host of the cell, with a port if it has one." }),
          }),
          matched_claim: claim.optional(),
        }),
        cached:
          "`private, max-age=5` by default (`route_max_age_s`) if the first claim decides, `max-age=1` if " +
          "a later one does, and `max-age=15` if no claim does. `no-store` if an answer is not settled.",
        example: {
          action: "PROXY",
          proxy: { address: "cell-7.example.com" },
          matched_claim: { route: "gitlab-org" },
        },
      },
    },
    errors: [
      {
        code: "NOT_FOUND",
        when:
          "No claim exists, or no cell has this session prefix or id. The answer may be kept for a second, " +
          "unless a lease holds one of the names, or the list of cells was read before this call.",
      },
      {
        code: "UNAVAILABLE",
        when: "It is not known whether a claim exists that would decide. Don't treat it as 'not found'.",
      },
    ],
    example: { body: { claims: [{ route: "gitlab-org" }] } },
  }),
};
