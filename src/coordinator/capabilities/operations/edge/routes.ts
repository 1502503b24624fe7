import * as z from "zod";
import { nothing, reason, uuid } from "../../../api/contract/fields.ts";
import { auditFull, operationRunning, route, type RouteError } from "../../../api/contract/route.ts";
import { operation, operationId } from "../../../api/contract/schemas.ts";

const operator = ["operator"] as const;

const unreachable: RouteError = {
  code: "UNAVAILABLE",
  when: "The directory cannot be reached. Repeat the call.",
};

const restore = {
  id: "01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42",
  kind: "restore",
  about: "deployment",
  started_at: "2026-11-28T08:00:00.000Z",
  started_by: "c_4vUr1xYq0w",
  how_to_end:
    "wait for it, go on with it, or give it up " +
    "(`leasehold operations end 01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42`)",
} as const;

export const operationRoutes = {
  listOperations: route({
    group: "operations",
    method: "GET",
    path: "/v1/admin/operations",
    summary: "List the operations that run",
    about: "Lists what operators have started and what has not ended: growths, restores, reconciliations.",
    roles: ["operator", "viewer"],
    params: nothing,
    query: nothing,
    responses: {
      200: {
        about: "All operations that run, in the order in which they began.",
        schema: z.strictObject({ operations: z.array(operation) }),
        example: { operations: [restore] },
      },
    },
    errors: [unreachable],
    example: {},
  }),
  startRestore: route({
    group: "operations",
    method: "POST",
    path: "/v1/admin/operations",
    summary: "Say that a restore begins",
    about:
      "Keeps other operations from starting while a backup is restored. It changes no name. The caller " +
      "chooses the id, so a repeated call changes nothing. Nothing ends a restore by itself: end it.",
    roles: operator,
    params: nothing,
    query: nothing,
    body: {
      schema: z.strictObject({ id: uuid, kind: z.enum(["restore"]), reason }).meta({ id: "RestoreStart" }),
      required: true,
    },
    responses: {
      200: { about: "The restore.", schema: z.strictObject({ operation }), example: { operation: restore } },
    },
    errors: [operationRunning, unreachable, auditFull],
    example: { body: { id: restore.id, kind: "restore", reason: "region lost" } },
  }),
  endRestore: route({
    group: "operations",
    method: "POST",
    path: "/v1/admin/operations/{operation}/end",
    summary: "Say that a restore has ended",
    about:
      "Lets other operations start again. It stops nothing: a restore that still runs goes on. Other " +
      "operations end in their own ways, and are refused. A repeated call changes nothing.",
    roles: operator,
    params: z.strictObject({ operation: operationId }),
    query: nothing,
    body: { schema: z.strictObject({ reason }).meta({ id: "RestoreEnd" }), required: true },
    responses: {
      200: {
        about: "The operation does not run any more.",
        schema: z.strictObject({ operation: operation.nullable() }),
        example: { operation: null },
      },
    },
    errors: [operationRunning, unreachable, auditFull],
    example: { params: { operation: restore.id }, body: { reason: "the restore was given up" } },
  }),
};
