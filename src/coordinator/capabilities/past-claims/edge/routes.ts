import * as z from "zod";
import { limitTable } from "../../../../common/limits.ts";
import {
  bucketType,
  cellId,
  moment,
  nextPageToken,
  nothing,
  pageSize,
  pageToken,
  reason,
  time,
  wholeNumber,
} from "../../../api/contract/fields.ts";
import { auditFull, route, type RouteError } from "../../../api/contract/route.ts";
import { bucket, scope, source, subject } from "../../../api/contract/schemas.ts";

export const period = z
  .strictObject({
    cell_id: cellId,
    value: z.string().meta({ description: "The name in the spelling of this claim." }),
    subject,
    source,
    scope,
    epoch: wholeNumber.meta({ description: "The epoch of the claim. A later period has a larger one." }),
    from: time,
    until: time.nullable().meta({ description: "When the claim ended. Null: it has not ended." }),
    ended_by: z
      .strictObject({
        lease_uuid: z.uuid(),
        kind: z.enum(["destroy", "replace", "move"]).meta({
          description:
            "`replace`: another period of the same cell follows at once. `move`: a transfer has given the " +
            "name to another cell, and the lease is the transfer.",
        }),
      })
      .nullable()
      .meta({
        description:
          "The lease that ended the claim: one of the same cell, or a transfer. Null: it has not ended.",
      }),
  })
  .meta({
    id: "Period",
    description: "The time during which a name had one cell, subject, source, scope and spelling.",
  });

const unsure: RouteError = {
  code: "UNAVAILABLE",
  when: "The shard of the name, or a ledger that it must ask, cannot be reached, so the answer is unknown.",
};

const examplePeriod = {
  cell_id: "7",
  value: "ada",
  subject: { type: "USER", id: "42" },
  source: { type: "RAILS_TABLE_USERS", id: "42" },
  epoch: 12,
  from: "2026-11-02T09:30:00.000Z",
  until: "2026-11-18T16:05:12.250Z",
  ended_by: { lease_uuid: "01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42", kind: "destroy" },
};

export const historyRoutes = {
  listHistory: route({
    group: "history",
    method: "GET",
    path: "/v1/admin/history/{bucket_type}/{value}",
    rest: true,
    summary: "List who owned a name",
    about:
      "Lists the periods of a name, the latest first: which cell had it, for which subject and source, and " +
      "from when until when. The current claim is the period without an end. The value is the rest of the " +
      "path and may contain slashes. A page may have few periods or none although more follow: only an " +
      "empty `next_page_token` ends the list. If no period covers a moment before `complete_since`, the " +
      "owner of that moment is unknown.",
    roles: ["operator", "viewer"],
    params: z.strictObject({
      bucket_type: bucketType,
      value: z.string().meta({ description: "The name, in any spelling that has its canonical form." }),
    }),
    query: z.strictObject({
      at: moment.optional().meta({ description: "Only the period that covers this moment." }),
      page_size: pageSize.optional(),
      page_token: pageToken.optional(),
    }),
    responses: {
      200: {
        about: "A page of periods. There are none if no cell had the name.",
        schema: z.strictObject({
          periods: z.array(period),
          complete_since: time.nullable().meta({
            description:
              "Every period that ended after this time is listed, unless it was erased. Null: all that " +
              "ever ended.",
          }),
          next_page_token: nextPageToken,
        }),
        example: {
          periods: [examplePeriod],
          complete_since: "2026-08-27T00:00:00.000Z",
          next_page_token: "",
        },
      },
    },
    errors: [unsure],
    example: { params: { bucket_type: "USERNAMES", value: "ada" }, query: { at: "2026-11-10T12:00:00Z" } },
  }),
  eraseHistory: route({
    group: "history",
    method: "POST",
    path: "/v1/admin/history/erase",
    summary: "Erase the history of a name",
    about:
      "Erases the periods of a name that have ended. The current claim stays. This is final, and later " +
      `answers don't say that something was erased. One call erases up to ${limitTable.scanRows.default} ` +
      "periods: while the answer has `has_more`, repeat it. With `dry_run`, nothing is changed, and the " +
      "answer says how many one call would erase. The audit entry has a hash of the name and not the name, " +
      "so don't write it into the reason.",
    roles: ["operator"],
    params: nothing,
    query: nothing,
    body: {
      schema: z
        .strictObject({
          bucket,
          reason,
          dry_run: z.boolean().meta({ description: "If true, nothing is changed." }),
        })
        .meta({ id: "HistoryErasure" }),
      required: true,
    },
    responses: {
      200: {
        about: "What was erased, or would be erased.",
        schema: z.strictObject({
          erased: wholeNumber.meta({ description: "The number of periods." }),
          changes: wholeNumber.meta({
            description:
              "The number of changes in the change feed that lose the name. They are erased with the last " +
              "periods, when `has_more` is false.",
          }),
          has_more: z.boolean().meta({ description: "If true, periods are left: repeat the call." }),
          dry_run: z.boolean(),
        }),
        example: { erased: 3, changes: 6, has_more: false, dry_run: false },
      },
    },
    errors: [
      auditFull,
      {
        code: "UNAVAILABLE",
        when: "A shard that has or had the name cannot be reached. It may still erase it.",
      },
    ],
    example: {
      body: {
        bucket: { type: "USERNAMES", value: "ada" },
        reason: "request 4711 of a former user",
        dry_run: false,
      },
    },
  }),
};
