import * as z from "zod";
import { limitTable } from "../../core/limits.ts";
import { locationHints } from "../../location-hints.ts";
import {
  cellId,
  cellIdInBody,
  nextPageToken,
  nothing,
  pageSize,
  pageToken,
  wellFormedText,
} from "./fields.ts";
import { route, type RouteError } from "./route.ts";
import { cell, key, mintedKey, role } from "./schemas.ts";

const operator = ["operator"] as const;

const cellParams = z.strictObject({ cell: cellId });
const cellAnswer = z.strictObject({ cell });
const page = z.strictObject({ page_size: pageSize.optional(), page_token: pageToken.optional() });

const name = wellFormedText(128, "For people.");

const address = z
  .string()
  .max(2_048)
  .refine(isAddress, "must be an http or https URL without credentials, query and fragment")
  .meta({
    description: "Where routers send the requests of this cell: an http or https URL.",
    examples: ["https://cell-7.example.com"],
  });

function isAddress(text: string): boolean {
  if (!/^https?:\/\/[^\s\\?#@]+$/i.test(text) || !text.isWellFormed() || /\p{Cc}/u.test(text)) return false;
  return URL.canParse(text);
}

/** The platform's, as `DurableObjectLocationHint` has them. */

const locationHint = z
  .enum(locationHints)
  .meta({ description: "Where the cell's ledger is made, once and for all: near the cell." });

const unknownCell: RouteError = {
  code: "NOT_FOUND",
  reason: "CELL_UNKNOWN",
  when: "No such cell is registered.",
};
const changedMeanwhile: RouteError = {
  code: "FAILED_PRECONDITION",
  reason: "CONCURRENT_CHANGE",
  when: "Somebody else changed the cell between this call's look at it and its change. Nothing was done: look again.",
};
const directoryDown: RouteError = {
  code: "UNAVAILABLE",
  when: "The directory or the cell's ledger cannot be reached.",
};

export const cellRoutes = {
  listCells: route({
    group: "cells",
    method: "GET",
    path: "/v1/admin/cells",
    summary: "List cells",
    about: "In the order of their ids, each with what its ledger says right now.",
    roles: operator,
    params: nothing,
    query: page,
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
      "A cell must be registered before it can begin leases. Its id and location are for good, its name and address can be changed.",
    roles: operator,
    params: nothing,
    query: nothing,
    body: {
      schema: z
        .strictObject({ cell_id: cellIdInBody, name, address, location_hint: locationHint.optional() })
        .meta({ id: "NewCell" }),
      required: true,
    },
    responses: { 201: { about: "The cell is registered.", schema: cellAnswer } },
    errors: [
      { code: "ALREADY_EXISTS", reason: "CELL_EXISTS", when: "A cell of this id is registered." },
      { code: "RESOURCE_EXHAUSTED", when: "The deployment has as many cells as it may." },
      directoryDown,
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
    about: "Its name, its address, or both. Routers see a new address within 30 seconds.",
    roles: operator,
    params: cellParams,
    query: nothing,
    body: {
      schema: z
        .strictObject({ name: name.optional(), address: address.optional() })
        .refine(
          (change) => Object.keys(change).length > 0,
          "must change something: send name, address or both",
        )
        .meta({ id: "CellChange" }),
      required: true,
    },
    responses: { 200: { about: "The cell as it is now.", schema: cellAnswer } },
    errors: [unknownCell, changedMeanwhile, directoryDown],
    example: { params: { cell: "7" }, body: { address: "https://cell-7.example.net" } },
  }),
  freezeCell: route({
    group: "cells",
    method: "POST",
    path: "/v1/admin/cells/{cell}/freeze",
    summary: "Freeze a cell",
    about:
      "From now on its begins are refused. Commits, rollbacks and reads go on, so that it can finish what it has begun.",
    roles: operator,
    params: cellParams,
    query: nothing,
    responses: { 200: { about: "The cell is frozen.", schema: cellAnswer } },
    errors: [unknownCell, changedMeanwhile, directoryDown],
    example: { params: { cell: "7" } },
  }),
  unfreezeCell: route({
    group: "cells",
    method: "POST",
    path: "/v1/admin/cells/{cell}/unfreeze",
    summary: "Unfreeze a cell",
    about: "Lets a frozen cell begin leases again.",
    roles: operator,
    params: cellParams,
    query: nothing,
    responses: { 200: { about: "The cell is active.", schema: cellAnswer } },
    errors: [unknownCell, changedMeanwhile, directoryDown],
    example: { params: { cell: "7" } },
  }),
};

const keyId = z
  .string()
  .regex(/^[\w-]{1,64}$/, "must be the id of a key")
  .meta({ description: "The id of a key." });

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
    cell_id: cellIdInBody.optional().meta({ description: "For the role `cell`, and only for it." }),
    expires_in_s: z
      .int()
      .min(1)
      .optional()
      .meta({ description: `Up to ${limitTable.keyLifetimeS.default} (400 days). Left out: 90 days.` }),
    note: wellFormedText(256, "What it is for.").optional(),
  })
  .meta({ id: "NewKey" });

const revocation = z
  .strictObject({
    cell_id: cellIdInBody.optional().meta({
      description: "The cell of a key that was never listed here, so that its ledger learns of it.",
    }),
  })
  .meta({ id: "Revocation" });

export const keyRoutes = {
  mintKey: route({
    group: "keys",
    method: "POST",
    path: "/v1/admin/keys",
    summary: "Make a key",
    about: "The answer is the only place where the key itself is ever shown.",
    roles: operator,
    params: nothing,
    query: nothing,
    body: { schema: newKey, required: true },
    responses: {
      201: { about: "The key.", schema: mintedKey, example: { ...exampleKey, key: "lhk_eyJ2IjoxLCJpZCI6…" } },
    },
    errors: [unknownCell, directoryDown],
    example: { body: { role: "cell", cell_id: "7", expires_in_s: 7_776_000, note: "deployed with ansible" } },
  }),
  listKeys: route({
    group: "keys",
    method: "GET",
    path: "/v1/admin/keys",
    summary: "List keys",
    about: "Every key that was made or revoked here, in the order of its last change.",
    roles: operator,
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
      "Of a cell key: at once for /v1/cells, because its ledger is told first. Everywhere else within 30 seconds. You can revoke the key that you are using: the answer is then the last thing it gets, so make another operator key first. Keys that were made offline can be revoked too, by their id; say `cell_id` for those of a cell.",
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
        when: "Too many revoked keys have not expired yet: rotate the signing secret.",
      },
      unknownCell,
      directoryDown,
    ],
    example: { params: { id: "01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42" } },
  }),
};
