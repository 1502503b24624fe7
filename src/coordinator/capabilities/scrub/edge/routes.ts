import * as z from "zod";
import { scrubKinds, scrubTables } from "../messages.ts";
import { MAX_FINDINGS } from "../scrub.ts";
import { nothing, time, wholeNumber } from "../../../api/contract/fields.ts";
import { route, type RouteError } from "../../../api/contract/route.ts";

const partId = z
  .string()
  .regex(
    /^(?:shard-(?:0|[1-9]\d{0,8})|ledger-[1-9]\d{0,18})$/,
    "must be a shard or a ledger: `shard-3` or `ledger-7`",
  )
  .meta({
    description: "A shard by its number, or the ledger of a cell by the cell's id.",
    examples: ["shard-3", "ledger-7"],
  });

const kind = z.enum(scrubKinds).meta({
  description:
    "What is wrong. In a shard: `wrong_epoch`, `wrong_digest`, `wrong_source_order`, `wrong_shard`, " +
    "`wrong_canonical_form`, `unfit_hold`, which does not fit the claim of its name, and `unlogged_hold`, " +
    "which the log lacks or has with another cell, time or kind. In a ledger: " +
    "`missing_holds` of a granted lease, `unreadable_lease`, `unlisted_lease`, which is granted and which " +
    "no list has, and `undelivered_decision`.",
});

const finding = z
  .strictObject({
    kind,
    table: z.enum(scrubTables),
    found_at: time,
    bucket: z
      .strictObject({
        type: z.string().nullable().meta({ description: "Null: no type in use has the number." }),
        canonical: z.string(),
      })
      .nullable()
      .meta({ description: "The name of the row. Null: the finding is about a range hold or a lease." }),
    cell_id: z.string().meta({ description: "The cell that the row names." }),
    lease_uuid: z.string().nullable().meta({ description: "Null: the row is a claim." }),
    epoch: wholeNumber.nullable().meta({ description: "Null: the finding is about a lease." }),
    missing: z
      .strictObject({ shard: wholeNumber, holds: wholeNumber })
      .nullable()
      .meta({ description: "The shard that lacks holds of the lease, and how many." }),
  })
  .meta({ id: "ScrubFinding", description: "A row that breaks a rule of the protocol." });

const pass = z
  .strictObject({
    number: wholeNumber.meta({ description: "Counts the passes of the part." }),
    started_at: time,
    ended_at: time.nullable().meta({ description: "Null: the pass is under way." }),
    table: z.enum(scrubTables).nullable().meta({ description: "The table that is read now." }),
    rows: wholeNumber.meta({ description: "The rows that were checked." }),
    found: wholeNumber.meta({ description: "The number of findings." }),
    findings: z.array(finding).meta({ description: `The first of them, at most ${MAX_FINDINGS}.` }),
    cleared_holds: wholeNumber.meta({
      description: "Holds that inquiries have ended, because their begins or leases were over.",
    }),
    unchecked: wholeNumber.meta({
      description: "Holds and leases that were not compared, because the other part did not answer.",
    }),
  })
  .meta({ id: "ScrubPass", description: "One pass over all rows of a part." });

const status = z
  .strictObject({
    part: partId,
    state: z.enum(["complete", "lost", "reconciling"]),
    running: pass.nullable().meta({ description: "Null: no pass is under way." }),
    last: pass.nullable().meta({ description: "The last pass that has ended. Null: none has." }),
  })
  .meta({ id: "ScrubStatus", description: "How far the scrub of a part is, and what it has found." });

const params = z.strictObject({ part: partId });

const example = {
  part: "shard-3",
  state: "complete" as const,
  running: null,
  last: {
    number: 12,
    started_at: "2026-11-27T12:00:00.000Z",
    ended_at: "2026-11-27T12:04:00.000Z",
    table: null,
    rows: 41_230,
    found: 1,
    findings: [
      {
        kind: "wrong_digest" as const,
        table: "claims" as const,
        found_at: "2026-11-27T12:01:00.000Z",
        bucket: { type: "USERNAMES", canonical: "ada" },
        cell_id: "7",
        lease_uuid: null,
        epoch: 12,
        missing: null,
      },
    ],
    cleared_holds: 0,
    unchecked: 0,
  },
};

const unknownPart: RouteError = { code: "NOT_FOUND", when: "There is no such shard." };
const unknownCell: RouteError = {
  code: "NOT_FOUND",
  reason: "CELL_UNKNOWN",
  when: "The cell of the ledger is not registered.",
};
const partDown: RouteError = { code: "UNAVAILABLE", when: "The part or the directory cannot be reached." };

export const scrubRoutes = {
  getScrub: route({
    group: "parts",
    method: "GET",
    path: "/v1/admin/parts/{part}/scrub",
    summary: "Read what a scrub has found",
    about:
      "Reads how far the scrub of a shard or ledger is, and what the last pass and the running one have " +
      "found. The cron scrubs each part once per `scrub_every_s`.",
    roles: ["operator", "viewer"],
    params,
    query: nothing,
    responses: { 200: { about: "The scrub of the part.", schema: status, example } },
    errors: [unknownPart, unknownCell, partDown],
    example: { params: { part: "shard-3" } },
  }),
  stepScrub: route({
    group: "parts",
    method: "POST",
    path: "/v1/admin/parts/{part}/scrub",
    summary: "Scrub a part",
    about:
      "Checks the next rows of a shard or ledger. Repeat it while the answer has a `running` pass. It " +
      "changes no name and no lease, and has no audit entry. You can repeat it at any time.",
    roles: ["operator"],
    params,
    query: nothing,
    body: {
      schema: z
        .strictObject({
          restart: z.boolean().meta({ description: "If true, a new pass begins with the first row." }),
        })
        .meta({ id: "ScrubStep" }),
      required: true,
    },
    responses: { 200: { about: "The scrub of the part after the step.", schema: status, example } },
    errors: [
      unknownPart,
      unknownCell,
      {
        code: "UNAVAILABLE",
        reason: "HISTORY_LOST",
        when: "The part has gone back in time. Reconcile it first; what it has lost is no finding.",
      },
      partDown,
    ],
    example: { params: { part: "shard-3" }, body: { restart: false } },
  }),
};
