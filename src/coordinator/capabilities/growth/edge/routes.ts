import * as z from "zod";
import { MAX_WAITING, type Growth } from "../messages.ts";
import { MAX_SHARDS } from "../../../kernel/placement.ts";
import type { GrowthProgress } from "../messages.ts";
import { nothing, reason, time, wholeNumber } from "../../../api/contract/fields.ts";
import { auditFull, operationRunning, route, type RouteError } from "../../../api/contract/route.ts";

const operator = ["operator"] as const;

const phases = ["copying", "cutting", "cut"] as const satisfies readonly Growth["phase"][];
const states = [
  "none",
  "copying",
  "copied",
  "pushing",
  "cleaning",
  "done",
] as const satisfies readonly GrowthProgress["state"][];

const source = z
  .strictObject({
    shard: wholeNumber,
    state: z
      .enum(states)
      .nullable()
      .meta({
        description:
          "`none` before the first step, `copying`, then `copied`. After the cut: `pushing` until the " +
          "shard has handed over its names, " +
          "`cleaning` while it deletes its own rows of them, and `done`. The growth ends when all are " +
          "`done`, and every ledger has told the shards what it has seen of them. Null: the shard does " +
          "not answer.",
      }),
    copied: wholeNumber.meta({ description: "The names that were sent to new shards." }),
    waiting: wholeNumber.meta({
      description: "Changes of copied names that must be sent again, at most 10,000.",
    }),
    cleaned: wholeNumber.meta({ description: "The rows of names that have moved and are deleted." }),
    waits_for: z.enum(["transfer", "reconciliation"]).nullable().meta({
      description:
        "What must end before the cut: a transfer that holds names of the shard, or its reconciliation.",
    }),
  })
  .meta({ id: "GrowthSource", description: "How far a shard is that gives names to new shards." });

const growth = z
  .strictObject({
    from: wholeNumber.meta({ description: "The number of shards before." }),
    to: wholeNumber.meta({ description: "The number of shards afterwards." }),
    phase: z.enum(phases).meta({
      description:
        "`copying`: nothing is served differently, and the growth can be aborted. `cutting`: the cut was " +
        "ordered and goes on by itself. `cut`: the new shards are in use, and the old ones hand over " +
        "what is left and delete their rows.",
    }),
    started_at: time,
    cut_at: time.nullable().meta({ description: "When the cut was ordered. Null: it was not." }),
    can_be_cut: z.boolean().meta({
      description:
        "Whether every shard has copied its names, waits for nothing, and has at most " +
        `${MAX_WAITING.toLocaleString("en-US")} changes that wait.`,
    }),
    sources: z.array(source).meta({ description: "The shards of before, in order." }),
  })
  .meta({ id: "Growth", description: "A deployment on its way to more shards." });

const status = z
  .strictObject({
    shards: wholeNumber.meta({ description: "The number of shards in use." }),
    growth: growth.nullable().meta({ description: "Null: the number of shards is not changing." }),
  })
  .meta({ id: "Shards" });

const ofSources = { waiting: 0, cleaned: 0, waits_for: null };
const copying = {
  shards: 2,
  growth: {
    from: 2,
    to: 5,
    phase: "copying",
    started_at: "2026-11-28T08:00:00.000Z",
    cut_at: null,
    can_be_cut: false,
    sources: [
      { shard: 0, state: "copied", copied: 29_871, ...ofSources },
      { shard: 1, state: "copying", copied: 12_500, ...ofSources },
    ],
  },
} as const;

