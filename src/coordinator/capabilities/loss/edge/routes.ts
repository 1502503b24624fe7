import * as z from "zod";
import { cellStates } from "../../../api/contract/cell-states.ts";
import { cellId, nothing, reason, time, wholeNumber } from "../../../api/contract/fields.ts";
import { auditFull, route, type RouteError } from "../../../api/contract/route.ts";
import { point } from "../../../api/contract/schemas.ts";

const roles = ["operator"] as const;

const partId = z
  .string()
  .regex(
    /^(?:directory|shard-(?:0|[1-9]\d{0,8})|ledger-[1-9]\d{0,18})$/,
    "must be a part: `shard-3`, `ledger-7`, or `directory`",
  )
  .meta({
    description: "A shard by its number, the ledger of a cell by the cell's id, or `directory`.",
    examples: ["shard-3", "ledger-7", "directory"],
  });

const params = z.strictObject({ part: partId });

const part = z
  .strictObject({
    id: partId,
    state: z.enum(["complete", "lost", "reconciling"]).meta({
      description:
        "`complete`: in service. `lost`: it has gone back in time, and refuses everything. `reconciling`: " +
        "a shard that has accepted its loss. Until it is finished, it grants only what verification begins.",
    }),
    point: point.nullable().meta({ description: "The newest point that the part has. Null: none." }),
    loss: z
      .strictObject({
        noticed_by: z
          .string()
          .meta({ description: "Who has seen more of the part than it has, or `an operator`." }),
        noticed_at: time,
        seen: point.nullable().meta({
          description:
            "The point that was seen, and that the part does not have. Null: an operator " +
            "declared the loss.",
        }),
        point: point.nullable().meta({ description: "The newest point that was left of the part." }),
      })
      .nullable()
      .meta({ description: "What was noticed. Null if the part is complete." }),
  })
  .meta({
    id: "Part",
    description: "A shard, a ledger or the directory, and whether it has gone back in time.",
  });

const partAnswer = z.strictObject({ part });

const reconciliation = z.strictObject({
  part,
  dry_run: z.boolean(),
  lost_leases: z
    .array(
      z.strictObject({
        cell_id: cellId,
        outstanding: wholeNumber.meta({
          description: "Granted leases whose holds are lost. A commit of them takes no name.",
        }),
        decided: wholeNumber.meta({
          description: "Decided leases among the cell's newest outcomes that the shard has lost.",
        }),
        leases: z.array(z.uuid()).meta({ description: "Some of the outstanding leases, at most 10." }),
      }),
    )
    .meta({ description: "For a shard: the cells that have leases which the shard has lost." }),
  rebuilt_leases: z
    .array(z.strictObject({ shard: wholeNumber, holds: wholeNumber, leases: wholeNumber }))
    .meta({
      description: "For a ledger: the leases that are granted again, because a shard has holds of them.",
    }),
  unreachable: z
    .array(partId)
    .meta({ description: "The parts that did not answer. While there are any, only a dry run works." }),
  cell_state: z
    .enum(cellStates)
    .optional()
    .meta({ description: "For a ledger: the state of the cell that is left. A later change of it is lost." }),
  restored: z
    .strictObject({
      cells: z
        .array(cellId)
        .meta({ description: "The cells that were missing or older than their copies, by their ids." }),
      keys: wholeNumber.meta({ description: "The keys whose descriptions were missing." }),
      revocations: wholeNumber.meta({ description: "The revocations that were missing." }),
      types: z
        .array(z.string())
        .meta({ description: "The types that were missing, different, or not marked as in use." }),
    })
    .optional()
    .meta({ description: "For the directory: what the copies in D1 have that the directory has lost." }),
});

const examplePart = {
  id: "shard-3",
  state: "lost",
  point: { incarnation: 117_440_513, position: 4_711 },
  loss: {
    noticed_by: "the ledger of cell 7",
    noticed_at: "2026-11-20T12:00:00.000Z",
    seen: { incarnation: 117_440_513, position: 5_012 },
    point: { incarnation: 117_440_513, position: 4_711 },
  },
};
const completePart = { ...examplePart, state: "complete", loss: null };

