import * as z from "zod";
import { limitTable } from "../../../../common/limits.ts";
import { locationHints } from "../../../location-hints.ts";
import {
  cellId,
  cellIdInBody,
  keyId,
  nextPageToken,
  nothing,
  pageSize,
  pageToken,
  reason,
  wellFormedText,
} from "../../../api/contract/fields.ts";
import { auditFull, route, unknownCell, type RouteError } from "../../../api/contract/route.ts";
import { cell, key, mintedKey, role } from "../../../api/contract/schemas.ts";

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
const removed: RouteError = {
  code: "FAILED_PRECONDITION",
  reason: "CELL_REMOVED",
  when: "The cell was removed. That is final.",
};
const directoryDown: RouteError = {
  code: "UNAVAILABLE",
  when: "The directory or the cell's ledger cannot be reached.",
};
const changing = [directoryDown, auditFull];

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

const exampleKey = {
  id: "01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42",
  role: "cell",
  cell_id: "7",
  created_at: "2026-11-20T12:00:00.000Z",
  expires_at: "2027-02-18T12:00:00.000Z",
  note: "deployed with ansible",
};
const exampleRevoked = { ...exampleKey, revoked_at: "2026-12-01T08:30:00.000Z" };

const newKey = z
  .strictObject({
    role,
    cell_id: cellIdInBody
      .optional()
      .meta({ description: "The cell of the key. Required for the role `cell`, refused for the others." }),
    expires_in_s: z
      .int()
      .min(1)
      .optional()
      .meta({
        description:
          `Lifetime in seconds, at most ${limitTable.keyLifetimeS.default} (400 days). Left out: 90 ` +
          "days.",
      }),
    note: wellFormedText(256, "What the key is for.").optional(),
    reason: reason.optional(),
  })
  .meta({ id: "NewKey" });

const revocation = z
  .strictObject({
    cell_id: cellIdInBody.optional().meta({
      description:
        "The cell of a key that was made offline. Without it, the cell's ledger doesn't learn of the " +
        "revocation.",
    }),
    reason: reason.optional(),
  })
  .meta({ id: "Revocation" });

export const keyRoutes = {
  mintKey: route({
    group: "keys",
    method: "POST",
    path: "/v1/admin/keys",
    summary: "Make a key",
    about: "Makes a key and lists it. Only this answer contains the key itself, so save it.",
    roles: operator,
    params: nothing,
    query: nothing,
    body: { schema: newKey, required: true },
    responses: {
      201: {
        about: "The new key.",
        schema: mintedKey,
        example: { ...exampleKey, key: "lhk_eyJ2IjoxLCJpZCI6…" },
      },
    },
    errors: [unknownCell, removed, ...changing],
    example: { body: { role: "cell", cell_id: "7", expires_in_s: 7_776_000, note: "deployed with ansible" } },
  }),
  listKeys: route({
    group: "keys",
    method: "GET",
    path: "/v1/admin/keys",
    summary: "List keys",
    about: "Lists every key that was made or revoked here, the latest change last.",
    roles: viewers,
    params: nothing,
    query: page,
    responses: {
      200: {
        about: "A page of keys.",
        schema: z.strictObject({ keys: z.array(key), next_page_token: nextPageToken }),
        example: { keys: [exampleRevoked], next_page_token: "" },
      },
    },
    errors: [directoryDown],
    example: {},
  }),
  revokeKey: route({
    group: "keys",
    method: "POST",
    path: "/v1/admin/keys/{id}/revoke",
    summary: "Revoke a key",
    about:
      "Revokes a key. `/v1/cells/…` refuses a revoked cell key at once, because the cell's ledger " +
      "learns of the revocation first. All other routes, and keys of other roles, take up to 30 " +
      "seconds. If you revoke the key that you are using, this call is its last, so make another " +
      "operator key first. You can also revoke a key that was made offline: give its id, and for a cell " +
      "key `cell_id`.",
    roles: operator,
    params: z.strictObject({ id: keyId }),
    query: nothing,
    body: { schema: revocation, required: false },
    responses: {
      200: {
        about: "The key is revoked.",
        schema: z.strictObject({ key }),
        example: { key: exampleRevoked },
      },
    },
    errors: [
      {
        code: "RESOURCE_EXHAUSTED",
        when: "Too many revoked keys have not expired yet. Rotate the signing secret instead.",
      },
      unknownCell,
      ...changing,
    ],
    example: { params: { id: "01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42" } },
  }),
};
