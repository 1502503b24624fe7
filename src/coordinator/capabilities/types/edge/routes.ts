import * as z from "zod";
import { MAX_TYPES } from "../../../../common/types/document.ts";
import { typesSchemaProperties } from "../../../../common/types/schema.ts";
import { nothing, reason, wholeNumber } from "../../../api/contract/fields.ts";
import { boundedRecord } from "../../../api/contract/lists.ts";
import { auditFull, route, type RouteError } from "../../../api/contract/route.ts";

const roles = ["operator"] as const;

/** A list of types by their names. The handler reads it, and names the entry that is wrong. */
const list = (schema: Readonly<Record<string, unknown>>) => boundedRecord(MAX_TYPES, schema, z.unknown());

const types = z
  .strictObject({
    bucket_types: list(typesSchemaProperties.bucket_types),
    subject_types: list(typesSchemaProperties.subject_types),
    source_types: list(typesSchemaProperties.source_types),
  })
  .meta({ id: "TypeSet", description: "The types of a deployment, by their names." });

const names = z.array(z.string());

const version = wholeNumber.meta({
  description:
    "Identifies this version of the set. It grows with each change, and when a type comes into use.",
});

const declared = {
  version,
  types,
  in_use: z
    .strictObject({ bucket_types: names, subject_types: names, source_types: names })
    .meta({ description: "The types that claims may have. Their entries can no longer be changed." }),
};

const entry = z.string().meta({
  description: "The list and the name of a type.",
  examples: ["bucket_types.HANDLES"],
});

const change = z
  .strictObject({
    entry,
    change: z.enum(["add", "remove", "change"]),
    before: z.unknown().meta({ description: "The entry before. Null: there was none." }),
    after: z.unknown().meta({ description: "The entry after. Null: there is none." }),
  })
  .meta({ id: "TypeChange" });

const refusal = z
  .strictObject({ entry, reason: z.string().meta({ description: "Why the change is refused." }) })
  .meta({ id: "TypeRefusal" });

const exampleTypes = {
  bucket_types: { HANDLES: { number: 1, form: "plain", script: "single", case: "folded", max_length: 30 } },
  subject_types: { PERSON: { number: 1 } },
  source_types: { PEOPLE: { number: 1 } },
};
const exampleSet = {
  version: 12,
  types: exampleTypes,
  in_use: { bucket_types: ["HANDLES"], subject_types: ["PERSON"], source_types: ["PEOPLE"] },
};

const unreachable: RouteError = {
  code: "UNAVAILABLE",
  when: "The directory or D1 cannot be reached, or the directory has gone back in time.",
};

export const typeRoutes = {
  listTypes: route({
    group: "types",
    method: "GET",
    path: "/v1/types",
    summary: "List the declared types",
    about: "Lists the types that claims can have now, with their rules. A cell compares them with its own.",
    roles: ["cell", "router", "operator", "viewer"],
    params: nothing,
    query: nothing,
    responses: {
      200: { about: "The set.", schema: z.strictObject({ types }), example: { types: exampleTypes } },
    },
    errors: [{ code: "UNAVAILABLE", when: "The directory cannot be reached, or has gone back in time." }],
    example: {},
  }),
  getTypes: route({
    group: "types",
    method: "GET",
    path: "/v1/admin/types",
    summary: "Read the declared types",
    about: "Reads the set of types, and which of them are in use.",
    roles: ["operator", "viewer"],
    params: nothing,
    query: nothing,
    responses: {
      200: { about: "The set.", schema: z.strictObject(declared), example: exampleSet },
    },
    errors: [unreachable],
    example: {},
  }),
  changeTypes: route({
    group: "types",
    method: "PUT",
    path: "/v1/admin/types",
    summary: "Declare types",
    about:
      "Replaces the set of types with this one. Entries that are in use must stay as they are, and the " +
      "`version` must be the one that was read. Otherwise nothing is changed. With `dry_run`, the answer " +
      "says what would be changed and what is refused. The new set is valid everywhere at once.",
    roles,
    params: nothing,
    query: nothing,
    body: {
      schema: z
        .strictObject({
          version,
          types,
          dry_run: z.boolean().optional().meta({ description: "If true, nothing is changed." }),
          reason: reason.optional(),
        })
        .meta({ id: "TypesChange" }),
      required: true,
    },
    responses: {
      200: {
        about: "The set as it is now, and what was changed.",
        schema: z.strictObject({
          ...declared,
          dry_run: z.boolean(),
          changes: z.array(change),
          refusals: z
            .array(refusal)
            .meta({ description: "Only in a dry run. If there are any, the set would be refused." }),
        }),
        example: {
          ...exampleSet,
          dry_run: false,
          changes: [
            {
              entry: "bucket_types.HANDLES",
              change: "add",
              before: null,
              after: exampleTypes.bucket_types.HANDLES,
            },
          ],
          refusals: [],
        },
      },
    },
    errors: [
      {
        code: "FAILED_PRECONDITION",
        reason: "TYPE_IN_USE",
        when: "An entry would change that is in use. `field` names it.",
      },
      {
        code: "FAILED_PRECONDITION",
        reason: "CONCURRENT_CHANGE",
        when: "The set is not the one that was read. Read it again.",
      },
      unreachable,
      auditFull,
    ],
    example: { body: { version: 0, types: exampleTypes, dry_run: true } },
  }),
};