const unknownShard: RouteError = { code: "NOT_FOUND", when: "There is no such shard." };
const unknownCell: RouteError = {
  code: "NOT_FOUND",
  reason: "CELL_UNKNOWN",
  when: "The cell of the ledger is not registered.",
};
const partDown: RouteError = { code: "UNAVAILABLE", when: "The part or the directory cannot be reached." };

export const partRoutes = {
  getPart: route({
    group: "parts",
    method: "GET",
    path: "/v1/admin/parts/{part}",
    summary: "Read a part",
    about: "Reads whether a part has gone back in time, and what was noticed.",
    roles: ["operator", "viewer"],
    params,
    query: nothing,
    responses: {
      200: { about: "The part.", schema: partAnswer, example: { part: examplePart } },
    },
    errors: [unknownShard, unknownCell, partDown],
    example: { params: { part: "shard-3" } },
  }),
  reconcilePart: route({
    group: "parts",
    method: "POST",
    path: "/v1/admin/parts/{part}/reconcile",
    summary: "Reconcile a part",
    about:
      "Accepts that a part has gone back in time. A ledger grants the leases again whose holds the shards " +
      "have, and is complete. The directory takes over what it lacks from its copies in D1, and is " +
      "complete. A shard is `reconciling`: let every cell verify, then finish it. With " +
      "`dry_run`, nothing is changed, and the answer says what would be. If the part is not lost, nothing " +
      "is changed. If you know that the storage of a part was set back and the part has not noticed it, " +
      "add `declare_lost`. The call can be repeated, but with `declare_lost` it declares a new loss each " +
      "time: if its outcome is unknown, read the part first.",
    roles,
    params,
    query: nothing,
    body: {
      schema: z
        .strictObject({
          dry_run: z.boolean().meta({ description: "If true, nothing is changed." }),
          declare_lost: z
            .boolean()
            .optional()
            .meta({
              description:
                "If true, a part that has noticed nothing refuses everything at once, as if somebody had " +
                "seen more of it, and is then reconciled. False by default.",
            }),
          reason,
        })
        .meta({ id: "PartReconciliation" }),
      required: true,
    },
    responses: {
      200: {
        about: "What was done, or would be done.",
        schema: reconciliation,
        example: {
          part: examplePart,
          dry_run: true,
          lost_leases: [
            {
              cell_id: "7",
              outstanding: 1,
              decided: 214,
              leases: ["01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42"],
            },
          ],
          rebuilt_leases: [],
          unreachable: [],
        },
      },
    },
    errors: [
      unknownShard,
      unknownCell,
      {
        code: "UNAVAILABLE",
        when: "The part, the directory or a part that it must ask cannot be reached. `detail` says which.",
      },
    ],
    example: { params: { part: "shard-3" }, body: { dry_run: true, reason: "restored from a backup" } },
  }),
  finishPart: route({
    group: "parts",
    method: "POST",
    path: "/v1/admin/parts/{part}/finish",
    summary: "Finish a reconciliation",
    about:
      "Takes a shard back into service, once every cell has verified twice without changes. If the part is " +
      "complete, nothing is changed.",
    roles,
    params,
    query: nothing,
    body: {
      schema: z.strictObject({ reason }).meta({ id: "PartFinish" }),
      required: true,
    },
    responses: {
      200: { about: "The part is complete.", schema: partAnswer, example: { part: completePart } },
    },
    errors: [
      unknownShard,
      unknownCell,
      {
        code: "FAILED_PRECONDITION",
        when:
          "The part is lost: reconcile it first. Or the shard has names of a removed cell again: repeat " +
          "that removal first. `detail` says which.",
      },
      partDown,
      auditFull,
    ],
    example: { params: { part: "shard-3" }, body: { reason: "all cells have verified" } },
  }),
};
