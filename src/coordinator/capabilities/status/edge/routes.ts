import * as z from "zod";
import { cellId, nothing } from "../../../api/contract/fields.ts";
import { route, type RouteError } from "../../../api/contract/route.ts";
import { cellStatus, statusReport } from "../../../api/contract/schemas.ts";

const params = z.strictObject({ cell: cellId });

const ledgerDown: RouteError = { code: "UNAVAILABLE", when: "The cell's ledger cannot be reached." };

const exampleStatus = {
  cell_id: "7",
  reported_at: "2026-11-20T12:00:00.000Z",
  age_ms: 12_000,
  sdk: { name: "leasehold", version: "0.2.0" },
  reconciliation: {
    outcome: "done",
    is_full: false,
    started_at: "2026-11-20T11:59:59.000Z",
    ended_at: "2026-11-20T12:00:00.000Z",
    ended_ago_ms: 12_000,
    last_done_at: "2026-11-20T12:00:00.000Z",
    counts: { processed: 3, committed: 1, rolled_back: 0, pending: 2, failed: 0 },
    stale_leases: 0,
    unreleased_deletions: 0,
  },
};

export const statusRoutes = {
  reportStatus: route({
    group: "status",
    method: "PUT",
    path: "/v1/cells/{cell}/status",
    summary: "Report the cell's status",
    about:
      "Stores what the cell says of itself, for operators: its SDK, its last reconciliation and its last " +
      "verification. A part that is left out stays as it was reported before, so each process of a cell " +
      "may report what it knows. Nothing is decided by a status. Call it after each reconciliation and " +
      "after each verification that did something. `leasehold/cell` does so. A frozen cell may report.",
    roles: ["cell"],
    params,
    query: nothing,
    body: { schema: statusReport, required: true },
    history: true,
    responses: {
      200: {
        about: "The status is stored. It is answered with the parts that were reported before.",
        schema: z.strictObject({ status: cellStatus }),
        example: { status: { ...exampleStatus, age_ms: 0 } },
      },
    },
    errors: [
      {
        code: "RESOURCE_EXHAUSTED",
        reason: "STATUS_TOO_EARLY",
        when:
          "The cell has reported less than `status_every_ms` before. Nothing was stored. Report again " +
          "after `Retry-After`, with what is known by then.",
      },
      ledgerDown,
    ],
    example: {
      params: { cell: "7" },
      body: {
        sdk: { name: "leasehold", version: "0.2.0" },
        reconciliation: {
          outcome: "done",
          started_ago_ms: 1_000,
          ended_ago_ms: 0,
          counts: { processed: 3, committed: 1, rolled_back: 0, pending: 2, failed: 0 },
        },
      },
    },
  }),
  getStatus: route({
    group: "status",
    method: "GET",
    path: "/v1/cells/{cell}/status",
    summary: "Read the cell's status",
    about: "Answers what the cell said of itself last, and how old that is by the ledger's clock.",
    roles: ["cell", "operator", "viewer"],
    params,
    query: nothing,
    history: true,
    responses: {
      200: {
        about: "The status. Null: the cell has never reported.",
        schema: z.strictObject({ status: cellStatus.nullable() }),
        example: { status: exampleStatus },
      },
    },
    errors: [ledgerDown],
    example: { params: { cell: "7" } },
  }),
};
