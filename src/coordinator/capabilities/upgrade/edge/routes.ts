import * as z from "zod";
import { nothing, reason, wholeNumber } from "../../../api/contract/fields.ts";
import { auditFull, route, type RouteError } from "../../../api/contract/route.ts";

const causes = ["OLDER_CODE", "OLDER_CALLERS", "UNREACHABLE", "MISSING_MIGRATION"] as const;

const blocker = z.strictObject({
  part: z.string().meta({
    description: "`shard-3`, `ledger-7`, `directory`, or `d1`.",
    examples: ["shard-3"],
  }),
  cause: z.enum(causes).meta({
    description:
      "`OLDER_CODE`: the part does not speak the newest format. `OLDER_CALLERS`: within the last minute, " +
      "it was called by code that does not. `UNREACHABLE`: the part does not answer. " +
      "`MISSING_MIGRATION`: D1 lacks a migration.",
  }),
  detail: z.string(),
});

const upgrade = z
  .strictObject({
    release: z.string().meta({ description: "The version of the Worker that answers." }),
    format: wholeNumber.meta({ description: "The format in force." }),
    newest_format: wholeNumber.meta({ description: "The newest format that a part speaks." }),
    is_finished: z.boolean().meta({ description: "Whether the newest format is in force." }),
    waiting_features: z
      .array(z.string())
      .meta({ description: "What works only once the upgrade is finished." }),
    blockers: z.array(blocker).meta({ description: "What keeps the upgrade from being finished." }),
  })
  .meta({ id: "Upgrade", description: "The versions of the parts, and the format in force." });

const example = {
  release: "0.3.0",
  format: 1,
  newest_format: 2,
  is_finished: false,
  waiting_features: ["a cell can be renamed"],
  blockers: [{ part: "shard-3", cause: "OLDER_CODE", detail: "it speaks format 1" }],
} as const;

const answer = (about: string) => ({
  200: { about, schema: z.strictObject({ upgrade }), example: { upgrade: example } },
});

const unreachable: RouteError = {
  code: "UNAVAILABLE",
  when: "The directory cannot be reached. Repeat the call.",
};
const blocked: RouteError = {
  code: "FAILED_PRECONDITION",
  reason: "UPGRADE_BLOCKED",
  when:
    "A part runs older code, hears older code, or does not answer, or this is not the newest format that " +
    "the Worker speaks. Nothing was done.",
};

export const upgradeRoutes = {
  getUpgrade: route({
    group: "operations",
    method: "GET",
    path: "/v1/admin/upgrade",
    summary: "Show the format in force, and what an upgrade waits for",
    about: "Asks every part which formats its code speaks, and tells it the one in force.",
    roles: ["operator", "viewer"],
    params: nothing,
    query: nothing,
    responses: answer("The formats of all parts."),
    errors: [unreachable],
    example: {},
  }),
  finishUpgrade: route({
    group: "operations",
    method: "POST",
    path: "/v1/admin/upgrade/finish",
    summary: "Put the newest format in force",
    about:
      "Declares an upgrade finished. Until then, an operator can return to the version before; afterwards " +
      "never. Features of the newer version work from then on. All parts must speak the format. A repeated " +
      "call tells the parts again and changes nothing else.",
    roles: ["operator"],
    params: nothing,
    query: nothing,
    body: {
      schema: z
        .strictObject({
          format: wholeNumber.meta({ description: "The format, which is that of `newest_format`." }),
          reason,
        })
        .meta({ id: "UpgradeFinish" }),
      required: true,
    },
    responses: answer("The format is in force."),
    errors: [blocked, unreachable, auditFull],
    example: { body: { format: 2, reason: "0.3.0 has run for a day" } },
  }),
};
