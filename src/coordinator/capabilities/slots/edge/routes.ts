import * as z from "zod";
import { cellId, nothing, time, uuid, wholeNumber } from "../../../api/contract/fields.ts";
import { route, type RouteError } from "../../../api/contract/route.ts";

const roles = ["cell", "operator"] as const;
const params = z.strictObject({ cell: cellId, uuid });
const example = { params: { cell: "7", uuid: "01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42" } };

const slot = z
  .strictObject({
    uuid: z.uuid(),
    cell_id: cellId,
    expires_at: time,
    expires_in_ms: wholeNumber.meta({
      description: "Milliseconds from this answer until the slot expires, by the directory's clock.",
    }),
  })
  .meta({ id: "VerificationSlot", description: "Permission for one run to verify one cell." });

const directoryDown: RouteError = {
  code: "UNAVAILABLE",
  when: "The directory or the cell's ledger cannot be reached.",
};

export const verificationRoutes = {
  takeVerificationSlot: route({
    group: "verification",
    method: "PUT",
    path: "/v1/cells/{cell}/verification-slots/{uuid}",
    summary: "Take or renew a slot",
    about:
      "Verification slots limit how many cells verify at the same time. Choose an id for the run, take " +
      "a slot with it, and renew the slot with the same call well before `expires_in_ms` is over. Cells " +
      "that find no slot wait in a queue, in the order of their first calls. A waiting cell calls again " +
      "after `Retry-After`. If it is late by the length of a slot, it loses its place. Slots only control " +
      "load: no safety depends on them. A frozen cell may take one.",
    roles,
    params,
    query: nothing,
    responses: {
      200: {
        about: "The run has the slot until it expires or is released.",
        schema: z.strictObject({ slot }),
        example: {
          slot: {
            uuid: example.params.uuid,
            cell_id: "7",
            expires_at: "2026-11-20T12:01:00.000Z",
            expires_in_ms: 60_000,
          },
        },
      },
    },
    errors: [
      {
        code: "RESOURCE_EXHAUSTED",
        reason: "NO_VERIFICATION_SLOT",
        when:
          "All slots are taken or go to cells that asked earlier, or another run of this cell has one. A " +
          "renewal gets it when the run has had its slot for `verification_turn_ms` and other cells wait " +
          "for it. Try again after `Retry-After`.",
      },
      directoryDown,
    ],
    example,
  }),
  releaseVerificationSlot: route({
    group: "verification",
    method: "POST",
    path: "/v1/cells/{cell}/verification-slots/{uuid}/release",
    summary: "Release a slot",
    about:
      "Gives a slot back when the run is over. If the call is repeated, or the slot has expired, " +
      "`released` is false.",
    roles,
    params,
    query: nothing,
    responses: {
      200: {
        about: "The run no longer has a slot.",
        schema: z.strictObject({
          released: z.boolean().meta({ description: "Whether the run still had a slot." }),
        }),
        example: { released: true },
      },
    },
    errors: [directoryDown],
    example,
  }),
};
