import * as z from "zod";
import { cellId, nothing, time, uuid, wholeNumber } from "./fields.ts";
import { route, type RouteError } from "./route.ts";

const roles = ["cell", "operator"] as const;
const params = z.strictObject({ cell: cellId, uuid });
const example = { params: { cell: "7", uuid: "01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42" } };

const slot = z
  .strictObject({
    uuid: z.uuid(),
    cell_id: cellId,
    expires_at: time,
    expires_in_ms: wholeNumber.meta({ description: "From this answer on, by the clock of the directory." }),
  })
  .meta({ id: "VerificationSlot", description: "Leave to verify a cell now." });

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
      "So that verifications of many cells do not all run at once. Choose an id for the run, take a slot, and renew it with the same call while the run lasts. A slot steers load only: nothing that is safe with one is unsafe without. A frozen cell may have one.",
    roles,
    params,
    query: nothing,
    responses: {
      200: {
        about: "The slot is the run's until it expires or is released.",
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
        when: "Other cells have all slots, or another run of this cell has one. Try again after `Retry-After`.",
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
    about: "When the run is over. Again, or when the slot has expired: `released` is false.",
    roles,
    params,
    query: nothing,
    responses: {
      200: {
        about: "The run has no slot.",
        schema: z.strictObject({
          released: z.boolean().meta({ description: "Whether it had one until now." }),
        }),
        example: { released: true },
      },
    },
    errors: [directoryDown],
    example,
  }),
};