const unreachable: RouteError = {
  code: "UNAVAILABLE",
  when: "The directory cannot be reached. Repeat the call.",
};
const notDropped: RouteError = {
  code: "UNAVAILABLE",
  when: "The directory cannot be reached, or a shard that may have copies of an aborted growth. Repeat it.",
};
const cannotCopy: RouteError = {
  code: "FAILED_PRECONDITION",
  reason: "GROWTH_SHARD_UNAVAILABLE",
  when: "A shard that has names to copy can't be reached, or can't answer. Nothing was started.",
};
const unknown: RouteError = {
  code: "FAILED_PRECONDITION",
  reason: "GROWTH_UNKNOWN",
  when: "No growth runs, or another one than when the call began.",
};
const notCopied: RouteError = {
  code: "FAILED_PRECONDITION",
  reason: "GROWTH_NOT_COPIED",
  when: "A shard has not copied all of its names yet, or does not answer. Go on with the steps.",
};
const wasCut: RouteError = {
  code: "FAILED_PRECONDITION",
  reason: "GROWTH_CUT",
  when: "The growth was cut, so it goes on to its end.",
};

const answer = (about: string) => ({ 200: { about, schema: status, example: copying } });

export const growthRoutes = {
  getGrowth: route({
    group: "shards",
    method: "GET",
    path: "/v1/admin/growth",
    summary: "Show the number of shards, and how far a growth is",
    about: "Asks the directory, and while the deployment grows, every shard of before.",
    roles: ["operator", "viewer"],
    params: nothing,
    query: nothing,
    responses: answer("The number of shards, and the growth that runs."),
    errors: [unreachable],
    example: {},
  }),
  startGrowth: route({
    group: "shards",
    method: "POST",
    path: "/v1/admin/growth",
    summary: "Start to get more shards",
    about:
      "Starts a growth to a larger number of shards. Nothing is served differently before the cut. The " +
      "steps carry it out: call them, or wait for the cron, which makes some each minute. A repeated call " +
      "changes nothing.",
    roles: operator,
    params: nothing,
    query: nothing,
    body: {
      schema: z
        .strictObject({
          shards: z
            .int()
            .min(2)
            .max(MAX_SHARDS)
            .meta({ description: "The number of shards that is wanted. There can never be fewer again." }),
          reason,
        })
        .meta({ id: "GrowthStart" }),
      required: true,
    },
    responses: answer("The growth has started."),
    errors: [operationRunning, cannotCopy, notDropped, auditFull],
    example: { body: { shards: 5, reason: "begins wait for the shards" } },
  }),
  stepGrowth: route({
    group: "shards",
    method: "POST",
    path: "/v1/admin/growth/steps",
    summary: "Carry out the next steps of a growth",
    about:
      "Works for a few seconds: copies names before the cut, and hands over names and deletes old rows " +
      "after it. Repeat it until `growth` is null, or `can_be_cut` is true. It can be repeated after any " +
      "failure, and by anyone. It never orders the cut, but completes one that was ordered.",
    roles: operator,
    params: nothing,
    query: nothing,
    responses: answer("How far the growth is after these steps."),
    errors: [unreachable],
    example: {},
  }),
  cutGrowth: route({
    group: "shards",
    method: "POST",
    path: "/v1/admin/growth/cut",
    summary: "Put the new number of shards in use",
    about:
      "Cuts a growth whose names are copied: from now on, the new shards own what they have got. That is " +
      "final. A name that moves is unavailable until its old shard has sent its last changes, which takes " +
      "some messages. Then go on with the steps.",
    roles: operator,
    params: nothing,
    query: nothing,
    body: { schema: z.strictObject({ reason }).meta({ id: "GrowthCut" }), required: true },
    responses: answer("The cut has been made."),
    errors: [notCopied, operationRunning, unknown, unreachable, auditFull],
    example: { body: { reason: "a quiet hour" } },
  }),
  abortGrowth: route({
    group: "shards",
    method: "POST",
    path: "/v1/admin/growth/abort",
    summary: "Abort a growth before its cut",
    about:
      "Ends a growth that was not cut. The new shards delete their copies. If one can't be reached, the " +
      "cron tells it later.",
    roles: operator,
    params: nothing,
    query: nothing,
    body: { schema: z.strictObject({ reason }).meta({ id: "GrowthAbort" }), required: true },
    responses: answer("No growth runs any more."),
    errors: [wasCut, unknown, unreachable, auditFull],
    example: { body: { reason: "the wrong number" } },
  }),
};
