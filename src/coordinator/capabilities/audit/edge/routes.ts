import * as z from "zod";
import { auditActions } from "../audit.ts";
import {
  cellId,
  keyId,
  moment,
  nextPageToken,
  nothing,
  pageSize,
  pageToken,
  time,
} from "../../../api/contract/fields.ts";
import { route } from "../../../api/contract/route.ts";

const action = z.enum(auditActions).meta({ description: "What the operator did." });

const state = z
  .record(z.string(), z.unknown())
  .nullable()
  .meta({ description: "What is kept of the state, without secrets. Null: there was none." });

const auditEntry = z
  .strictObject({
    id: z.uuid(),
    at: time,
    key_id: z.string().meta({ description: "The key that the operator used." }),
    key_note: z.string().nullable().meta({
      description: "What the key is for. Null: it has no note, or was made offline.",
    }),
    action,
    cell_id: cellId.nullable().meta({ description: "The cell that the change is about. Null: none." }),
    target: z.string().meta({
      description:
        "What was changed: a cell, a key, a lease or a part by its id, a name by its hash, or `types`.",
    }),
    part: z.string().meta({
      description: "The part that made the change: `directory`, `ledger-7` or `shard-3`.",
    }),
    reason: z.string().nullable().meta({ description: "Why, as the operator said. Null: not said." }),
    request_id: z.string().meta({ description: "The id of the request in the log." }),
    before: state,
    after: state,
  })
  .meta({ id: "AuditEntry", description: "A change that an operator made." });

/** The longest text that is the id of something: a key's. */
const MAX_TARGET = 64;

const target = z
  .string()
  .max(MAX_TARGET)
  .regex(/^[\w-]+$/, "must be the id of a cell, a key, a lease or a part, the hash of a name, or `types`")
  .meta({ description: "Only changes of this cell, key, lease, part or hash of a name, or of the `types`." });

const exampleEntry = {
  id: "0b0e8a52-5c0f-4b5e-9a35-2f0c8a1d7e11",
  at: "2026-11-20T12:00:00.000Z",
  key_id: "01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42",
  key_note: "Ada's key",
  action: "change_cell",
  cell_id: "7",
  target: "7",
  part: "directory",
  reason: "moved to another address",
  request_id: "5f1d9a0e-7a35-4c55-8f11-cc4a6d3b9c02",
  before: { name: "Europe 1", address: "https://cell-7.example.com", location_hint: "weur" },
  after: { name: "Europe 1", address: "https://cell-7.example.net", location_hint: "weur" },
};

export const auditRoutes = {
  listAudit: route({
    group: "audit",
    method: "GET",
    path: "/v1/admin/audit",
    summary: "List what operators changed",
    about:
      "Lists the changes that operators made, the latest first. The list is read from D1, where the cron " +
      "copies new entries once a minute. They are kept for the limit `audit_retention_s`, a year by default.",
    roles: ["operator", "viewer"],
    params: nothing,
    query: z.strictObject({
      key_id: keyId.optional().meta({ description: "Only changes by this key." }),
      action: action.optional().meta({ description: "Only changes of this kind." }),
      cell: cellId.optional().meta({ description: "Only changes that are about this cell." }),
      target: target.optional(),
      after: moment.optional().meta({ description: "Only changes at or after this time." }),
      before: moment.optional().meta({ description: "Only changes before this time." }),
      page_size: pageSize.optional(),
      page_token: pageToken.optional(),
    }),
    responses: {
      200: {
        about: "A page of entries.",
        schema: z.strictObject({
          entries: z.array(auditEntry),
          complete_through: time.nullable().meta({
            description:
              "The list has every change that was made before this time. Null: no run of the cron in the " +
              "last days has copied the entries of all parts.",
          }),
          next_page_token: nextPageToken,
        }),
        example: {
          entries: [exampleEntry],
          complete_through: "2026-11-20T12:01:00.000Z",
          next_page_token: "",
        },
      },
    },
    errors: [{ code: "UNAVAILABLE", when: "The projection in D1 cannot be read." }],
    example: { query: { cell: "7" } },
  }),
};
