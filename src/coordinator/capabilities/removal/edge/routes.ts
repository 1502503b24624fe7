import * as z from "zod";
import { limitTable } from "../../../../common/limits.ts";
import { cellStates } from "../../../api/contract/cell-states.ts";
import { MAX_TYPES } from "../../../../common/types/document.ts";
import {
  bucketType,
  cellId,
  nothing,
  reason,
  sourceType,
  time,
  wholeNumber,
} from "../../../api/contract/fields.ts";
import { boundedList } from "../../../api/contract/lists.ts";
import { auditFull, route, unknownCell, type RouteError } from "../../../api/contract/route.ts";
import { cell } from "../../../api/contract/schemas.ts";

const operator = ["operator"] as const;
const cursor = z.string().meta({
  description:
    "The `cursor` of the previous answer, sent with the same path and body. Empty or left out: the first " +
    "call.",
});
const cellParams = z.strictObject({ cell: cellId });
const cellAnswer = z.strictObject({ cell });

const state = z.enum(cellStates);

const removal = z
  .strictObject({
    cell_id: cellId,
    state: state.meta({
      description:
        "`REMOVING`: a removal has started. `REMOVED`: it has ended, and the cell has no claims. " +
        "Otherwise none has started.",
    }),
    outstanding_leases: wholeNumber.meta({ description: "Leases that are granted and not decided." }),
    unapplied_decisions: wholeNumber.meta({ description: "Decisions that a shard has not applied yet." }),
    claims: z
      .array(z.strictObject({ source_type: sourceType, bucket_type: bucketType, count: wholeNumber }))
      .meta({
        description:
          "Claims that the cell has now, by their types. The removal releases their names, and keeps " +
          "everything else.",
      }),
    claims_total: wholeNumber.meta({ description: "The sum of the counts." }),
    cursor: z
      .string()
      .nullable()
      .meta({
        description:
          "Not null: this answer counts only some of the claims. Repeat the call with this `cursor`, and " +
          "add up the counts. Null: no claim is left to count.",
      }),
    progress: z
      .strictObject({
        exported_claims: wholeNumber.meta({ description: "The claims that the export has." }),
        released_claims: wholeNumber.meta({ description: "The claims that steps have released." }),
      })
      .nullable()
      .meta({ description: "Null: no step has started a removal." }),
    removed_at: time.nullable().meta({
      description:
        "When the removal has ended, as the directory has it. Null: it has not ended. Null although " +
        "`state` is `REMOVED`: the directory does not know it yet. Repeat a step, or wait some minutes.",
    }),
  })
  .meta({ id: "Removal", description: "What a removal of a cell would release, and how far it is." });

const exported = z
  .strictObject({
    source_type: sourceType,
    count: wholeNumber.meta({ description: "The number of claims in the export." }),
    hash: z
      .string()
      .regex(/^[\da-f]{32}$/, "must be 32 hexadecimal digits in lower case")
      .meta({
        description: "The digest of these claims, computed as for `POST …/records/digests`.",
        examples: ["0".repeat(32)],
      }),
  })
  .meta({ id: "ExportedClaims", description: "What an export has of one source type." });

const unreachable: RouteError = {
  code: "UNAVAILABLE",
  when: "The directory, the cell's ledger or a shard cannot be reached. Repeat the call.",
};
const hasLeases: RouteError = {
  code: "FAILED_PRECONDITION",
  reason: "CELL_HAS_LEASES",
  when:
    "The cell has open leases, or decisions that a shard has not applied, or it is the source or the " +
    "destination of a prepared transfer. Decide the leases, end the transfers, or wait.",
};
const notRemoving: RouteError = {
  code: "FAILED_PRECONDITION",
  reason: "CELL_NOT_REMOVING",
  when: "No removal of the cell is approved.",
};
const changedMeanwhile: RouteError = {
  code: "FAILED_PRECONDITION",
  reason: "CONCURRENT_CHANGE",
  when:
    "The cell or one of its leases has changed since its claims were compared. Export and compare them " +
    "again. Nothing was done.",
};

