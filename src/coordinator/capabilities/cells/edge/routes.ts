import * as z from "zod";
import { locationHints } from "../../../location-hints.ts";
import {
  cellId,
  cellIdInBody,
  nextPageToken,
  nothing,
  pageSize,
  pageToken,
  reason,
  wellFormedText,
} from "../../../api/contract/fields.ts";
import { auditFull, route, unknownCell, type RouteError } from "../../../api/contract/route.ts";
import { cell } from "../../../api/contract/schemas.ts";

const operator = ["operator"] as const;
const viewers = ["operator", "viewer"] as const;

const cellParams = z.strictObject({ cell: cellId });
const cellAnswer = z.strictObject({ cell });
const page = z.strictObject({ page_size: pageSize.optional(), page_token: pageToken.optional() });

const name = wellFormedText(128, "A name that people read. Leasehold doesn't interpret it.");

const address = z
  .string()
  .max(2_048)
  .refine(isAddress, "must be an http or https URL without credentials, query or fragment")
  .meta({
    description: "The base URL to which routers send this cell's requests: http or https.",
    examples: ["https://cell-7.example.com"],
  });

function isAddress(text: string): boolean {
  if (!/^https?:\/\/[^\s\\?#@]+$/i.test(text) || !text.isWellFormed() || /\p{Cc}/u.test(text)) return false;
  return URL.canParse(text);
}

const locationHint = z.enum(locationHints).meta({
  description:
    "The region in which the cell's ledger is created; choose the one nearest to the cell. It " +
    "cannot be changed later. Left out: Cloudflare chooses.",
});

const changedMeanwhile: RouteError = {
  code: "FAILED_PRECONDITION",
  reason: "CONCURRENT_CHANGE",
  when:
    "Somebody else changed the cell at the same moment. Nothing was done. Read the cell, then decide " +
    "whether to repeat the call.",
};
const removing: RouteError = {
  code: "FAILED_PRECONDITION",
  reason: "CELL_REMOVING",
  when: "An operator removes the cell. Go on with its steps.",
};
export const removed: RouteError = {
  code: "FAILED_PRECONDITION",
  reason: "CELL_REMOVED",
  when: "The cell was removed. That is final.",
};
export const directoryDown: RouteError = {
  code: "UNAVAILABLE",
  when: "The directory or the cell's ledger cannot be reached.",
};
export const changing = [directoryDown, auditFull];

const stateChange = {
  schema: z.strictObject({ reason: reason.optional() }).meta({ id: "CellStateChange" }),
  required: false,
} as const;

export const cellRoutes = {
  listCells: route({
    group: "cells",
    method: "GET",
    path: "/v1/admin/cells",
    summary: "List cells",
    about:
      "Lists the cells in the order of their ids. State and counts are read from each cell's ledger for " +
      "this answer. Cells that were removed are left out, unless you ask for them.",
    roles: viewers,
    params: nothing,
    query: page.extend({
      include_removed: z
        .enum(["true", "false"])
        .optional()
        .meta({ description: "`true` also lists cells that were removed." }),
    }),
    responses: {
      200: {
        about: "A page of cells.",
        schema: z.strictObject({ cells: z.array(cell), next_page_token: nextPageToken }),
      },
    },
    errors: [directoryDown],
    example: {},
  }),
  addCell: route({
    group: "cells",
    method: "POST",
    path: "/v1/admin/cells",
    summary: "Register a cell",
    about:
      "Registers a cell, which must happen before it can begin leases. You can change its name and " +
      "address later, but not its id or location.",
    roles: operator,
    params: nothing,
    query: nothing,
    body: {
      schema: z
        .strictObject({
          cell_id: cellIdInBody,
          name,
          address,
          location_hint: locationHint.optional(),
          reason: reason.optional(),
        })
        .meta({ id: "NewCell" }),
      required: true,
    },
    responses: { 201: { about: "The cell is registered.", schema: cellAnswer } },
    errors: [
      { code: "ALREADY_EXISTS", reason: "CELL_EXISTS", when: "A cell with this id is already registered." },
      {
        code: "FAILED_PRECONDITION",
        reason: "CELL_REMOVED",
        when: "A cell with this id was removed. No cell gets its id again.",
      },
      {
        code: "RESOURCE_EXHAUSTED",
        when: "The deployment has reached a limit of cells (`max_cells`, `max_cell_ids`).",
      },
      ...changing,
    ],
    example: {
      body: { cell_id: "7", name: "Europe 1", address: "https://cell-7.example.com", location_hint: "weur" },
    },
  }),
  changeCell: route({
    group: "cells",
    method: "PATCH",
    path: "/v1/admin/cells/{cell}",
    summary: "Change a cell",
    about: "Changes the cell's name, its address, or both. Lookups answer the new address within 30 seconds.",
    roles: operator,
    params: cellParams,
    query: nothing,
    body: {
      schema: z
        .strictObject({ name: name.optional(), address: address.optional(), reason: reason.optional() })
        .refine(
          (change) => change.name !== undefined || change.address !== undefined,
          "must have `name`, `address` or both",
        )
        .meta({ id: "CellChange" }),
      required: true,
    },
    responses: { 200: { about: "The changed cell.", schema: cellAnswer } },
    errors: [unknownCell, changedMeanwhile, removed, ...changing],
    example: { params: { cell: "7" }, body: { address: "https://cell-7.example.net" } },
  }),
  freezeCell: route({
    group: "cells",
    method: "POST",
    path: "/v1/admin/cells/{cell}/freeze",
    summary: "Freeze a cell",
    about:
      "Refuses all later begins of the cell, except those of operators with `verification`. Commits, " +
      "rollbacks and reads still work, so that the cell can finish its leases.",
    roles: operator,
    params: cellParams,
    query: nothing,
    body: stateChange,
    responses: { 200: { about: "The cell is frozen.", schema: cellAnswer } },
    errors: [unknownCell, changedMeanwhile, removing, removed, ...changing],
    example: { params: { cell: "7" } },
  }),
  drainCell: route({
    group: "cells",
    method: "POST",
    path: "/v1/admin/cells/{cell}/drain",
    summary: "Drain a cell",
    about:
      "Refuses all later begins of the cell, except those of a verification. Commits, rollbacks, reads and " +
      "exports still work. Drain a cell before you remove it, or while you restore its database. " +
      "`unfreeze` ends it.",
    roles: operator,
    params: cellParams,
    query: nothing,
    body: stateChange,
    responses: { 200: { about: "The cell is draining.", schema: cellAnswer } },
    errors: [unknownCell, changedMeanwhile, removing, removed, ...changing],
    example: { params: { cell: "7" } },
  }),
  unfreezeCell: route({
    group: "cells",
    method: "POST",
    path: "/v1/admin/cells/{cell}/unfreeze",
    summary: "Unfreeze a cell",
    about: "Allows a frozen or draining cell to begin leases again.",
    roles: operator,
    params: cellParams,
    query: nothing,
    body: stateChange,
    responses: { 200: { about: "The cell is active.", schema: cellAnswer } },
    errors: [unknownCell, changedMeanwhile, removing, removed, ...changing],
    example: { params: { cell: "7" } },
  }),
};