export const removalRoutes = {
  getRemoval: route({
    group: "cells",
    method: "GET",
    path: "/v1/admin/cells/{cell}/removal",
    summary: "Show what a removal would release",
    about:
      "Counts the claims of a cell by their types, and shows its open leases and the state of its removal. " +
      "Changes nothing.",
    roles: ["operator", "viewer"],
    params: cellParams,
    query: z.strictObject({ cursor: cursor.optional() }),
    responses: {
      200: {
        about: "The cell's claims, and the state of its removal.",
        schema: z.strictObject({ removal }),
        example: {
          removal: {
            cell_id: "7",
            state: "DRAINING",
            outstanding_leases: 0,
            unapplied_decisions: 0,
            claims: [{ source_type: "RAILS_TABLE_USERS", bucket_type: "USERNAMES", count: 4_211 }],
            claims_total: 4_211,
            cursor: null,
            progress: null,
            removed_at: null,
          },
        },
      },
    },
    errors: [unknownCell, unreachable],
    example: { params: { cell: "7" } },
  }),
  approveRemoval: route({
    group: "cells",
    method: "POST",
    path: "/v1/admin/cells/{cell}/removal",
    summary: "Approve the removal of a cell",
    about:
      "Approves the removal of a cell that is draining and has no open leases. The call gives the counts " +
      "and digests of an export, and is refused unless the export has every claim of the cell. If the cell " +
      "has more than one call compares, repeat the call with the `cursor` of its answer. After a 200, the " +
      "first step may start the removal. Until then, any change of the cell or of its leases ends the " +
      "approval, and nothing else has changed.",
    roles: operator,
    params: cellParams,
    query: nothing,
    body: {
      schema: z
        .strictObject({
          export: boundedList(exported, MAX_TYPES, {
            description: "One entry for each source type. A type without claims may be left out.",
          }),
          cursor: cursor.optional(),
        })
        .meta({ id: "RemovalApproval" }),
      required: true,
    },
    responses: {
      200: { about: "The removal is approved.", schema: cellAnswer },
      202: {
        about: "Nothing is approved yet. Repeat the call with the `cursor` to compare the other claims.",
        schema: z.strictObject({
          cursor: z.string(),
          compared_claims: wholeNumber.meta({ description: "The claims that all calls have compared." }),
        }),
        example: { cursor: "dGhpcyBpcyBvcGFxdWU", compared_claims: 400_000 },
      },
    },
    errors: [
      unknownCell,
      {
        code: "FAILED_PRECONDITION",
        reason: "CELL_NOT_DRAINING",
        when: "The cell is not draining. Drain it first.",
      },
      hasLeases,
      {
        code: "FAILED_PRECONDITION",
        reason: "EXPORT_DIFFERS",
        when: "The export is not what the cell has now. Export again. Nothing was done.",
      },
      changedMeanwhile,
      unreachable,
    ],
    example: {
      params: { cell: "7" },
      body: {
        export: [
          { source_type: "RAILS_TABLE_USERS", count: 4_211, hash: "5d0ab1c44f0be7a09e3c6fd20c8a7715" },
        ],
      },
    },
  }),
  stepRemoval: route({
    group: "cells",
    method: "POST",
    path: "/v1/admin/cells/{cell}/removal/steps",
    summary: "Release the next claims of a cell that is being removed",
    about:
      "Releases some claims of one shard, and says how many are left. Repeat it until the state is " +
      "`REMOVED`. It can be repeated after any failure, and by anyone. The first step starts the removal, " +
      "for good. The audit has the reasons of the first step and of the last.",
    roles: operator,
    params: cellParams,
    query: nothing,
    body: {
      schema: z
        .strictObject({
          reason,
          limit: z
            .int()
            .min(1)
            .max(limitTable.batchOps.max)
            .optional()
            .meta({
              description:
                `The most claims to release, by default ${limitTable.batchOps.default}. A value above the ` +
                "limit of a begin (`batch_ops`) counts as that limit.",
            }),
        })
        .meta({ id: "RemovalStep" }),
      required: true,
    },
    responses: {
      200: {
        about: "What this step has done.",
        schema: z.strictObject({
          state,
          released_claims: wholeNumber.meta({ description: "The claims that this step has released." }),
          claims_left: wholeNumber.meta({
            description:
              "The claims of the export that no step has released. After a ledger went back in time, " +
              "the number may be too large.",
          }),
        }),
        example: { state: "REMOVING", released_claims: 1_000, claims_left: 3_211 },
      },
    },
    errors: [unknownCell, notRemoving, hasLeases, changedMeanwhile, unreachable, auditFull],
    example: { params: { cell: "7" }, body: { reason: "its hardware is lost" } },
  }),
};
